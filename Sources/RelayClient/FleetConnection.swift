import DeviceLink
import NIOPosix
import RelayCore
import TLS

/// A connection to a relay that any number of devices share.
///
/// ```swift
/// let fleet = try await FleetConnection.connect(
///   host: "localhost", port: 5223, authority: try Array(Data(contentsOf: caPEM)))
/// let device = try await fleet.enroll()
/// let token = try await fleet.register(topic: "com.example.app", of: device)
/// let stream = try await fleet.listen(as: device)
/// for try await push in stream {
///   try await stream.acknowledge(push, .newData)
/// }
/// ```
///
/// Keep-alives are answered. When the connection ends, so does every stream, with the reason:
/// connect again and listen as the same devices. The relay repeats pushes without an
/// acknowledgement, so devices drop duplicates by ``DevicePush/uniqueID``.
public struct FleetConnection: Sendable {
  private let api: DeviceAPI

  /// Connects to a relay's device listener. With an authority (its `ca.pem`) verifies the
  /// certificate for the host; without one uses HTTP/2 without TLS (`pushrelay serve --plaintext`).
  /// Throws ``FleetError``.
  public static func connect(
    host: String, port: Int, authority: [UInt8]?
  ) async throws(FleetError) -> FleetConnection {
    do {
      let security: RelayClient.Security =
        switch authority {
        case nil: .plaintext
        case let pem?:
          .tls(
            try TLSContext.client(
              trust: .authorities(pem: pem), identity: nil, applicationProtocols: ["h2"]),
            serverName: host)
        }
      let client = try await RelayClient.connect(
        host: host, port: port, security: security, on: MultiThreadedEventLoopGroup.singleton)
      return FleetConnection(api: DeviceAPI(client))
    } catch {
      throw FleetError(error)
    }
  }

  /// Makes a device. `key` if the relay requires one (`enrolmentKey`).
  public func enroll(key: String? = nil) async throws(FleetError) -> OwnDevice {
    try await calling { () async throws(ClientError) in
      let identity = try await api.enroll(enrolmentKey: key)
      return OwnDevice(id: identity.device, secret: identity.secret)
    }
  }

  /// Registers an app and returns its device token in hexadecimal; the same one when repeated.
  /// `token` is used instead of a new one.
  public func register(
    topic: String, token: String? = nil, of device: OwnDevice
  ) async throws(FleetError) -> String {
    try await calling { () async throws(ClientError) in
      try await api.register(topic: topic, token: token, of: device.identity)
    }
  }

  /// Unregisters an app: its stored pushes end, and its token is answered 410.
  public func unregister(topic: String, of device: OwnDevice) async throws(FleetError) {
    try await calling { () async throws(ClientError) in
      try await api.unregister(topic: topic, of: device.identity)
    }
  }

  /// Opens a device's stream. An earlier one of the same device ends with `superseded`.
  public func listen(as device: OwnDevice) async throws(FleetError) -> DeviceStream {
    try await calling { () async throws(ClientError) in
      DeviceStream(stream: try await api.openStream(of: device.identity))
    }
  }

  /// Ends the connection and all streams on it.
  public func close() async { await api.client.close() }

  private func calling<Value>(
    _ call: () async throws(ClientError) -> Value
  ) async throws(FleetError) -> Value {
    do throws(ClientError) {
      return try await call()
    } catch {
      throw FleetError(error)
    }
  }
}

/// A device of this program. Store it: the relay has only the secret's hash.
public struct OwnDevice: Codable, Hashable, Sendable {
  public let id: String
  public let secret: String

  public init(id: String, secret: String) {
    self.id = id
    self.secret = secret
  }

  fileprivate var identity: DeviceIdentity { DeviceIdentity(device: id, secret: secret) }
}

/// A push as it arrives on a device.
public struct DevicePush: Equatable, Sendable {
  /// The relay's id (`apns-unique-id`): the same in a repeated push.
  public let uniqueID: String
  /// The provider's (`apns-id`).
  public let id: String
  public let topic: String
  /// `visible` or `silent`.
  public let kind: String
  /// The trigger: `direct`, `piggyback`, `connect`, `refill`, `hold` or `resend`.
  public let via: String
  /// 10, 5 or 1.
  public let priority: Int
  /// The payload's JSON text.
  public let payload: String
  fileprivate let number: UniqueID

  fileprivate init(_ delivery: Delivery) {
    let push = delivery.notification
    uniqueID = push.uniqueID.description
    id = push.apnsID.description
    topic = push.topic.description
    kind = push.notificationClass.name
    via = delivery.via.name
    priority = Int(push.priority.rawValue)
    payload = String(decoding: push.payload, as: UTF8.self)
    number = push.uniqueID
  }
}

/// An app's use of a push, as `pushrelay log` shows it.
public enum PushOutcome: Sendable {
  case newData, noData, failed
  /// The system did not run it, and why.
  case notLaunched(String)

  fileprivate var outcome: DeliveryOutcome {
    switch self {
    case .newData: .newData
    case .noData: .noData
    case .failed: .failed
    case .notLaunched(let reason): .notLaunched(reason: reason)
    }
  }
}

/// A device's pushes, for one loop. Ends when the relay says good-bye, or with ``FleetError`` when
/// the connection ends.
public struct DeviceStream: AsyncSequence, Sendable {
  public typealias Element = DevicePush
  public typealias Failure = FleetError

  fileprivate let stream: ClientStream

  /// Confirms a push; without that it is sent again.
  public func acknowledge(
    _ push: DevicePush, _ outcome: PushOutcome? = nil
  ) async throws(FleetError) {
    do {
      try await stream.write(.ack(id: push.number, outcome: outcome?.outcome))
    } catch {
      throw FleetError(error)
    }
  }

  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var listener: DeviceListener

    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(FleetError) -> DevicePush? {
      do {
        while let line = try await listener.next(isolation: actor) {
          if case .notification(let delivery) = line {
            // The next read may be a long time away.
            await listener.writeAnswers(isolation: actor)
            return DevicePush(delivery)
          }
          if case .bye = line { return nil }
        }
        return nil
      } catch {
        throw FleetError(error)
      }
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(listener: DeviceListener(stream, .init(acknowledges: false)))
  }
}

/// A connection error, or a refusal by the relay.
public struct FleetError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The relay's word, such as `UnknownDevice`; nil without an answer.
  public let reason: String?
  /// Tells people what to do.
  public let description: String

  fileprivate init(_ error: any Error) {
    reason = if case .refused(let refusal)? = error as? ClientError { refusal.reason } else { nil }
    description = "\(error)"
  }
}
