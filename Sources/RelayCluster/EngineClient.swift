import Dispatch
import FoundationEssentials
import NATS
import RelayStore
import Synchronization

/// Questions to the engine that somebody waits for, and the connection that they share with the
/// journal's messages.
final class EngineClient: Sendable {
  private struct Waiter {
    let continuation: CheckedContinuation<[NATSMessage]?, Never>
    var messages: [NATSMessage] = []
    /// Whether more than one message answers, the last of them with a status.
    let isMany: Bool
  }

  private struct State {
    var waiters: [UInt64: Waiter] = [:]
    var next: UInt64 = 0
    var handler: (@Sendable (NATSMessage) -> Void)?
  }

  private let connection: NATSConnection
  private let answers: Answers

  /// What the connection's threads reach, and nothing that would keep the connection alive.
  private final class Answers: Sendable {
    let state = Mutex(State())
  }

  private init(_ connection: NATSConnection, _ answers: Answers) {
    self.connection = connection
    self.answers = answers
  }

  /// Connects to one of the servers.
  static func connect(_ access: NATSAccess, name: String) async throws(StoreError) -> EngineClient {
    let answers = Answers()
    let inbox = "_INBOX.pushrelay.\(UInt64.random(in: .min ... .max))"
    let connection = try await blocking(access) { () throws(NATSError) in
      try NATSConnection(
        access: access, name: name, inbox: inbox,
        onMessage: { Self.take($0, answers) }, onConnection: { _ in })
    }
    return EngineClient(connection, answers)
  }

  /// Does something that looks for servers, which blocks, and says what is wrong in words for
  /// people.
  static func blocking<Value: Sendable>(
    _ access: NATSAccess, _ work: @escaping @Sendable () throws(NATSError) -> Value
  ) async throws(StoreError) -> Value {
    let result = await withCheckedContinuation { continuation in
      DispatchQueue(label: "relay.engine").async {
        continuation.resume(returning: Result { () throws(NATSError) in try work() })
      }
    }
    do {
      return try result.get()
    } catch {
      throw problem(error, access)
    }
  }

  private static func problem(_ error: NATSError, _ access: NATSAccess) -> StoreError {
    let servers = access.servers.map(Self.withoutUser)
    let names = servers.joined(separator: ", ")
    switch error.cause {
    case .other: return .unreachable(servers: servers, reason: error.description)
    case .file(let path): return .engineBarred("cannot use \(path) (\(error))")
    case .certificate:
      return .engineBarred(
        "the certificate of \(names) is not trusted (\(error)); natsCA must name the PEM file of "
          + "its authority, and nats the host that it is made for")
    case .noTLS:
      return .engineBarred(
        "\(names) does not offer TLS; set it up there, or use nats:// without natsCA and "
          + "natsCertificate")
    case .hangup:
      return .engineBarred(
        access.certificate.isEmpty
          ? "\(names) hangs up (\(error)); if it demands a certificate, natsCertificate and "
            + "natsKey name its PEM files"
          : "\(names) hangs up (\(error)); it may not accept the certificate "
            + "\(access.certificate): see the engine's log")
    case .user:
      return .engineBarred(
        "\(names) does not accept user and password, or the credentials, that it is shown "
          + "(\(error)); see nats (nats://USER:PASSWORD@HOST:4222) or natsCredentials")
    }
  }

  /// A server's address without user and password.
  static func withoutUser(_ url: String) -> String {
    url.split(separator: "@").last.map(String.init) ?? url
  }

  var maximumPayloadBytes: Int { connection.maximumPayloadBytes }

  var server: String? { connection.server }

  /// Told of all answers but those to `ask`, on a thread of the connection's.
  func setHandler(_ handler: (@Sendable (NATSMessage) -> Void)?) {
    answers.state.withLock { $0.handler = handler }
  }

  /// Sends what the journal's machine wants; when it cannot be sent, no answer comes.
  func publish(
    _ body: [UInt8], to subject: String, headers: [(name: String, value: String)] = [], tag: String
  ) {
    try? connection.publish(body, to: subject, headers: headers, tag: tag)
  }

  /// The answer to a message, or nil when none comes in time.
  func ask(
    _ subject: String, _ body: [UInt8] = [], headers: [(name: String, value: String)] = [],
    isMany: Bool = false, within length: DispatchTimeInterval = .seconds(5)
  ) async -> [NATSMessage]? {
    await withCheckedContinuation { continuation in
      let number = answers.state.withLock { state in
        state.next += 1
        state.waiters[state.next] = Waiter(continuation: continuation, isMany: isMany)
        return state.next
      }
      DispatchQueue.global().asyncAfter(deadline: .now() + length) { [answers] in
        answers.state.withLock { $0.waiters.removeValue(forKey: number) }?
          .continuation.resume(returning: nil)
      }
      do {
        try connection.publish(body, to: subject, headers: headers, tag: "q.\(number)")
      } catch {
        answers.state.withLock { $0.waiters.removeValue(forKey: number) }?
          .continuation.resume(returning: nil)
      }
    }
  }

  private static func take(_ message: NATSMessage, _ answers: Answers) {
    guard message.tag.hasPrefix("q."), let number = UInt64(message.tag.dropFirst(2)) else {
      answers.state.withLock { $0.handler }?(message)
      return
    }
    let done = answers.state.withLock { state -> Waiter? in
      guard var waiter = state.waiters[number] else { return nil }
      waiter.messages.append(message)
      let isLast = !waiter.isMany || message.status != nil
      state.waiters[number] = isLast ? nil : waiter
      return isLast ? waiter : nil
    }
    done?.continuation.resume(returning: done?.messages)
  }
}
