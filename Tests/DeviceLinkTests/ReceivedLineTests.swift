import DeviceLink
import Primitives
import RelayCore
import Testing

struct ReceivedLineTests {
  private func read(_ line: DownLine) -> ReceivedLine? {
    var written: [UInt8] = []
    line.write(to: &written)
    return ReceivedLine(written.span)
  }

  @Test func roundTripsOfNotifications() throws {
    let collapseIDs = ["", "plain", "a\"b\\c/d", "Zoë 😀", "\u{1}\u{1f}\t\u{7f}"]
    let payloads = [
      #"{"aps":{"content-available":1}}"#, #"{}"#, #"{"a":"\"} x {\\","b":[{"c":null}]}"#,
      #"{"type":"empty","id":"x","payload":{"via":"none"}}"#,
    ]
    for via in Via.allCases {
      for kind in NotificationClass.allCases {
        for type in PushType.allCases {
          for collapseID in collapseIDs {
            for payload in payloads {
              let delivery = try DownLineTests.delivery(
                payload: payload, collapseID: bytes(collapseID), pushType: type,
                notificationClass: kind, via: via)
              guard case .notification(let received) = read(.notification(delivery)) else {
                Issue.record("not read: \(payload)")
                return
              }
              #expect(received.id == .other)
              #expect(received.uniqueID == .sample)
              #expect(received.topic == "com.example.app-1_x")
              #expect(received.pushType == type.wireName)
              #expect(received.priority == 5)
              #expect(received.notificationClass == kind.name)
              #expect(received.via == via.name)
              #expect(received.acceptedAtMilliseconds == 5)
              #expect(received.sentAtMilliseconds == 6)
              #expect(received.expiresAtMilliseconds == 99)
              #expect(received.collapseID == collapseID)
              #expect(received.payload == payload)
            }
          }
        }
      }
    }
  }

  @Test func roundTripsOfTheOthers() throws {
    let device = DeviceID(.sample)
    for isVirtual in [false, true] {
      let hello = DownLine.hello(
        device: device, keepAlive: .seconds(7), time: Instant(milliseconds: 1),
        isVirtual: isVirtual)
      #expect(
        read(hello)
          == .hello(
            device: device.description, keepAliveSeconds: 7, time: 1, isVirtual: isVirtual,
            takesDecisions: true))
    }
    #expect(
      read(.barrier(number: 7, time: Instant(milliseconds: 8))) == .barrier(number: 7, time: 8))
    let checkpoints: [CheckpointLine] = [
      .saved(number: 3), .dropped(number: .max),
      .rewound(number: 3, epoch: 7, time: Instant(milliseconds: 9)),
    ]
    for line in checkpoints { #expect(read(.checkpoint(line)) == .checkpoint(line)) }
    for wrong in [#""type":"checkpoint""#, #""type":"rewound","number":1,"epoch":-1,"time":1"#] {
      #expect(ReceivedLine(Array("{\(wrong)}".utf8).span) == nil)
    }
    #expect(read(.empty) == .empty)
    #expect(read(.keepAlive) == .keepAlive)
    for reason in CloseReason.allCases {
      #expect(read(.bye(reason)) == .bye(reason: reason.name))
    }
    for problem in [UpLine.ParsingError.tooLong, .unknownValue(key: "power")] {
      #expect(read(.error(problem)) == .error(reason: problem.text))
    }
  }

  @Test func aOnceOnlyNotificationHasNoExpiry() throws {
    guard
      case .notification(let received) = read(
        .notification(try DownLineTests.delivery(expiration: .once)))
    else {
      Issue.record("not read")
      return
    }
    #expect(received.expiresAtMilliseconds == nil)
    #expect(received.collapseID == "")
  }

  @Test func toleratesWhatItDoesNotKnow() {
    let table: [(String, ReceivedLine?)] = [
      (#"{"type":"later","x":[{}]}"#, .unknown(type: "later")),
      (#"{"x":1,"type":"empty","y":null}"#, .empty),
      (#"{"type":"bye","reason":"a\u00e9\n\ud83d\ude00\/\"\\"}"#, .bye(reason: "aé\n😀/\"\\")),
      (#"{"type":"hello"}"#, .hello(device: "", keepAliveSeconds: 0, time: 0, isVirtual: false)),
      (#"{"type":"barrier","number":-1,"time":0}"#, nil), (#"{"type":"barrier"}"#, nil),
      (#"{"type":"notification"}"#, nil), (#"{"type":7}"#, nil), (#"{"type":""}"#, nil),
      (#"{"type":null}"#, nil), ("{}", nil), ("", nil), ("[1]", nil), ("{\"type\":\"empty\"", nil),
    ]
    for (text, expected) in table {
      #expect(ReceivedLine(bytes(text).span) == expected, "\(text)")
    }
  }

  @Test func randomGarbageNeverTraps() throws {
    var good: [UInt8] = []
    DownLine.notification(try DownLineTests.delivery(collapseID: bytes("c\"d"))).write(to: &good)
    for seed in UInt64(0)..<3_000 {
      var generator = SeededRandom(seed: seed)
      var line = good
      for _ in 0..<Int.random(in: 1...6, using: &generator) {
        line[Int.random(in: line.indices, using: &generator)] = UInt8.random(
          in: 0...255, using: &generator)
      }
      line.removeLast(Int.random(in: 0..<line.count, using: &generator) / 40 * 40)
      _ = ReceivedLine(line.span)
    }
  }
}
