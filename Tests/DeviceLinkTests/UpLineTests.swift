import DeviceLink
import Primitives
import RelayCore
import Testing

struct UpLineTests {
  private static let all: [UpLine] = {
    var lines: [UpLine] = [
      .keepAlive, .ack(id: .sample, outcome: nil), .ack(id: .other, outcome: .newData),
      .ack(id: .other, outcome: .noData), .ack(id: .other, outcome: .failed),
      .ack(id: .other, outcome: .later), .ack(id: .other, outcome: .shown),
      .ack(id: .other, outcome: .notShown(reason: "push-to-start budget")),
      .ack(id: .other, outcome: .notLaunched(reason: "")),
      .ack(id: .other, outcome: .notLaunched(reason: "swiped \"away\"\n\t\\ by Zoë 😀\u{1}")),
      .state(ConditionReport(power: nil, network: nil, screen: nil)),
      .barrier(number: 0, next: nil), .barrier(number: 7, next: Instant(milliseconds: 1)),
      .barrier(number: 1 << 62, next: .never), .decision(id: .sample, .runs),
    ]
    for limit in PushLimit.allCases {
      lines.append(.decision(id: .sample, .waits(limit, until: nil)))
      lines.append(.decision(id: .other, .waits(limit, until: Instant(milliseconds: 9))))
    }
    for power in Power.allCases {
      for network in Network.allCases where network.isConnected {
        for screen in Screen.allCases {
          lines.append(.state(ConditionReport(power: power, network: network, screen: screen)))
        }
      }
      lines.append(.state(ConditionReport(power: power, network: nil, screen: nil)))
    }
    return lines
  }()

  @Test func roundTrips() throws {
    for line in Self.all {
      var written: [UInt8] = []
      line.write(to: &written)
      #expect(written.last == UInt8(ascii: "\n"))
      #expect(written.count { $0 == UInt8(ascii: "\n") } == 1)
      written.removeLast()
      #expect(try UpLine(written.span) == line)
    }
  }

  @Test func roundTripsAtEverySplit() throws {
    var written: [UInt8] = []
    for line in Self.all { line.write(to: &written) }
    for position in 0...written.count {
      var splitter = LineSplitter()
      var read: [UpLine] = []
      for part in [Array(written[..<position]), Array(written[position...])] {
        splitter.receive(part.span) { piece in
          if case .line(let line) = piece, let value = try? UpLine(line.span) { read.append(value) }
        }
      }
      #expect(read == Self.all, "split at \(position)")
    }
  }

  private static let readable: [(String, UpLine)] = [
    (#"{"type":"keepalive","more":{"type":"ack"},"list":[1,2]}"#, .keepAlive),
    (#" { "id" : "\#(UniqueID.sample)" , "type" : "ack" } "#, .ack(id: .sample, outcome: nil)),
    (
      #"{"type":"ack","id":"01234567-89AB-4DEF-8123-456789ABCDEF","outcome":null}"#,
      .ack(id: .sample, outcome: nil)
    ),
    (
      #"{"type":"ack","id":"\#(UniqueID.sample)","outcome":"notLaunched"}"#,
      .ack(id: .sample, outcome: .notLaunched(reason: "unknown"))
    ),
    (#"{"type":"keepalive","\u0074ype":"keepalive"}"#, .keepAlive),
    (#"{"type":"keep\u0061live"}"#, .keepAlive),
    (
      #"{"type":"state","power":"low","screen":null}"#,
      .state(ConditionReport(power: .low, network: nil, screen: nil))
    ),
  ]

  @Test func tolerates() throws {
    for (text, expected) in Self.readable {
      #expect(try UpLine(bytes(text).span) == expected, "\(text)")
    }
  }

  private static let unusable: [(String, UpLine.ParsingError)] = [
    (#"{"type":"barrier"}"#, .missingNumber), (#"{"type":"barrier","number":-1}"#, .missingNumber),
    (#"{"type":"barrier","number":1,"next":"soon"}"#, .unknownValue(key: "next")),
    (#"{"type":"state","network":"airplane"}"#, .unknownValue(key: "network")),
    ("", .notJSONObject), ("x", .notJSONObject), ("[]", .notJSONObject),
    ("{", .notJSONObject), (#"{"type":"keepalive"} x"#, .notJSONObject),
    (#"{"type":"keepalive",}"#, .notJSONObject), (#"{type:"keepalive"}"#, .notJSONObject),
    ("{}", .unknownType), (#"{"type":null}"#, .unknownType), (#"{"type":"hello"}"#, .unknownType),
    (#"{"type":{"a":1}}"#, .unknownType), (#"{"type":"ack"}"#, .missingID),
    (#"{"type":"ack","id":7}"#, .missingID), (#"{"type":"ack","id":"7"}"#, .missingID),
    (
      #"{"type":"ack","id":"\#(UniqueID.sample)","outcome":"great"}"#,
      .unknownValue(key: "outcome")
    ),
    (#"{"type":"state","power":"full"}"#, .unknownValue(key: "power")),
    (#"{"type":"state","network":"none"}"#, .unknownValue(key: "network")),
    (#"{"type":"state","screen":1}"#, .unknownValue(key: "screen")),
  ]

  @Test func refuses() {
    for (text, expected) in Self.unusable {
      #expect(throws: expected, "\(text)") { try UpLine(bytes(text).span) }
    }
    let all = Self.unusable.map(\.1) + [.tooLong]
    for problem in all {
      #expect(!problem.text.isEmpty)
      #expect(!problem.text.contains("\n"))
    }
  }

  @Test func longReasonsAreCutBetweenCharacters() throws {
    let long = String(repeating: "é😀", count: 100)
    var written: [UInt8] = []
    UpLine.ack(id: .sample, outcome: .notLaunched(reason: long)).write(to: &written)
    guard case .ack(_, .notLaunched(let reason)) = try UpLine(written.span) else {
      Issue.record("not an ack")
      return
    }
    #expect(reason.utf8.count <= 200)
    #expect(reason.utf8.count > 190)
    #expect(long.hasPrefix(reason))
  }

  @Test func randomGarbageNeverTraps() {
    let alphabet = bytes(#"{}[]",:\u00d8 ntypeack012.-"#) + [0, 10, 128, 195, 255]
    for seed in UInt64(0)..<3_000 {
      var generator = SeededRandom(seed: seed)
      var line: [UInt8] = []
      if seed % 2 == 0 {
        line = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
          alphabet[Int.random(in: alphabet.indices, using: &generator)]
        }
      } else {
        // A good line with a few bytes changed.
        Self.all[Int.random(in: Self.all.indices, using: &generator)].write(to: &line)
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
          line[Int.random(in: line.indices, using: &generator)] = UInt8.random(
            in: 0...255, using: &generator)
        }
      }
      do throws(UpLine.ParsingError) {
        let read = try UpLine(line.span)
        var written: [UInt8] = []
        read.write(to: &written)
        #expect(try UpLine(written.span) == read, "seed \(seed)")
      } catch {
        #expect(error != .tooLong, "seed \(seed)")
      }
    }
  }
}
