import Foundation
import Logging
import Primitives
import ProviderCredentials
import RelayClient
import RelayCore
import RelaySetup
import TestSupport
import Testing

@testable import RelayServer

/// Keys that come and go while a relay runs, on more than one event loop.
@Suite struct ProviderKeyFollowingTests {
  private static let topic = "com.example.app"
  private let temporary: TemporaryDirectory
  private let keys: ProviderKeyDirectory

  init() throws {
    temporary = try TemporaryDirectory()
    keys = ProviderKeyDirectory(path: temporary.path + "/keys")
  }

  private func run(
    logger: Logger? = nil, _ body: (Relay.Addresses) async throws -> Void
  ) async throws {
    try await LoopbackRelay.run(threads: 3, logger: logger) { configuration in
      configuration.auth = .token
      configuration.state = temporary.path
    } _: { addresses, _ in
      try await body(addresses)
    }
  }

  private func token(_ keyID: String) throws -> String {
    try keys.signer(forKeyID: keyID).token(
      issuedAtSeconds: RelayClock.wall.milliseconds / 1000)
  }

  private func push(
    _ providerToken: String, on provider: RelayClient
  ) async throws -> PushAnswer {
    var push = PushRequest(token: String(repeating: "ab", count: 32), payload: Array("{}".utf8))
    push.topic = Self.topic
    push.pushType = "alert"
    return try await provider.push(push, providerToken: providerToken)
  }

  /// Nobody waits: what `key new` has registered is good for the next request, on whichever loop
  /// its connection lives, also after that loop has refused the very same token.
  @Test func aNewKeyCountsAtOnceOnEveryLoop() async throws {
    let other = ProviderKeyDirectory(path: temporary.path + "/other")
    try other.create(.init(keyID: "LATERKEY01", teamID: "TEAM123456"))
    let early = try other.signer(forKeyID: "LATERKEY01").token(
      issuedAtSeconds: RelayClock.wall.milliseconds / 1000)
    try await run { addresses in
      var providers: [RelayClient] = []
      for _ in 0..<6 { providers.append(try await LoopbackRelay.connect(addresses.provider)) }
      for provider in providers {
        #expect(try await push(early, on: provider).reason == "InvalidProviderToken")
      }
      try keys.add(
        .init(keyID: "LATERKEY01", teamID: "TEAM123456"),
        copying: other.path + "/AuthKey_LATERKEY01.p8")
      for provider in providers {
        #expect(try await push(early, on: provider).reason == "BadDeviceToken")
      }
      for number in 0..<4 {
        let keyID = "NEWKEY000\(number)"
        try keys.create(.init(keyID: keyID, teamID: "TEAM123456"))
        let provider = try await LoopbackRelay.connect(addresses.provider)
        #expect(try await push(try token(keyID), on: provider).reason == "BadDeviceToken")
      }
    }
  }

  @Test func aRelayInDevelopmentHasAFirstKey() async throws {
    try await run { addresses in
      let keyID = try #require(try keys.list().first).keyID
      let provider = try await LoopbackRelay.connect(addresses.provider)
      #expect(try await push(try token(keyID), on: provider).reason == "BadDeviceToken")
    }
    #expect(try keys.list().count == 1)
    for name in try FileManager.default.contentsOfDirectory(atPath: keys.path) {
      try FileManager.default.removeItem(atPath: keys.path + "/" + name)
    }
    try await run { _ in
      let entries = try keys.list()
      #expect(entries.isEmpty)
    }
  }

  /// The finding: with the file of one key gone, every key stayed in force, at level debug.
  @Test func aKeyWhoseFileIsGoneIsDroppedTheRestStaysAndItIsLoggedOnce() async throws {
    for keyID in ["FIRSTKEY01", "SECONDKEY1"] {
      try keys.create(.init(keyID: keyID, teamID: "TEAM123456"))
    }
    let (events, feed) = AsyncStream.makeStream(of: LogEntry.self)
    let logger = Logger(label: "test") { _ in FeedingLogHandler(feed: feed) }
    try await run(logger: logger) { addresses in
      let (first, second) = (try token("FIRSTKEY01"), try token("SECONDKEY1"))
      let gone = try await LoopbackRelay.connect(addresses.provider)
      let rest = try await LoopbackRelay.connect(addresses.provider)
      #expect(try await push(first, on: gone).reason == "BadDeviceToken")
      #expect(try await push(second, on: rest).reason == "BadDeviceToken")
      try FileManager.default.removeItem(atPath: keys.path + "/AuthKey_FIRSTKEY01.p8")
      var log = events.makeAsyncIterator()
      var errors: [LogEntry] = []
      while let entry = await log.next() {
        if entry.level == .error { errors.append(entry) }
        if entry.message == "provider key not used" { break }
      }
      #expect(errors.map { $0.metadata["key"] } == ["FIRSTKEY01"])
      // What was logged is in force on all loops after what they were sent before it.
      let refused = try await push(first, on: gone)
      #expect(refused.reason == "InvalidProviderToken", "\(refused)")
      #expect(try await push(second, on: rest).reason == "BadDeviceToken")
      // The next thing to be told of does not bring the first up again.
      _ = try temporary.write("no key", to: "keys/AuthKey_SECONDKEY1.p8")
      while let entry = await log.next() {
        guard entry.level == .error else { continue }
        #expect(entry.metadata["key"] == "SECONDKEY1")
        break
      }
      // Nor does a file that says nothing at all, which leaves what is in force.
      _ = try temporary.write("{", to: "keys/keys.json")
      while let entry = await log.next() {
        guard entry.level == .error else { continue }
        #expect(entry.message == "provider keys cannot be read: those in force stay")
        break
      }
    }
  }
}

/// A line of a relay's log.
struct LogEntry: Sendable {
  var level: Logger.Level
  var message: String
  var metadata: [String: String]
}

/// Hands on what is logged, so that a test waits for a line and for nothing else.
struct FeedingLogHandler: LogHandler {
  let feed: AsyncStream<LogEntry>.Continuation
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.debug

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    feed.yield(
      LogEntry(
        level: event.level, message: event.message.description,
        metadata: (event.metadata ?? [:]).mapValues { "\($0)" }))
  }
}
