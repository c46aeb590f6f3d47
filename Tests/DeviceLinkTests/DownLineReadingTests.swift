import DeviceLink
import Primitives
import RelayCore
import Testing

struct DownLineReadingTests {
  private func read(_ line: DownLine) -> DownLine? {
    var written: [UInt8] = []
    line.write(to: &written)
    return DownLine(written.span)
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
              guard case .notification(let arrived) = read(.notification(delivery)) else {
                Issue.record("not read: \(payload)")
                return
              }
              let received = arrived.notification
              #expect(received.apnsID == .other)
              #expect(received.uniqueID == .sample)
              #expect(received.topic == delivery.notification.topic)
              #expect(received.pushType == type)
              #expect(received.priority == .powerAware)
              #expect(received.notificationClass == kind)
              #expect(arrived.via == via)
              #expect(arrived.acceptedAt == delivery.acceptedAt)
              #expect(arrived.sentAt == delivery.sentAt)
              #expect(received.expiration == delivery.notification.expiration)
              #expect(received.collapseID == bytes(collapseID))
              #expect(received.payload == bytes(payload))
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
        isVirtual: isVirtual, takesDecisions: !isVirtual, owner: isVirtual ? nil : "n\"1:5223")
      #expect(read(hello) == hello)
    }
    let barrier = DownLine.barrier(number: 7, time: Instant(milliseconds: 8))
    #expect(read(barrier) == barrier)
    let checkpoints: [CheckpointLine] = [
      .saved(number: 3), .dropped(number: .max),
      .rewound(number: 3, epoch: 7, time: Instant(milliseconds: 9)),
    ]
    for line in checkpoints { #expect(read(.checkpoint(line)) == .checkpoint(line)) }
    for wrong in [#""type":"checkpoint""#, #""type":"rewound","number":1,"epoch":-1,"time":1"#] {
      #expect(DownLine(Array("{\(wrong)}".utf8).span) == nil)
    }
    for time in [nil, Instant(milliseconds: 5)] {
      #expect(read(.empty(at: time)) == .empty(at: time))
      #expect(read(.keepAlive(at: time)) == .keepAlive(at: time))
    }
    for reason in CloseReason.allCases {
      for owner in [nil, "n1:5223"] {
        let bye = DownLine.bye(reason: reason.name, owner: owner)
        #expect(read(bye) == bye)
      }
    }
    for line in [DownLine.error(reason: "a \"b\""), .unknown(type: "later")] {
      #expect(read(line) == line)
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
    #expect(received.notification.expiration == .once)
    #expect(received.notification.collapseID.isEmpty)
  }

  @Test func namesOfANewerRelayAreTakenForTheNearest() throws {
    let text =
      #"{"type":"notification","id":"\#(UniqueID.other)","uniqueId":"\#(UniqueID.sample)","#
      + #""topic":"a b","pushType":"later","priority":7,"class":"silent","via":"later"}"#
    guard case .notification(let read) = DownLine(bytes(text).span) else {
      Issue.record("not read")
      return
    }
    #expect(read.via == .direct && read.notification.pushType == .background)
    #expect(read.notification.priority == .immediate && read.notification.topic == .vacant)
  }

  @Test func toleratesWhatItDoesNotKnow() {
    let table: [(String, DownLine?)] = [
      (#"{"type":"later","x":[{}]}"#, .unknown(type: "later")),
      (#"{"x":1,"type":"empty","y":null}"#, .empty()),
      (#"{"type":"bye","reason":"moved","owner":7}"#, .bye(reason: "moved")),
      (#"{"type":"bye","reason":"a\u00e9\n\ud83d\ude00\/\"\\"}"#, .bye(reason: "aé\n😀/\"\\")),
      (
        #"{"type":"hello"}"#,
        .hello(
          device: DeviceID(UniqueID(high: 0, low: 0)), keepAlive: .seconds(0),
          time: Instant(milliseconds: 0), takesDecisions: false)
      ),
      (#"{"type":"barrier","number":-1,"time":0}"#, nil), (#"{"type":"barrier"}"#, nil),
      (#"{"type":"notification"}"#, nil), (#"{"type":7}"#, nil), (#"{"type":""}"#, nil),
      (#"{"type":null}"#, nil), ("{}", nil), ("", nil), ("[1]", nil), ("{\"type\":\"empty\"", nil),
    ]
    for (text, expected) in table {
      #expect(DownLine(bytes(text).span) == expected, "\(text)")
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
      _ = DownLine(line.span)
    }
  }
}
