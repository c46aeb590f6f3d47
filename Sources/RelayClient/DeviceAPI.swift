package import AdminAPI
import FoundationEssentials
import RelayCore

/// A device's id and secret. The relay keeps only a hash of the secret.
package struct DeviceIdentity: Codable, Equatable, Sendable {
  package var device: String
  package var secret: String

  package init(device: String, secret: String) {
    self.device = device
    self.secret = secret
  }

  var authorization: (name: String, value: String) { ("authorization", "bearer \(secret)") }
}

/// The device API's answer to a request that it does not grant.
package struct DeviceRefusal: Equatable, Sendable, CustomStringConvertible {
  package var status: Int
  package var reason: String
  package var message: String

  package init(status: Int, body: [UInt8]) {
    let refusal = ReasonBody(body)
    self.status = status
    reason = refusal?.reason ?? "status \(status)"
    message = refusal?.message ?? String(decoding: body.prefix(200), as: UTF8.self)
  }

  package var description: String {
    let text = "the relay answers \(status) \(reason)"
    return message.isEmpty ? text : "\(text): \(message)"
  }
}

/// The device API (docs/PROTOCOL.md, "Device API") over one connection, which devices may share.
package struct DeviceAPI: Sendable {
  package let client: RelayClient

  package init(_ client: RelayClient) {
    self.client = client
  }

  /// `GET /v1/health`; has the relay's time if that moves only when told.
  @discardableResult
  package func health() async throws(ClientError) -> RelayHealth {
    try decode(RelayHealth.self, try await call("GET", "/v1/health", expecting: 200).body)
  }

  /// Makes a new device: `POST /v1/devices`. `enrolmentKey` if the relay requires one; `name` for
  /// people, which a relay may not keep.
  package func enroll(
    enrolmentKey: String? = nil, name: String? = nil
  ) async throws(ClientError) -> DeviceIdentity {
    let headers = enrolmentKey.map { [(name: "authorization", value: "bearer \($0)")] } ?? []
    let body = name.flatMap { try? JSONEncoder().encode(["name": $0]) }.map(Array.init) ?? []
    let answer = try await call("POST", "/v1/devices", headers: headers, body: body, expecting: 201)
    return try decode(DeviceIdentity.self, answer.body)
  }

  /// Registers an app and returns its device token in hexadecimal; the same one when repeated.
  /// `token` is used instead of a new one, which is `environment`'s, `sandbox` or `production`.
  package func register(
    topic: String, token: String? = nil, environment: String? = nil, of device: DeviceIdentity
  ) async throws(ClientError) -> String {
    let wish =
      token.map { #"{"token":"\#($0)"}"# } ?? environment.map { #"{"environment":"\#($0)"}"# }
    let answer = try await call(
      "PUT", "\(path(device))/apps/\(topic)", headers: [device.authorization],
      body: Array((wish ?? "").utf8), expecting: 200)
    return try decode(Registration.self, answer.body).token
  }

  /// The topics of all that is registered.
  package func topics(of device: DeviceIdentity) async throws(ClientError) -> [String] {
    try await status(of: device).apps.map(\.topic)
  }

  /// Unregisters an app: its slots are emptied and its token ends.
  package func unregister(topic: String, of device: DeviceIdentity) async throws(ClientError) {
    _ = try await call(
      "DELETE", "\(path(device))/apps/\(topic)", headers: [device.authorization], expecting: 204)
  }

  /// Subscribes an app to a broadcast channel, by its id in base64, or unsubscribes it; repeated,
  /// nothing changes.
  package func subscribe(
    _ topic: String, to channel: String, isOn: Bool = true, of device: DeviceIdentity
  ) async throws(ClientError) {
    // Base64 has characters that paths have not.
    let id = ChannelID(channel)?.pathText ?? channel
    _ = try await call(
      isOn ? "PUT" : "DELETE", "\(path(device))/apps/\(topic)/channels/\(id)",
      headers: [device.authorization], expecting: 204)
  }

  package func status(of device: DeviceIdentity) async throws(ClientError) -> DeviceStatus {
    try decode(DeviceStatus.self, try await statusBody(of: device))
  }

  /// The same as JSON text.
  package func statusBody(of device: DeviceIdentity) async throws(ClientError) -> [UInt8] {
    try await call("GET", path(device), headers: [device.authorization], expecting: 200).body
  }

  /// - Parameter kind: `stream` to listen, or `orders`.
  package func openStream(
    _ kind: String = "stream", of device: DeviceIdentity
  ) async throws(ClientError) -> ClientStream {
    let stream = try await client.openStream(
      method: "POST", path: "\(path(device))/\(kind)", headers: [device.authorization])
    guard stream.status == 200 else {
      let body = try await stream.readAll(limitBytes: 65_536)
      throw .refused(DeviceRefusal(status: stream.status, body: body))
    }
    return stream
  }

  // MARK: Details

  private struct Registration: Decodable {
    var token: String
  }

  private func path(_ device: DeviceIdentity) -> String { "/v1/devices/\(device.device)" }

  private func call(
    _ method: String, _ path: String, headers: [(name: String, value: String)] = [],
    body: [UInt8] = [], expecting status: Int
  ) async throws(ClientError) -> ClientResponse {
    let answer = try await client.request(method: method, path: path, headers: headers, body: body)
    guard answer.status == status else {
      throw .refused(DeviceRefusal(status: answer.status, body: answer.body))
    }
    return answer
  }

  private func decode<Value: Decodable>(
    _ type: Value.Type, _ body: [UInt8]
  ) throws(ClientError) -> Value {
    do {
      return try JSONDecoder().decode(type, from: Data(body))
    } catch {
      let text = String(decoding: body.prefix(100), as: UTF8.self)
      throw .unexpectedAnswer(what: "the answer '\(text)' is not what was expected")
    }
  }
}
