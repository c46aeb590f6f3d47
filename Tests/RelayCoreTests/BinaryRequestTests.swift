import Primitives
import Testing

@testable import RelayCore

/// Frames of the binary provider API as its clients write them.
enum BinaryFrame {
  static let token = [UInt8](1...32)
  static let payload = Array(#"{"aps":{"alert":"Hello"}}"#.utf8)

  static func number<Number: FixedWidthInteger>(_ value: Number) -> [UInt8] {
    stride(from: Number.bitWidth - 8, through: 0, by: -8).map {
      UInt8(truncatingIfNeeded: value >> $0)
    }
  }

  static func data(_ bytes: [UInt8]) -> [UInt8] { number(UInt16(bytes.count)) + bytes }

  static func simple(token: [UInt8] = token, payload: [UInt8] = payload) -> [UInt8] {
    [0] + data(token) + data(payload)
  }

  static func enhanced(
    _ identifier: UInt32, expiration: UInt32 = 9, token: [UInt8] = token,
    payload: [UInt8] = payload
  ) -> [UInt8] {
    [1] + number(identifier) + number(expiration) + data(token) + data(payload)
  }

  static func items(_ items: [(UInt8, [UInt8])]) -> [UInt8] {
    let frame = items.flatMap { [$0.0] + data($0.1) }
    return [2] + number(UInt32(frame.count)) + frame
  }

  /// Command 2 with all items, in Apple's order.
  static func full(
    _ identifier: UInt32, token: [UInt8] = token, payload: [UInt8] = payload, priority: UInt8 = 10
  ) -> [UInt8] {
    items([
      (1, token), (2, payload), (3, number(identifier)), (4, number(UInt32(9))), (5, [priority]),
    ])
  }
}

@Suite struct BinaryRequestTests {
  private typealias Frame = BinaryFrame

  private enum Found: Equatable {
    case push(BinaryRequest)
    case refused(BinaryRefusal)
  }

  /// What a reader makes of bytes that come in pieces; nothing behind a refusal.
  private static func read(_ pieces: some Sequence<ArraySlice<UInt8>>) -> [Found] {
    var reader = BinaryFrameReader()
    var found: [Found] = []
    for piece in pieces {
      reader.append(piece)
      do throws(BinaryRefusal) {
        while let request = try reader.next() { found.append(.push(request)) }
      } catch {
        return found + [.refused(error)]
      }
      // Less than a frame waits for more.
      guard reader.count <= Limits.binaryFrameBytes + 5 else {
        Issue.record("\(reader.count) bytes are kept")
        return found
      }
    }
    return found
  }

  private static func read(_ bytes: [UInt8]) -> [Found] { read([bytes[...]]) }

  private static let pushes = [
    (Frame.simple(), BinaryRequest(token: parsed, payload: Frame.payload)),
    (
      Frame.enhanced(7, expiration: 0),
      BinaryRequest(identifier: 7, token: parsed, payload: Frame.payload, expiration: 0)
    ),
    (
      Frame.full(.max, priority: 5),
      BinaryRequest(
        identifier: .max, token: parsed, payload: Frame.payload, expiration: 9,
        priority: .powerAware)
    ),
    // What it may leave out, in an order of its own.
    (
      Frame.items([(2, Frame.payload), (1, Frame.token)]),
      BinaryRequest(identifier: 0, token: parsed, payload: Frame.payload)
    ),
    (
      Frame.simple(payload: [UInt8](repeating: 32, count: 256)),
      BinaryRequest(token: parsed, payload: [UInt8](repeating: 32, count: 256))
    ),
    (
      Frame.full(1, payload: [UInt8](repeating: 32, count: 2048)),
      BinaryRequest(
        identifier: 1, token: parsed, payload: [UInt8](repeating: 32, count: 2048), expiration: 9)
    ),
  ]
  private static let parsed = DeviceToken(bytes: Frame.token.span)!

  /// Each with why it is refused, and the name it is refused by.
  private static let refused: [([UInt8], BinaryFrameError, UInt32?)] = [
    ([3], .unknownCommand, 0),
    (Array("GET / HTTP/1.1".utf8), .unknownCommand, 0),
    ([2] + Frame.number(UInt32(Limits.binaryFrameBytes + 1)), .frameTooLong, 0),
    ([2] + Frame.number(UInt32.max), .frameTooLong, 0),
    ([2, 0, 0, 0, 5, 3, 0, 4, 0, 0], .itemCutOff, 0),
    ([2, 0, 0, 0, 9] + [3, 0, 4, 0, 0, 0, 6] + [1, 0], .itemCutOff, 6),
    (Frame.items([(3, Frame.number(UInt32(6))), (6, [])]), .unknownItem, 6),
    (Frame.items([(0, [1]), (1, Frame.token), (2, Frame.payload)]), .unknownItem, 0),
    (Frame.items([(5, [10]), (5, [10]), (3, Frame.number(UInt32(6)))]), .itemTwice, 6),
    (Frame.items([(3, [6])]), .itemSize, 0),
    (Frame.items([(3, Frame.number(UInt32(6))), (4, Frame.number(UInt64(1)))]), .itemSize, 6),
    (Frame.items([(5, []), (3, Frame.number(UInt32(6)))]), .itemSize, 6),
    (Frame.full(6, priority: 1), .badPriority, 6),
    (Frame.simple(token: []), .missingToken, nil),
    (Frame.enhanced(6, token: []), .missingToken, 6),
    (Frame.full(6, token: []), .missingToken, 6),
    (Frame.items([]), .missingToken, 0),
    (Frame.simple(payload: []), .missingPayload, nil),
    (Frame.enhanced(6, payload: []), .missingPayload, 6),
    (Frame.full(6, payload: []), .missingPayload, 6),
    (Frame.simple(token: [1]), .tokenSize, nil),
    (Frame.enhanced(6, token: Frame.token + [1]), .tokenSize, 6),
    (Frame.full(6, token: Array(Frame.token.dropLast())), .tokenSize, 6),
    (Frame.simple(payload: [UInt8](repeating: 32, count: 257)), .payloadSize, nil),
    (Frame.enhanced(6, payload: [UInt8](repeating: 32, count: 257)), .payloadSize, 6),
    (Frame.full(6, payload: [UInt8](repeating: 32, count: 2049)), .payloadSize, 6),
    (Frame.full(6, payload: [UInt8](repeating: 32, count: 65_535)), .payloadSize, 6),
  ]

  @Test func everyFormatIsRead() {
    for (bytes, expected) in Self.pushes { #expect(Self.read(bytes) == [.push(expected)]) }
  }

  @Test func everyMistakeHasItsNameAndIsTold() {
    for (bytes, problem, identifier) in Self.refused {
      let expected = BinaryRefusal(identifier: identifier, problem: problem)
      #expect(Self.read(bytes) == [.refused(expected)], "\(bytes.prefix(20))")
    }
    #expect(Set(Self.refused.map(\.1)) == Set(BinaryFrameError.allCases))
  }

  /// Commands 0 and 1 say their lengths in front: what is too long is not waited for.
  @Test func lengthsAreJudgedBeforeWhatTheyAnnounce() {
    #expect(
      Self.read([0, 0xFF, 0xFF]) == [.refused(.init(identifier: nil, problem: .tokenSize))])
    let announced = Array(Frame.enhanced(6, payload: [UInt8](repeating: 0, count: 300)).prefix(45))
    #expect(Self.read(announced) == [.refused(.init(identifier: 6, problem: .payloadSize))])
  }

  @Test func atEverySplitTheFramesAreTheSame() {
    let bytes = Self.pushes.prefix(4).flatMap(\.0) + Frame.full(6, token: [1])
    let whole = Self.read(bytes)
    #expect(whole.count == 5)
    for place in 1..<bytes.count {
      #expect(Self.read([bytes[..<place], bytes[place...]]) == whole, "split at \(place)")
    }
    #expect(Self.read(bytes.indices.map { bytes[$0...$0] }) == whole)
  }

  /// Whatever becomes of the bytes: pieces change nothing, and little is kept.
  @Test func changedBytesAreReadTheSameInPieces() {
    let frames = Self.pushes.prefix(4).map(\.0) + Self.refused.prefix(20).map(\.0)
    for seed in UInt64(0)..<3000 {
      var random = SeededRandom(seed: seed)
      var bytes = (0..<3).flatMap { _ in frames[Int(random.next() % UInt64(frames.count))] }
      for _ in 0..<(random.next() % 4) {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      let size = 1 + Int(random.next() % 40)
      let pieces = stride(from: 0, to: bytes.count, by: size).map {
        bytes[$0..<min($0 + size, bytes.count)]
      }
      #expect(Self.read(pieces) == Self.read(bytes), "seed \(seed)")
    }
  }

  /// The same push by headers is the same notification.
  @Test func aFrameIsWhatItsHeadersWouldBe() throws {
    let now = Instant(unixSeconds: 1_767_225_600)
    let topic = Topic("com.example.app")!
    let id = UniqueID(generator: 1, number: 1)
    let payloads = [
      #"{"aps":{"alert":"x"}}"#, #"{"aps":{"content-available":1}}"#,
      #"{"aps":{"content-available":1,"alert":"x"}}"#,
    ]
    for (payload, priority) in payloads.flatMap({ [($0, Priority.immediate), ($0, .powerAware)] }) {
      for expiration in [nil, 0, 1_767_225_700] as [UInt32?] {
        let request = BinaryRequest(
          identifier: 1, token: Self.parsed, payload: Array(payload.utf8), expiration: expiration,
          priority: priority)
        var framed = ProviderRequestHead(request)
        var head = ProviderRequestHead()
        var recent: Topic?
        func field(_ name: FieldName, _ value: String) {
          let bytes = Array(value.utf8)
          head.parse(name, bytes.span, recentTopic: &recent)
        }
        field(.path, "/3/device/" + Self.parsed.hexadecimal)
        field(.apnsPriority, "\(priority.rawValue)")
        if let expiration { field(.apnsExpiration, "\(expiration)") }
        var notes = CaseSet<PayloadWarning>()
        var framedNotes = notes
        let body = Array(payload.utf8)
        let expected = try head.notification(
          topic: topic, body: body, uniqueID: id, isStrict: false, at: now, warnings: &notes)
        let found = try framed.notification(
          topic: topic, body: body, uniqueID: id, isStrict: false, at: now, warnings: &framedNotes)
        #expect(found == expected)
        // This protocol has no push types that could be missing.
        #expect(framedNotes == notes.subtracting(CaseSet(.pushTypeInferred)))
      }
    }
  }

  /// `strict` refuses what Apple calls an error, and not that a push type is missing.
  @Test func strictLooksAtThePriorityOnly() throws {
    func outcome(_ payload: String) throws -> Rejection? {
      var head = ProviderRequestHead(BinaryRequest(token: Self.parsed, payload: []))
      var notes = CaseSet<PayloadWarning>()
      do throws(Rejection) {
        _ = try head.notification(
          topic: Topic("a.b")!, body: Array(payload.utf8),
          uniqueID: UniqueID(generator: 1, number: 1), isStrict: true,
          at: Instant(unixSeconds: 1), warnings: &notes)
        return nil
      } catch {
        return error
      }
    }
    #expect(try outcome(#"{"aps":{"alert":"x"}}"#) == nil)
    #expect(try outcome(#"{"aps":{"content-available":1}}"#) == .badPriority)
  }
}
