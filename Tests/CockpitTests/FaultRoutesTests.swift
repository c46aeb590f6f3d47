import AdminAPI
import Primitives
import RelayCore
import RelayFaults
import RelayServer
import Testing

@testable import Cockpit

@Suite struct FaultRoutesTests {
  @Test func wishesAreRead() throws {
    let text = """
      {"at":"provider","match":{"topic":"com.example.app","kind":"silent","token":"00ff"},
      "do":{"answer":"ServiceUnavailable"},"when":{"skip":2,"times":3,"probability":0.5,
      "rate":{"over":100,"per":"1m"}},"seed":7,"for":"5m"}
      """
    var fault = Fault(.provider, .answer(.serviceUnavailable))
    fault.match.topic = "com.example.app"
    fault.match.kind = .silent
    fault.match.token = DeviceToken(hexadecimal: "00ff")
    fault.when.skip = 2
    fault.when.times = 3
    fault.when.probability = 0.5
    fault.when.over = RateLimit(100, per: .minutes(1), burst: 100)
    fault.seed = 7
    fault.duration = .minutes(5)
    #expect(try FaultWish.fault(Array(text.utf8)) == fault)
    let rate = FaultStatus(FaultRule("x", fault, at: Instant(milliseconds: 0))).rate
    #expect(rate?.over == 100 && rate?.per == "1m", "as it was asked for")
  }

  private static let actions: [(at: Fault.Place, text: String, action: Fault.Action)] = [
    (.provider, #""delay":"2s""#, .delay(.seconds(2))), (.provider, #""drop":true"#, .drop),
    (.provider, #""answer":"BadPath""#, .answer(.badPath)),
    (.provider, #""answer":"BadChannelId""#, .answerChannels(.badChannelID)),
    (.provider, #""answer":"Service Unavailable""#, .answerChannels(.serviceUnavailable)),
    (.provider, #""reset":true"#, .reset), (.connection, #""goaway":"once""#, .goAway(.once)),
    (.connection, #""goaway":"twice""#, .goAway(.twice)),
    (.connection, #""goaway":"bare""#, .goAway(.bare)), (.connection, #""reset":true"#, .reset),
    (.connection, #""halfClose":true"#, .halfClose),
    (.connection, #""blackhole":true"#, .blackhole),
    (.connection, #""stall":"5s""#, .stall(.seconds(5))), (.delivery, #""drop":true"#, .drop),
    (.delivery, #""duplicate":true"#, .duplicate), (.journal, #""failWrite":true"#, .failWrite),
  ]

  /// Every word, wherever it can be said, is read as itself.
  @Test func noActionIsTakenForAnother() throws {
    let details: [Fault.Action.Kind: String] = [
      .answer: #""BadTopic""#, .delay: #""1s""#, .stall: #""1s""#, .goAway: #""once""#,
    ]
    for place in Fault.Place.allCases {
      for kind in place.actions {
        let detail = details[kind] ?? "true"
        let body = #"{"at":"\#(place.rawValue)","do":{"\#(kind.rawValue)":\#(detail)}}"#
        #expect(try FaultWish.fault(Array(body.utf8)).action.name == kind.rawValue)
      }
    }
    #expect(
      Set(Fault.Place.allCases.flatMap(\.actions)) == Set(Fault.Action.Kind.allCases))
  }

  @Test(arguments: actions)
  func everyActionCanBeSaid(at place: Fault.Place, text: String, action: Fault.Action) throws {
    let body = #"{"at":"\#(place.rawValue)","do":{\#(text)}}"#
    #expect(try FaultWish.fault(Array(body.utf8)) == Fault(place, action))
  }

  private static let refused: [(body: String, field: String?)] = [
    ("{}", "at"), (#"{"at":"phone","do":{"drop":true}}"#, "at"), (#"{"at":"provider"}"#, "do"),
    (#"{"at":"provider","do":{}}"#, "do"),
    (#"{"at":"provider","do":{"drop":true,"reset":true}}"#, "do"),
    (#"{"at":"provider","do":{"goaway":"once"}}"#, "do.goaway"),
    (#"{"at":"connection","do":{"goaway":"thrice"}}"#, "do.goaway"),
    (#"{"at":"provider","do":{"answer":"Maybe"}}"#, "do.answer"),
    (#"{"at":"provider","do":{"delay":"soon"}}"#, "do.delay"),
    (#"{"at":"provider","do":{"delay":"99d"}}"#, "do.delay"),
    (#"{"at":"provider","do":{"drop":false}}"#, "do.drop"),
    (#"{"at":"provider","do":{"drop":true},"match":{"device":"x"}}"#, "match.device"),
    (#"{"at":"provider","do":{"drop":true},"match":{"kind":"loud"}}"#, "match.kind"),
    (#"{"at":"provider","do":{"drop":true},"match":{"token":"x"}}"#, "match.token"),
    (#"{"at":"provider","do":{"drop":true},"match":{"id":"x"}}"#, "match.id"),
    (#"{"at":"provider","do":{"drop":true},"when":{"skip":-1}}"#, "when.skip"),
    (#"{"at":"provider","do":{"drop":true},"when":{"times":0}}"#, "when.times"),
    (#"{"at":"provider","do":{"drop":true},"when":{"probability":2}}"#, "when.probability"),
    (#"{"at":"provider","do":{"drop":true},"when":{"rate":{"over":1}}}"#, "when.rate"),
    (#"{"at":"provider","do":{"drop":true},"for":"0s"}"#, "for"),
    (#"{"at":"provider","do":{"drop":true},"for":"30d1ms"}"#, "for"),
    (#"{"at":"provider","do":{"drop":true},"match":{"topic":""}}"#, "match.topic"),
    (#"{"at":"provider","do":{"drop":true},"until":1}"#, "until"),
  ]

  @Test func aFaultLastsForThirtyDays() throws {
    let fault = try FaultWish.fault(
      Array(#"{"at":"provider","do":{"drop":true},"for":"30d","match":{"topic":"a.b"}}"#.utf8))
    #expect(fault.match.topic == "a.b")
  }

  @Test(arguments: refused) func whatIsNoFaultIsRefused(body: String, field: String?) {
    do {
      let fault = try FaultWish.fault(Array(body.utf8))
      Issue.record("\(fault)")
    } catch let refusal as Refusal {
      #expect(refusal.status == 400 && refusal.field == field, "\(refusal)")
    } catch {
      Issue.record("\(error)")
    }
  }
}
