import AdminAPI
import ArgumentParser
import FoundationEssentials
import NIOHTTP1
import Primitives
import ProviderCredentials
import RelayClient
import RelayCore
import RelayServer
import RelaySetup
import TLS

struct SendCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "send",
    abstract: "Send a payload file to a device through the provider API.",
    discussion: """
      Examples:

        pushrelay send payloads/alert.json --to phone --topic com.example.app
        pushrelay send payloads/silent.apns --to 4fca…e9
        echo '{"aps":{"badge":3}}' | pushrelay send - --to phone

      Push type and priority are inferred from the payload unless given: what only asks for a \
      background update is sent as background with priority 5. In an .apns file as of Xcode \
      "Simulator Target Bundle" gives the topic. The exit status is 0 only when the relay \
      answers 200.
      """)

  @Argument(help: "A .json or .apns file; - is standard input.")
  var file: String

  @Option(help: "Device token in hexadecimal, or the NAME of a 'pushrelay device' of this state.")
  var to: String

  @Option(help: "apns-topic (default: from the file, or the only app of the named device).")
  var topic: String?

  @Option(help: "apns-push-type: alert, background, voip, … (default: from the payload).")
  var pushType: String?

  @Option(help: "apns-priority: 10, 5 or 1 (default: 5 for a silent push, else none: 10).")
  var priority: Int?

  @Option(
    help: "apns-expiration: UNIX seconds, +SECONDS from the relay's now, 0: try once, never store.")
  var expiration: String?

  @Option(help: "apns-collapse-id, at most 64 bytes.")
  var collapseId: String?

  @Option(help: "apns-id, a UUID (default: the relay makes one).")
  var id: String?

  @OptionGroup var signing: ProviderOptions

  @Option(
    help: ArgumentHelp(
      "Client certificate in PEM instead of a token; see 'pushrelay certs client'.",
      valueName: "file"))
  var certificate: String?

  @Option(
    help: ArgumentHelp(
      "Its private key (default: the certificate's name with .key).", valueName: "file"))
  var certificateKey: String?

  @Flag(help: "Print the answer as JSON.")
  var json = false

  @OptionGroup var connection: ConnectionOptions

  func run() async throws {
    let payload = try StandardInput.payload(file, "a .json or .apns file")
    let request = try await makeRequest(payload)
    let providerToken =
      certificate == nil
      ? try signing.token(connection.files.keys, topic: request.topic) : nil
    let client = try await connection.connect(
      to: connection.find(provider: signing.provider, for: request.token), identity: try identity())
    let answer = try await client.push(request, providerToken: providerToken)
    await client.close()
    try report(answer)
  }

  // MARK: Details

  private func makeRequest(_ payload: [UInt8]) async throws -> PushRequest {
    let named = try await DeviceFile.find(to, state: connection.files.state)
    // Before the topic: a mistyped name is not a missing topic.
    guard named != nil || DeviceToken(hexadecimal: to) != nil else {
      throw CommandError(
        "no device \(to) in \(connection.files.state)/devices, and it is no device token (2 to 100 "
          + "bytes in hexadecimal): 'pushrelay device \(to)' makes one")
    }
    let topic = topic ?? Self.simulatorBundle(payload) ?? named?.onlyTopic
    guard topic != nil || certificate != nil else {
      let known = named?.apps.keys.sorted().joined(separator: ", ") ?? ""
      throw CommandError(
        "no topic: give --topic"
          + (known.isEmpty ? ", such as --topic com.example.app" : "; \(to) has \(known)"))
    }
    var request = PushRequest(token: try token(named, topic: topic), payload: payload)
    request.topic = topic
    request.pushType = pushType
    request.priority = priority
    request.expirationSeconds = try await expirationSeconds()
    request.collapseID = collapseId
    request.id = id
    infer(&request)
    return request
  }

  /// Behind a bundle id, the topic of its Live Activities.
  private static let activities = ".push-type.liveactivity"

  private func token(_ named: DeviceFile?, topic: String?) throws -> String {
    guard let named else { return to }
    if let topic, topic.hasSuffix(Self.activities) {
      throw CommandError(
        "give the token of the Live Activity itself as --to: 'pushrelay inspect \(to)' lists it")
    }
    guard let topic, let token = named.token(for: topic) else {
      throw CommandError(
        "the device \(to) has no app \(topic ?? ""); 'pushrelay device \(to) --topic "
          + "\(topic ?? "TOPIC")' registers it")
    }
    return token
  }

  /// Fills in missing header fields. An unreadable payload is sent unchanged: the relay says what
  /// is wrong.
  private func infer(_ request: inout PushRequest) {
    guard let scan = try? scanPayload(request.payload.span) else { return }
    let topicBytes = Array((request.topic ?? "").utf8)
    if request.pushType == nil {
      request.pushType = PushType.inferred(from: scan, topic: topicBytes.span).wireName
    }
    let typeBytes = Array((request.pushType ?? "").utf8)
    guard let type = PushType(wireName: typeBytes.span) else { return }
    let classification = Classification(
      scan, pushType: type, topic: topicBytes.span, priority: .powerAware)
    if classification.kind == .silent, request.priority == nil { request.priority = 5 }
    let misplaced = PayloadWarning.activityOfAnotherType
    if classification.warnings.contains(misplaced) { Console.log("note: \(misplaced.text)") }
  }

  private func expirationSeconds() async throws -> Int64? {
    guard let expiration else { return nil }
    if expiration.hasPrefix("+"), let seconds = Int64(expiration.dropFirst()),
      seconds >= 0, seconds < 1 << 40
    {
      return await now().milliseconds / 1000 + seconds
    }
    guard !expiration.hasPrefix("+"), let seconds = Int64(expiration) else {
      throw CommandError("--expiration \(expiration): give UNIX seconds, or +SECONDS from now")
    }
    return seconds
  }

  /// By the relay's clock, which may be virtual; by the machine's, if the relay of this state
  /// directory cannot be asked.
  private func now() async -> Instant {
    let relay = ControlClient(state: connection.files.state)
    let clock = try? await relay.ask(ClockStatus.self, .GET, "/v1/clock", printing: false)
    return clock.map { Instant(milliseconds: $0.now) } ?? WallClock.now
  }

  private func identity() throws -> TLSIdentity? {
    guard let certificate else { return nil }
    let stem = certificate.hasSuffix(".pem") ? String(certificate.dropLast(4)) : certificate
    let keyPath = certificateKey ?? stem + ".key"
    let chain = try PrivateFile.read(certificate, else: "'pushrelay certs client' makes one")
    let privateKey = try PrivateFile.read(keyPath, else: "name the key with --certificate-key")
    return try TLSIdentity(certificateChainPEM: chain, privateKeyPEM: privateKey)
  }

  /// The key by which Xcode's simulator finds the app.
  private static func simulatorBundle(_ payload: [UInt8]) -> String? {
    struct Root: Decodable {
      var bundle: String?
      enum CodingKeys: String, CodingKey { case bundle = "Simulator Target Bundle" }
    }
    return (try? JSONDecoder().decode(Root.self, from: Data(payload)))?.bundle
  }

  private func report(_ answer: PushAnswer) throws {
    if json {
      try Console.say(object: [
        "status": answer.status, "apnsId": answer.id, "apnsUniqueId": answer.uniqueID,
        "uniqueId": answer.uniqueID,
        "reason": answer.reason, "timestamp": answer.timestamp,
      ])
    } else {
      var rows = [["status", String(answer.status)]]
      if let id = answer.id { rows.append(["apns-id", id]) }
      if let id = answer.uniqueID { rows.append(["apns-unique-id", id]) }
      if let reason = answer.reason { rows.append(["reason", reason]) }
      if let since = answer.timestamp {
        let moment = Instant(milliseconds: since)
        // How long ago is by the relay's clock.
        let isVirtual = ReadyFile.running(connection.files.state)?.isVirtual == true
        rows.append([
          "since", isVirtual ? moment.iso8601 : moment.described(at: WallClock.now),
        ])
      }
      Console.say(table: rows)
    }
    guard answer.status != 200 else { return }
    let reason = answer.reason ?? "no reason"
    let row = Rejection.allCases.first { $0.reason == reason }?.row
    let advice = row.map { ": \($0.text); \($0.advice.rawValue)" } ?? "; is this a relay?"
    throw CommandError("the relay refused the push with \(answer.status) \(reason)\(advice)")
  }
}

extension DeviceFile {
  var onlyTopic: String? { apps.count == 1 ? apps.keys.first : nil }

  /// The token of the app that a topic belongs to, with or without its suffix.
  func token(for topic: String) -> String? {
    if let token = apps[topic] { return token }
    let bytes = Array(topic.utf8)
    return apps.first { TopicList([$0.key], coversSuffixes: true).contains(bytes.span) }?.value
  }
}
