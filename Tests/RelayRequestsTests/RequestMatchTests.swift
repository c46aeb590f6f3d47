import Primitives
import RelayCore
import RelayRequests
import Testing

@Suite("Matching requests") struct RequestMatchTests {
  private func match(_ change: (inout RequestMatch) -> Void) -> RequestMatch {
    var match = RequestMatch()
    change(&match)
    return match
  }

  @Test func withoutConditionsAllMatch() throws {
    #expect(RequestMatch().differences(of: try Sample.push(1)).isEmpty)
    #expect(RequestMatch().differences(of: Sample.refused(1)).isEmpty)
  }

  /// A condition each, and how the sample differs.
  @Test func eachConditionIsToldAsAPersonWould() throws {
    let other = try #require(DeviceToken(hexadecimal: String(repeating: "cd", count: 32)))
    let cases: [(RequestMatch, String)] = [
      (match { $0.id = UniqueID(high: 5, low: 5) }, "its id is another"),
      (match { $0.since = Instant(milliseconds: 2) }, "it is older"),
      (match { $0.topic = "com.example.x" }, "topic is com.example.app, not com.example.x"),
      (match { $0.tokens = [other] }, "its token is " + String(repeating: "ab", count: 32)),
      (match { $0.pushType = "background" }, "push type is alert, not background"),
      (match { $0.status = 200 }, "it has no status"),
      (match { $0.reason = "BadTopic" }, "it has no reason"),
      (match { $0.headers = [("apns-priority", "5")] }, "apns-priority is 10, not 5"),
      (match { $0.headers = [("apns-expiration", "0")] }, "it has no apns-expiration"),
      (match { $0.payload = [PayloadCondition("aps.badge=3")] }, "aps.badge is 2, not 3"),
    ]
    let request = try Sample.push(1)
    for (match, sentence) in cases {
      #expect(match.differences(of: request) == [sentence] && !match.matches(request))
    }
  }

  /// With an id that push is meant, however much of it differs.
  @Test func theOneThatIsAskedForIsNearest() throws {
    let (own, other) = (try Sample.push(1), try Sample.push(4))
    let wanted = match {
      $0.id = own.uniqueID
      $0.topic = "com.example.x"
      $0.pushType = "background"
    }
    #expect(wanted.nearest([own, other])?.uniqueID == own.uniqueID)
    #expect(wanted.nearest([other, own])?.uniqueID == own.uniqueID)
    let byProvidersID = match { $0.id = other.apnsID }
    #expect(byProvidersID.nearest([own, other])?.uniqueID == other.uniqueID)
  }

  @Test func conditionsThatHoldSayNothing() throws {
    let request = try Sample.push(4)
    let wanted = match {
      $0.id = request.apnsID
      $0.since = Instant(milliseconds: 4)
      $0.topic = "com.example.app"
      $0.tokens = [request.token].compactMap(\.self)
      $0.pushType = "alert"
      $0.headers = [("apns-priority", "10")]
      $0.payload = [PayloadCondition("aps.badge=2")]
    }
    #expect(wanted.differences(of: request).isEmpty && wanted.matches(request))
  }

  @Test func theNearestDiffersLeastAndIsTheNewest() throws {
    let wanted = match {
      $0.topic = "com.example.app"
      $0.payload = [PayloadCondition("aps.badge=3"), PayloadCondition("aps.sound")]
    }
    let requests = [
      Sample.refused(4), try Sample.push(1, #"{"aps":{"badge":1,"sound":"x"}}"#),
      try Sample.push(2, #"{"aps":{"badge":4,"sound":"x"}}"#), try Sample.push(3),
    ]
    #expect(wanted.nearest(requests)?.uniqueID.low == 2)
    #expect(wanted.nearest([]) == nil)
    let managing = SentRequest(
      at: Instant(milliseconds: 9), UniqueID(high: 0, low: 9),
      RequestHead(
        Array("apns-topic: com.example.app\n".utf8),
        RequestSource(.channels, peer: "", isEncrypted: true, .none, connection: 8)),
      ordinal: 1, .unusable(body: []), bodyBytes: 0)
    #expect(wanted.nearest([managing]) == nil, "no push becomes of it")
  }

  /// A wrong badge is nearer than none, and a push nearer than what was refused.
  @Test func whatHasAWrongValueIsNearerThanWhatHasNone() throws {
    let wanted = match { $0.payload = [PayloadCondition("aps.badge=3")] }
    let bare = #"{"aps":{"alert":"x"}}"#
    let wrong = try Sample.push(1, #"{"aps":{"badge":2}}"#)
    for other in [try Sample.push(2, bare), Sample.refused(2, #"{"aps":{"badge":4}}"#, .badTopic)] {
      #expect(wanted.nearest([other, wrong])?.uniqueID.low == 1)
      #expect(wanted.nearest([wrong, other])?.uniqueID.low == 1)
    }
    let refusals = [Sample.refused(1, "", .badTopic), Sample.refused(3, "", .badPriority)]
    let refused = match { $0.reason = "BadTopic" }
    #expect(refused.nearest(refusals + [try Sample.push(2, bare)])?.uniqueID.low == 1)
  }
}
