import DeviceLink
import Primitives
import RelayCore
import Testing

struct DownLineTests {
  static func delivery(
    payload: String = #"{"aps":{"alert":"hi"}}"#, collapseID: [UInt8] = [],
    expiration: Expiration = .at(Instant(milliseconds: 99)), pushType: PushType = .alert,
    notificationClass: NotificationClass = .visible, via: Via = .direct, wakesApp: Bool = false,
    topic: String = "com.example.app-1_x"
  ) throws -> Delivery {
    let notification = Notification(
      uniqueID: .sample, apnsID: .other, token: try #require(DeviceToken(hexadecimal: "abcd")),
      topic: try #require(Topic(topic)), notificationClass: notificationClass,
      pushType: pushType, priority: .powerAware, wakesApp: wakesApp, collapseID: collapseID,
      expiration: expiration, payload: bytes(payload))
    return Delivery(
      notification: notification, via: via, acceptedAt: Instant(milliseconds: 5),
      sentAt: Instant(milliseconds: 6))
  }

  static func text(_ line: DownLine) -> String {
    var written: [UInt8] = []
    line.write(to: &written)
    return String(decoding: written, as: UTF8.self)
  }

  @Test func exactTexts() throws {
    let device = DeviceID(.sample)
    let table: [(DownLine, String)] = [
      (
        .hello(device: device, keepAlive: .minutes(15), time: Instant(milliseconds: 7)),
        #"{"type":"hello","device":"\#(UniqueID.sample)","keepAliveSeconds":900,"time":7,"#
          + #""version":"0.9.0","decisions":true}"#
      ),
      (
        .hello(
          device: device, keepAlive: .minutes(15), time: Instant(milliseconds: 7),
          owner: "10.0.0.2:5223"),
        #"{"type":"hello","device":"\#(UniqueID.sample)","keepAliveSeconds":900,"time":7,"#
          + #""version":"0.9.0","decisions":true,"owner":"10.0.0.2:5223"}"#
      ),
      (
        .bye(reason: "moved", owner: "[::1]:5223"),
        #"{"type":"bye","reason":"moved","owner":"[::1]:5223"}"#
      ),
      (
        .hello(
          device: device, keepAlive: .minutes(15), time: Instant(milliseconds: 7), isVirtual: true),
        #"{"type":"hello","device":"\#(UniqueID.sample)","keepAliveSeconds":900,"time":7,"#
          + #""version":"0.9.0","clock":"virtual","decisions":true}"#
      ),
      (
        .barrier(number: 5, time: Instant(milliseconds: 7)),
        #"{"type":"barrier","number":5,"time":7}"#
      ),
      (.checkpoint(.saved(number: 3)), #"{"type":"checkpoint","number":3}"#),
      (
        .checkpoint(.rewound(number: 3, epoch: 7, time: Instant(milliseconds: 9))),
        #"{"type":"rewound","number":3,"epoch":7,"time":9}"#
      ),
      (.checkpoint(.dropped(number: 3)), #"{"type":"checkpoint-dropped","number":3}"#),
      (.empty(), #"{"type":"empty"}"#),
      (.keepAlive(), #"{"type":"keepalive"}"#),
      (.keepAlive(at: Instant(milliseconds: 9)), #"{"type":"keepalive","time":9}"#),
      (
        .error(reason: UpLine.ParsingError.unknownType.text),
        #"{"type":"error","reason":"type is ack, state, keepalive, decision or barrier"}"#
      ),
      (
        .notification(
          try Self.delivery(collapseID: bytes("a\"b"), wakesApp: true)),
        #"{"type":"notification","id":"\#(UniqueID.other)","uniqueId":"\#(UniqueID.sample)","#
          + #""topic":"com.example.app-1_x","pushType":"alert","priority":5,"class":"visible","#
          + #""wakesApp":true,"via":"direct","acceptedAt":5,"sentAt":6,"expiresAt":99,"#
          + #""collapseId":"a\"b","payload":{"aps":{"alert":"hi"}}}"#
      ),
    ]
    for (line, expected) in table { #expect(Self.text(line) == expected + "\n") }
  }

  @Test func payloadsWithLineBreaksStayOneLine() throws {
    let payload = "{\r\n  \"aps\": {\n\t\"alert\": \"a\\nb\"\n}\n}\n"
    let text = Self.text(.notification(try Self.delivery(payload: payload)))
    #expect(text.utf8.count { $0 == UInt8(ascii: "\n") } == 1)
    #expect(text.hasSuffix("}\n"))
    #expect(!text.contains("\r"))
    #expect(text.contains(#""alert": "a\nb""#))
  }

  @Test func aLineHoldsTheLargestNotification() throws {
    let filler = String(repeating: "a", count: Limits.voipPayloadBytes - 10)
    let delivery = try Self.delivery(
      payload: #"{"aps":"\#(filler)"}"#,
      collapseID: [UInt8](repeating: 255, count: Limits.collapseIDBytes),
      topic: String(repeating: "t", count: Limits.topicBytes.upperBound))
    #expect(Self.text(.notification(delivery)).utf8.count <= Limits.lineBytes)
  }
}
