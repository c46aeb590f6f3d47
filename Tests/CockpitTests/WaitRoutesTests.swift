import AdminAPI
import Primitives
import RelayCore
import RelayRequests
import Synchronization
import Testing

@testable import Cockpit
@testable import RelayServer
@testable import RelayTestKit

@Suite struct WaitRoutesTests {
  @Test func wishesAreRead() throws {
    let text = """
      {"expect":{"what":"sent","push":"4deb1c52-0d6e-8b34-8000-00000000002a","via":"refill",
      "kind":"silent","count":2,"topic":"com.example.app"},
      "within":"1h","advance":true,"timeout":"30s"}
      """
    let wish = try WaitWish(Array(text.utf8))
    #expect(wish.what == .sent && wish.via == "refill" && wish.count == 2 && !wish.never)
    #expect(wish.push?.description == "4deb1c52-0d6e-8b34-8000-00000000002a")
    #expect(wish.within == .hours(1) && wish.advances && wish.timeout == .seconds(30))
    #expect(wish.filter.kind == .silent && wish.filter.topic == "com.example.app")
    let least = try WaitWish(Array(#"{"expect":{"what":"held"}}"#.utf8))
    #expect(least.timeout == .seconds(10) && least.within == nil && !least.advances)
  }

  private static let some = "4deb1c52-0d6e-8b34-8000-00000000002a"

  private static let refused: [(body: String, field: String?)] = [
    ("", "expect"), ("{}", "expect"), ("[", nil), (#"{"expect":3}"#, "expect"),
    (#"{"expect":{}}"#, "expect.what"), (#"{"expect":{"what":"lost"}}"#, "expect.what"),
    (#"{"expect":{"what":"sent","push":"x"}}"#, "expect.push"),
    (#"{"expect":{"what":"sent","device":"x"}}"#, "expect.device"),
    (#"{"expect":{"what":"sent","kind":"loud"}}"#, "expect.kind"),
    (#"{"expect":{"what":"sent","via":"post"}}"#, "expect.via"),
    (#"{"expect":{"what":"delivered","via":"direct"}}"#, "expect.via"),
    (#"{"expect":{"what":"connected"}}"#, "expect.device"),
    (#"{"expect":{"what":"sent","count":0}}"#, "expect.count"),
    (#"{"expect":{"what":"sent","count":1.5}}"#, "expect.count"),
    (#"{"expect":{"what":"connected","device":"\#(some)","count":2}}"#, "expect.count"),
    (#"{"expect":{"what":"connected","device":"\#(some)","kind":"silent"}}"#, "expect.kind"),
    (#"{"expect":{"what":"connected","device":"\#(some)","topic":"a.b"}}"#, "expect.topic"),
    (#"{"expect":{"what":"registered","device":"\#(some)","push":"\#(some)"}}"#, "expect.push"),
    (#"{"expect":{"what":"refused","kind":"silent"}}"#, "expect.kind"),
    (#"{"expect":{"what":"sent","when":1}}"#, "expect.when"),
    (#"{"expect":{"what":"sent"},"within":"soon"}"#, "within"),
    (#"{"expect":{"what":"sent"},"advance":true}"#, "within"),
    (#"{"expect":{"what":"sent"},"timeout":"11m"}"#, "timeout"),
    (#"{"expect":{"what":"sent"},"until":1}"#, "until"),
    (#"{"expect":{"what":"received","match":{"reason":"BadPriority"}}}"#, "expect.match"),
    (#"{"expect":{"what":"sent","never":true,"match":{"status":400}}}"#, "expect.match"),
    (#"{"expect":{"what":"sent","topic":""}}"#, "expect.topic"),
    (#"{"expect":{"what":"refused","topic":"not a topic"}}"#, "expect.topic"),
    (#"{"expect":{"what":"sent","match":{"topic":""}}}"#, "expect.match.topic"),
    (#"{"expect":{"what":"sent","match":{"topic":"not a topic"}}}"#, "expect.match.topic"),
    (#"{"expect":{"what":"refused","match":{"reason":"BadPriorty"}}}"#, "expect.match.reason"),
    (#"{"expect":{"what":"refused","match":{"status":999}}}"#, "expect.match.status"),
    (#"{"expect":{"what":"received","match":{"pushType":"alrt"}}}"#, "expect.match.pushType"),
    (#"{"expect":{"what":"sent","match":{"payload":[3]}}}"#, "expect.match.payload"),
    (#"{"expect":{"what":"sent","match":{"payload":["aps",""]}}}"#, "expect.match.payload"),
    (#"{"expect":{"what":"sent","match":{"payload":"aps"}}}"#, "expect.match.payload"),
    (#"{"expect":{"what":"sent","match":{"payload":null}}}"#, "expect.match.payload"),
  ]

  /// Of a client that has not shown who it is.
  @Test func aStrangersRefusalIsAllThatIsKnown() {
    let (id, moment) = (UniqueID(high: 1, low: 2), Instant(milliseconds: 5))
    func refused(isOfChannel: Bool = false) -> RefusedRequest {
      RefusedRequest(
        at: moment, uniqueID: id, peer: "", isOfChannel: isOfChannel, status: 403,
        reason: "MissingProviderToken", cause: .told("none"))
    }
    let cases: [((inout RequestMatch) -> Void, Bool)] = [
      ({ _ in }, true), ({ $0.status = 403 }, true), ({ $0.status = 400 }, false),
      ({ $0.reason = "MissingProviderToken" }, true), ({ $0.reason = "BadPriority" }, false),
      ({ ($0.status, $0.reason) = (400, "MissingProviderToken") }, false),
      ({ ($0.status, $0.reason) = (403, "BadPriority") }, false),
      ({ $0.id = id }, true), ({ $0.id = UniqueID(high: 1, low: 3) }, false),
      ({ $0.since = moment }, true), ({ $0.since = moment + .milliseconds(1) }, false),
      ({ $0.topic = "a.b" }, false), ({ $0.tokens = [] }, false),
      ({ $0.pushType = "alert" }, false),
      ({ $0.headers = [("apns-priority", "5")] }, false),
      ({ $0.payload = [PayloadCondition("aps")] }, false),
    ]
    for (place, (change, isSo)) in cases.enumerated() {
      var match = RequestMatch()
      change(&match)
      #expect(match.mayMatch(refused()) == isSo, "\(place)")
      // Only by its id: what manages channels is no push.
      #expect(match.mayMatch(refused(isOfChannel: true)) == (isSo && match.id != nil), "\(place)")
    }
  }

  @Test(arguments: refused) func whatIsNoWishIsRefused(body: String, field: String?) {
    do {
      let wish = try WaitWish(Array(body.utf8))
      Issue.record("\(wish)")
    } catch let refusal as Refusal {
      #expect(refusal.status == 400 && refusal.field == field, "\(refusal)")
    } catch {
      Issue.record("\(error)")
    }
  }

  @Test func conditionsOnThePayloadAreAnObjectOrAListOfTexts() throws {
    func conditions(_ payload: String) throws -> [String]? {
      let body = #"{"expect":{"what":"received","match":{"payload":\#(payload)}}}"#
      return try WaitWish(Array(body.utf8)).match?.payload.map(\.text)
    }
    #expect(try conditions(#"{"aps.badge":3,"kind":"a~b"}"#) == ["aps.badge=3", #"kind="a~b""#])
    #expect(
      try conditions(#"["aps.alert.title~hello","aps.badge=3","aps.sound"]"#)
        == ["aps.alert.title~hello", "aps.badge=3", "aps.sound"])
  }

  @Test func everyWordMatchesItsSteps() {
    let id = UniqueID(high: 1, low: 2)
    let steps: [(DeliveryStep, [WaitWish.What])] = [
      (
        .received(
          .silent, apnsID: id, device: DeviceID(id), Topic("com.example.app")!), [.received]
      ),
      (.restored, [.restored]), (.sent(.direct), [.sent]), (.storedOffline, [.stored]),
      (.storedPower(until: nil, limit: .perApp), [.stored, .held]), (.delivered, [.delivered]),
      (.discarded(.expired), [.discarded, .expired]),
      (.discarded(.replaced(by: id)), [.discarded, .replaced]),
      (.discarded(.cleared), [.discarded]), (.outcome(.newData), [.outcome]),
    ]
    for (step, words) in steps {
      let body = NotificationLife.Step(
        DeliveryEvent(at: Instant(milliseconds: 0), uniqueID: id, step: step))
      for what in WaitWish.What.allCases {
        let matches = WaitWish(what: what, push: nil).matches(body)
        #expect(matches == words.contains(what), "\(step) \(what)")
      }
    }
  }

  /// It is looked at again only for what may be it: other nodes are asked for each look.
  @Test func onlyWhatMayMatterIsLookedAt() throws {
    let moment = Instant(milliseconds: 1)
    let (push, other) = (UniqueID(high: 1, low: 1), UniqueID(high: 1, low: 2))
    let device = DeviceID(UniqueID(high: 3, low: 3))
    let topic = try #require(Topic("com.example.app"))
    func life(_ id: UniqueID, _ step: DeliveryStep = .delivered) -> FeedItem {
      .life(DeliveryEvent(at: moment, uniqueID: id, step: step))
    }
    let accepted = life(other, .received(.silent, apnsID: push, device: device, topic))
    let connected = FeedItem.device(DeviceChange(at: moment, device: device, what: .connected))
    let ofPush = WaitWish(what: .delivered, push: push)
    #expect(ofPush.mayMatter(life(push), nil) && ofPush.mayMatter(accepted, nil))
    #expect(!ofPush.mayMatter(life(other), nil) && ofPush.mayMatter(life(other), other))
    #expect(!ofPush.mayMatter(connected, nil))
    let ofAny = WaitWish(what: .delivered, push: nil)
    #expect(ofAny.mayMatter(life(other), nil) && !ofAny.mayMatter(connected, nil))
    var ofDevice = WaitWish(what: .connected, push: nil)
    ofDevice.filter.device = device
    #expect(ofDevice.mayMatter(connected, nil) && !ofDevice.mayMatter(life(push), nil))
    for wish in [ofPush, ofAny, ofDevice] {
      #expect(wish.mayMatter(.gap(dropped: 0, at: moment), nil))
    }
  }

  // MARK: At a running relay

  /// What becomes of a wait for it that looks once: met, or why not.
  private func outcome(_ expect: String, _ ask: AdminScene) async throws -> String {
    do {
      _ = try await ask.relay.cockpit.wait(Array(#"{"expect":{\#(expect)},"timeout":"0s"}"#.utf8))
      return "met"
    } catch let refusal as Refusal {
      return refusal.reason
    }
  }

  /// Of a delivered push nothing more is heard but what its app says; a held one may still go.
  @Test func aWaitKnowsWhatCanNoLongerCome() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      var pushes: [TestRelay.Push] = []
      for _ in 0..<4 { pushes.append(try await ask.relay.pushSilently(to: phone)) }
      for push in pushes.prefix(3) { try await ask.relay.wait(for: .delivered, of: push) }
      let (delivered, held) = (pushes[0].id, pushes[3].id)
      let table = [
        (delivered, "received", "met"), (delivered, "sent", "met"), (delivered, "delivered", "met"),
        (delivered, "outcome", "NotYet"), (delivered, "held", "NeverAgain"),
        (delivered, "stored", "NeverAgain"), (delivered, "discarded", "NeverAgain"),
        (held, "received", "met"), (held, "held", "met"), (held, "stored", "met"),
        (held, "sent", "NotYet"), (held, "delivered", "NotYet"), (held, "outcome", "NotYet"),
        (held, "expired", "NotYet"),
      ]
      for (push, what, expected) in table {
        let wish = #""what":"\#(what)","push":"\#(push)""#
        #expect(try await outcome(wish, ask) == expected, "\(what)")
        let never = try await outcome(wish + #","never":true"#, ask)
        #expect(never == (expected == "met" ? "Happened" : "met"), "never \(what)")
      }
      for (count, expected) in [(3, "met"), (4, "NotYet")] {
        #expect(try await outcome(#""what":"delivered","count":\#(count)"#, ask) == expected)
      }
      let unknown = #""what":"sent","push":"4deb1c52-0d6e-8b34-8000-00000000002a""#
      #expect(try await outcome(unknown, ask) == "NotYet")
      for (what, isSo) in [("connected", true), ("disconnected", false), ("registered", true)] {
        let wish = #""what":"\#(what)","device":"\#(phone.id)""#
        #expect(try await outcome(wish, ask) == (isSo ? "met" : "NotYet"), "\(what)")
        let never = try await outcome(wish + #","never":true"#, ask)
        #expect(never == (isSo ? "Happened" : "met"), "never \(what)")
      }
    }
  }

  /// The push may be another than it is wanted.
  @Test func whatNarrowsAWaitNarrowsThatForAPushToo() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let push = try await ask.relay.pushSilently(to: phone)
      try await ask.relay.wait(for: .delivered, of: push)
      let table = [
        (#""kind":"silent""#, true), (#""kind":"visible""#, false),
        (#""topic":"com.example.app""#, true), (#""topic":"com.example.other""#, false),
        (#""device":"\#(phone.id)""#, true), (#""device":"\#(Self.some)""#, false),
      ]
      for (narrowing, isSo) in table {
        let wish = #""what":"delivered","push":"\#(push.id)",\#(narrowing)"#
        #expect(try await outcome(wish, ask) == (isSo ? "met" : "NeverAgain"), "\(narrowing)")
        let never = try await outcome(wish + #","never":true"#, ask)
        #expect(never == (isSo ? "Happened" : "NeverAgain"), "never \(narrowing)")
      }
      // What its request was like nobody knows any more.
      var first = RequestMatch()
      first.id = UniqueID(push.id)
      _ = try await ask.relay.pushSilently(to: phone)
      _ = await ask.relay.relay.forgetRequests(first)
      let wish = #""what":"delivered","push":"\#(push.id)","match":{"payload":{"aps.badge":3}}"#
      #expect(try await outcome(wish, ask) == "NotYet")
      #expect(try await outcome(wish + #","never":true"#, ask) == "NotKept")
    }
  }

  /// It would wait for what is of another life now.
  @Test func aRunningWaitEndsWithAReset() async throws {
    try await AdminScene.run { ask in
      try await ask.relay.save(checkpoint: "start")
      let isOver = Mutex(false)
      async let refused = {
        defer { isOver.withLock { $0 = true } }
        do {
          _ = try await ask.relay.cockpit.wait(
            Array(#"{"expect":{"what":"sent"},"timeout":"1m"}"#.utf8))
          return "met"
        } catch {
          return (error as? Refusal)?.reason ?? "\(error)"
        }
      }()
      // As often as it takes for the wait to have begun.
      while !isOver.withLock({ $0 }) { try await ask.relay.restore(checkpoint: "start") }
      #expect(await refused == "Reset")
    }
  }
}
