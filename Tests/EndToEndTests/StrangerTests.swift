import Foundation
import Testing

/// What somebody without any credentials can do to a relay.
@Suite("Strangers", .serialized, .timeLimit(.minutes(10))) struct StrangerTests {
  /// Bytes that the relay may keep per byte sent, beyond what a connection costs that says hello
  /// and nothing else. A head that HPACK makes 14 bytes of costs a stream of libnghttp2, a place
  /// for its request and an answer: more than elsewhere, and bounded by `Limits.refusedRequests`.
  private static let heldPerSent = [
    ("bearers", 8), ("few-streams", 8), ("bodies", 8), ("push-bodies", 8), ("pushes", 16),
    ("push-indexed", 16), ("unread-answers", 24),
  ]
  /// What each connection may have on top, about as much as one that only says hello.
  private static let allowanceBytes = 32_768

  @Test(arguments: heldPerSent)
  func keepLittleMemory(kind: String, heldPerSent: Int) async throws {
    try await RelayProcess.run(RelaySetup(arguments: ["--store", "memory"], plaintext: true)) {
      relay in
      let isProvider = kind.contains("push") || kind == "unread-answers"
      let said = try await Program.run(
        "python3",
        [
          Program.client("pin.py"), isProvider ? relay.provider : relay.device, kind, "150",
          "\(relay.processID)",
        ]
      ).checked("pin.py")
      let words = said.split(whereSeparator: \.isWhitespace).map(String.init)
      let held = try #require(words.count == 4 ? Int(words[1]) : nil, "\(said)")
      let sent = try #require(Int(words[3]), "\(said)")
      #expect(held <= Self.allowanceBytes + heldPerSent * sent, "\(said)")
    }
  }

  /// Of the 16 that are kept; the journal, say, opens one now and then.
  private static let spare = 12

  private static let admin = RelaySetup(
    arguments: ["--store", "memory", "--admin", "127.0.0.1:0"], plaintext: true)

  private func doors(_ mode: String, _ arguments: String...) async throws -> String {
    try await Program.run("python3", [Program.client("doors.py"), mode] + arguments)
      .checked("doors.py \(mode)")
  }

  /// The number behind each word of a line.
  private func numbers(_ line: String) -> [String: Int] {
    let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
    return Dictionary(
      zip(words, words.dropFirst()).compactMap { word, next in Int(next).map { (word, $0) } },
      uniquingKeysWith: { first, _ in first })
  }

  /// Whatever is asked for without the token, and however it is spelled, ends at the door.
  @Test func findNoSpellingThatOpensTheAdminAPI() async throws {
    try await RelayProcess.run(Self.admin) { relay in
      let said = try await doors("spellings", relay.admin)
      #expect(said.hasPrefix("asked "), "\(said.prefix(2000))")
      #expect(try #require(numbers(said)["asked"]) > 10_000)
      #expect(try await Admin(relay)("GET", "/v1/devices").body.contains(#""devices":[]"#))
    }
  }

  private static let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  /// A page of another port of this machine, in a real browser.
  @Test(.enabled(if: chromium != nil)) func makeNoPushByAPage() async throws {
    try await RelayProcess.run(Self.admin) { relay in
      let said = try await doors("page", relay.admin, try #require(Self.chromium))
      // The page can not see more than that there was an answer; the relay can.
      #expect(said.hasPrefix("said: ") && !said.contains(" 200"), "\(said)")
      #expect(try await Admin(relay)("GET", "/v1/devices").body.contains(#""devices":[]"#))
    }
  }

  /// 1,024 connections that ask 4,000 times each and read nothing.
  @Test func getNothingForWhatTheyDoNotRead() async throws {
    try await RelayProcess.run(Self.admin) { relay in
      let said = try await doors("unread", relay.admin, "\(relay.processID)")
      let found = numbers(said)
      #expect(try #require(found["grew"]) < 60_000_000, "\(said)")
      #expect(try #require(found["kept"]) < 20_000_000, "\(said)")
      // One that was not answered counts as 1000 s. Beside other work a second is not asserted.
      #expect(try #require(found["median"]) < 1000, "\(said)")
      #expect(try #require(found["slowest"]) < 30_000, "\(said)")
      #expect(try #require(found["left"]) <= 2, "\(said)")
    }
  }

  /// At the end of the descriptors nothing is accepted, and nothing is tried without end. Some are
  /// left: libdispatch ends a process that cannot open a file.
  @Test(arguments: ["admin", "provider", "device"])
  func takeAllDescriptors(listener: String) async throws {
    var setup = Self.admin
    setup.openFiles = 128
    try await RelayProcess.run(setup) { relay in
      let address =
        switch listener {
        case "admin": relay.admin
        case "provider": relay.provider
        default: relay.device
        }
      let said = try await doors(
        "descriptors", address, "\(relay.processID)", "128", relay.admin)
      #expect(try #require(numbers(said)["ticks"]) < 50, "\(said)")
      #expect(try #require(numbers(said)["left"]) >= Self.spare, "\(said)")
      #expect(said.contains("answered True"), "\(said)")
    }
  }

  /// Whoever keeps a connection alive without ever saying who it is makes room for others.
  @Test func makeRoomWhateverTheySend() async throws {
    var setup = Self.admin
    setup.openFiles = 128
    try await RelayProcess.run(setup) { relay in
      let said = try await doors("pinging", relay.provider, "\(relay.processID)", "128")
      #expect(said == "answered True\n", "\(said)")
    }
  }

  /// Far more streams than one may open, in one go: all are looked at, turn by turn, those above
  /// the limit are refused, and the connection lives. `ConnectionHandlerTests` counts the turns.
  @Test func areRefusedTurnByTurn() async throws {
    let arguments = ["--store", "memory", "--threads", "1"]
    try await RelayProcess.run(RelaySetup(arguments: arguments, plaintext: true)) { relay in
      let said = try await Program.run(
        "python3", [Program.client("flood.py"), relay.provider, "20000"]
      ).checked("flood.py")
      let words = said.split(whereSeparator: \.isWhitespace).map(String.init)
      #expect(words.count == 4 && Int(words[1]) ?? 0 > 0, "\(said)")
      // It was 1.3 s before turns had an end.
      #expect(Int(words.last ?? "") ?? .max < 1000, "\(said)")
    }
  }

  /// In a directory that others can enter, under a mask that keeps nobody out.
  @Test func seeNoPrivateFileEvenForAMoment() async throws {
    let said = try await Program.run("python3", [Program.client("modes.py"), Program.pushrelay])
      .checked("modes.py")
    #expect(said.hasPrefix("looked "), "\(said)")
    #expect(said.contains("warned 4"), "\(said)")
  }

  /// A client that ends TLS first and waits for the relay's answer gets it at once.
  @Test(arguments: ["idle provider", "idle device", "listening device"])
  func areAnsweredWhenTheyClose(kind: String) async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      var arguments = [
        Program.client("close.py"), kind == "idle provider" ? relay.provider : relay.device,
        relay.certificateAuthority,
      ]
      if kind == "listening device" {
        arguments += ["--stream", "/v1/devices/\(phone.id)/stream", phone.secret]
      }
      let said = try await Program.run("python3", arguments).checked("close.py")
      #expect(said == "closed\n")
      if kind == "listening device" { #expect(!(try await phone.report().connected)) }
    }
  }
}
