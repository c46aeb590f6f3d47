import Dispatch
import FoundationEssentials
import NATS
import RelayCore
import RelayStore

/// Requests to the engine, the journal's messages among them, on one connection.
final class EngineClient: Sendable {
  private let connection: NATSConnection
  private let questions: OpenQuestions
  let form = ClusterForm()

  private init(_ connection: NATSConnection, _ questions: OpenQuestions) {
    self.connection = connection
    self.questions = questions
  }

  static func connect(
    _ access: NATSAccess, name: String, onBar: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws(StoreError) -> EngineClient {
    let questions = OpenQuestions()
    let inbox = "_INBOX.pushrelay.\(UInt64.random(in: .min ... .max))"
    let connection = try await blocking(access) { () throws(NATSError) in
      try NATSConnection(
        access: access, name: name, inbox: inbox,
        onMessage: { message in
          if let number = UInt64(message.tag) { questions.hear(message, to: number) }
        }, onConnection: { _ in }, onBar: onBar)
    }
    return EngineClient(connection, questions)
  }

  /// Runs what blocks while looking for servers, and words its errors for people.
  static func blocking<Value: Sendable>(
    _ access: NATSAccess, _ work: @escaping @Sendable () throws(NATSError) -> Value
  ) async throws(StoreError) -> Value {
    let queue = DispatchQueue(label: "relay.engine")
    do {
      return try await queue.run { Result { () throws(NATSError) in try work() } }.get()
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
          + "its authority, nats the host that it is made for, and it must not have expired")
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

  static func withoutUser(_ url: String) -> String {
    url.split(separator: "@").last.map(String.init) ?? url
  }

  var maximumPayloadBytes: Int { connection.maximumPayloadBytes }

  var server: String? { connection.server }

  /// Sends a message; with `last`, a stream stores it only if that is the subject's last sequence.
  /// `done` gets the answer on any thread, or nil when none comes in time; with `isMany`, several
  /// messages, the last one with a status.
  func ask(
    _ subject: String, _ body: [UInt8] = [], after last: UInt64? = nil,
    headers: [(name: String, value: String)] = [], isMany: Bool = false,
    within length: DispatchTimeInterval = .seconds(5),
    _ done: @escaping @Sendable ([NATSMessage]?) -> Void
  ) {
    let number = questions.open(within: length, isLast: { !isMany || $0.status != nil }, done)
    let condition = last.map { [("Nats-Expected-Last-Subject-Sequence", "\($0)")] } ?? []
    do {
      try connection.publish(body, to: subject, headers: headers + condition, tag: "\(number)")
    } catch {
      questions.giveUp(number)
    }
  }

  func ask(
    _ subject: String, _ body: [UInt8] = [], after last: UInt64? = nil,
    headers: [(name: String, value: String)] = [], isMany: Bool = false,
    within length: DispatchTimeInterval = .seconds(5)
  ) async -> [NATSMessage]? {
    await withCheckedContinuation { continuation in
      ask(subject, body, after: last, headers: headers, isMany: isMany, within: length) {
        continuation.resume(returning: $0)
      }
    }
  }

  /// Repeats an attempt until it gives a value, so often and so long at most; `refusal` words the
  /// failure. An engine that is silent takes seconds for each.
  static func patiently<Value>(
    _ refusal: @autoclosure () -> String, tries: Int = patientTries,
    within length: Duration = patience, pause: Duration = .milliseconds(100),
    _ attempt: () async throws(StoreError) -> Value?
  ) async throws(StoreError) -> Value {
    let deadline = ContinuousClock.now + length
    for _ in 0..<tries where ContinuousClock.now < deadline {
      guard !Task.isCancelled else { throw .stopped }
      if let value = try await attempt() { return value }
      try? await Task.sleep(for: pause)
    }
    throw .engineRefuses(reason: refusal())
  }

  static let patientTries = 50

  /// How long servers that have just started may take to elect a leader; until then nothing can be
  /// asked.
  static let patience = Duration.seconds(30)
}
