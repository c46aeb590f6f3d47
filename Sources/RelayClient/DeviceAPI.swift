package import AdminAPI
import FoundationEssentials

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

package struct DeviceRefusal: Error, Equatable, Sendable, CustomStringConvertible {
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

package enum DeviceAPIError: Error, Equatable, Sendable, CustomStringConvertible {
  case connection(ClientError)
  case refused(DeviceRefusal)

  package var description: String {
    switch self {
    case .connection(let error): error.description
    case .refused(let refusal): refusal.description
    }
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
  package func health() async throws(DeviceAPIError) -> RelayHealth {
    try decode(RelayHealth.self, try await call("GET", "/v1/health", expecting: 200).body)
  }

  /// Makes a new device: `POST /v1/devices`. `enrolmentKey` if the relay requires one.
  package func enroll(enrolmentKey: String? = nil) async throws(DeviceAPIError) -> DeviceIdentity {
    let headers = enrolmentKey.map { [(name: "authorization", value: "bearer \($0)")] } ?? []
    let answer = try await call("POST", "/v1/devices", headers: headers, expecting: 201)
    return try decode(DeviceIdentity.self, answer.body)
  }

  /// Registers an app and returns its device token in hexadecimal; the same one when repeated.
  /// `token` is used instead of a new one.
  package func register(
    topic: String, token: String? = nil, of device: DeviceIdentity
  ) async throws(DeviceAPIError) -> String {
    let body = token.map { Array(#"{"token":"\#($0)"}"#.utf8) } ?? []
    let answer = try await call(
      "PUT", "\(path(device))/apps/\(topic)", headers: [device.authorization], body: body,
      expecting: 200)
    return try decode(Registration.self, answer.body).token
  }

  /// Unregisters an app: its slots are emptied and its token ends.
  package func unregister(
    topic: String, of device: DeviceIdentity
  ) async throws(DeviceAPIError) {
    _ = try await call(
      "DELETE", "\(path(device))/apps/\(topic)", headers: [device.authorization], expecting: 204)
  }

  package func status(of device: DeviceIdentity) async throws(DeviceAPIError) -> DeviceStatus {
    try decode(DeviceStatus.self, try await statusBody(of: device))
  }

  /// The same as JSON text.
  package func statusBody(of device: DeviceIdentity) async throws(DeviceAPIError) -> [UInt8] {
    try await call("GET", path(device), headers: [device.authorization], expecting: 200).body
  }

  package func openStream(
    of device: DeviceIdentity
  ) async throws(DeviceAPIError) -> ClientStream {
    do {
      let stream = try await client.openStream(
        method: "POST", path: "\(path(device))/stream", headers: [device.authorization])
      guard stream.status == 200 else {
        let body = try await stream.readAll(limitBytes: 65_536)
        throw DeviceAPIError.refused(DeviceRefusal(status: stream.status, body: body))
      }
      return stream
    } catch let error as ClientError {
      throw .connection(error)
    } catch let error as DeviceAPIError {
      throw error
    } catch {
      throw .connection(.unexpectedAnswer(what: "\(error)"))
    }
  }

  // MARK: Details

  private struct Registration: Decodable {
    var token: String
  }

  private func path(_ device: DeviceIdentity) -> String { "/v1/devices/\(device.device)" }

  private func call(
    _ method: String, _ path: String, headers: [(name: String, value: String)] = [],
    body: [UInt8] = [], expecting status: Int
  ) async throws(DeviceAPIError) -> ClientResponse {
    let answer: ClientResponse
    do {
      answer = try await client.request(method: method, path: path, headers: headers, body: body)
    } catch {
      throw .connection(error)
    }
    guard answer.status == status else {
      throw .refused(DeviceRefusal(status: answer.status, body: answer.body))
    }
    return answer
  }

  private func decode<Value: Decodable>(
    _ type: Value.Type, _ body: [UInt8]
  ) throws(DeviceAPIError) -> Value {
    do {
      return try JSONDecoder().decode(type, from: Data(body))
    } catch {
      let text = String(decoding: body.prefix(100), as: UTF8.self)
      throw .connection(.unexpectedAnswer(what: "the answer '\(text)' is not what was expected"))
    }
  }
}
