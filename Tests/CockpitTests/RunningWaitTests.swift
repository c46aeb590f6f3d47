import AdminAPI
import HTTPTypes
import Primitives
import RelayCore
import RelayRequests
import Synchronization
import Testing

@testable import Cockpit
@testable import RelayServer
@testable import RelayTestKit

/// Waits that are under way while things happen, and how they end.
@Suite(.timeLimit(.minutes(5))) struct RunningWaitTests {
  private static let shown = #"{"aps":{"alert":"a"}}"#

  /// What becomes of a wait, while something is done again and again until it is over: so it is
  /// done before the wait has begun and after it.
  private func outcome(
    _ ask: AdminScene, _ wish: String, while body: () async throws -> Void
  ) async throws -> String {
    let cockpit = ask.relay.cockpit
    let isOver = Mutex(false)
    async let result = {
      defer { isOver.withLock { $0 = true } }
      return await Self.outcome(cockpit, wish)
    }()
    while !isOver.withLock({ $0 }) {
      try await body()
      await Task.yield()
    }
    return await result
  }

  private static func outcome(_ cockpit: Cockpit, _ wish: String) async -> String {
    do {
      return "met \(try await cockpit.wait(Array(wish.utf8)).events.count)"
    } catch let refusal as Refusal {
      return refusal.reason
    } catch {
      return "\(error)"
    }
  }

  @Test func aWaitGoesOnUntilItIsMet() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let wish = #"{"expect":{"what":"delivered","count":100},"timeout":"10m"}"#
      let met = try await outcome(ask, wish) {
        let push = try await ask.relay.push(Self.shown, to: phone)
        try await ask.relay.wait(for: .delivered, of: push)
      }
      #expect(met.hasPrefix("met 1"), "\(met)")
    }
  }

  /// `timeout` is of the machine's time, also where the wait moves the clock.
  @Test func aWaitThatAdvancesHasATimeout() async throws {
    try await AdminScene.run { ask in
      _ = try await ask.relay.phone(topic: "com.example.app")
      let before = ask.relay.nowMilliseconds
      let wish = #"{"expect":{"what":"received"},"within":"300d","advance":true,"timeout":"0s"}"#
      let refusal = await #expect(throws: Refusal.self) {
        try await ask.relay.cockpit.wait(Array(wish.utf8))
      }
      #expect(refusal?.reason == "NotYet")
      #expect(
        refusal?.message.hasPrefix("the clock has come only to 20") == true
          && refusal?.message.contains("in the timeout of 0s") == true, "\(refusal?.message ?? "")")
      #expect(ask.relay.nowMilliseconds < before + 300 * 86_400_000)
      let never = wish.replacing(#"{"what":"received"}"#, with: #"{"what":"stored","never":true}"#)
      let answer = await Self.outcome(ask.relay.cockpit, never)
      #expect(answer == "NotYet", "the clock has not come to the end of within")
    }
  }

  /// What has not happened yet may still, and of what nobody knows nothing can be said.
  @Test func neverIsNotSaidTooEarly() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      for _ in 0..<3 { _ = try await ask.relay.pushSilently(to: phone) }
      let held = try await ask.relay.pushSilently(to: phone)
      func never(_ id: String, _ more: String, what: String = "delivered") async -> String {
        let expect = #"{"what":"\#(what)","push":"\#(id)","never":true}"#
        let wish = #"{"expect":\#(expect),\#(more)}"#
        return await Self.outcome(ask.relay.cockpit, wish)
      }
      let now = #""timeout":"0s""#
      #expect(await never(held.id, #""within":"10m",\#(now)"#) == "NotYet", "no time has passed")
      #expect(await never(held.id, #""within":"10m","advance":true"#) == "met 0")
      #expect(await never(held.id, now) == "met 0", "until the timeout is over")
      #expect(await never(held.id, #""within":"10m","advance":true"#) == "Happened")
      for what in ["delivered", "refused"] {
        let unknown = "4deb1c52-0d6e-8b34-8000-00000000002a"
        #expect(await never(unknown, now, what: what) == "UnknownNotification", "\(what)")
        #expect(await never(held.id, now, what: what) == (what == "refused" ? "met 0" : "Happened"))
      }
    }
  }

  /// What comes after `within` does not count, whoever has moved the clock.
  @Test func whatComesLaterDoesNotCount() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      for _ in 0..<3 { _ = try await ask.relay.pushSilently(to: phone) }
      let held = try await ask.relay.pushSilently(to: phone)
      func wish(_ more: String) -> String {
        let expect = #"{"what":"delivered","push":"\#(held.id)"\#(more)}"#
        return #"{"expect":\#(expect),"within":"10m","timeout":"10m"}"#
      }
      // It has begun long before the clock is where the push goes.
      let never = wish(#","never":true"#)
      let step = Duration.seconds(2)
      #expect(await Self.outcome(ask.relay.cockpit, never.replacing("10m", with: "0s")) == "met 0")
      async let neverEnded = outcome(ask, never) { try await ask.relay.advance(by: step) }
      let ended = try await outcome(ask, wish("")) { try await ask.relay.advance(by: step) }
      #expect(["NotYet", "NeverAgain"].contains(ended), "\(ended)")
      #expect(try await neverEnded == "met 0")
      try await ask.relay.advance(by: step * 600)
      try await ask.relay.wait(for: .delivered, of: held)
    }
  }

  /// Each moves the clock no further than it may, whatever the others do.
  @Test func waitsThatAdvanceTogetherStayWithinTheirTime() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      for _ in 0..<3 { _ = try await ask.relay.pushSilently(to: phone) }
      let held = try await ask.relay.pushSilently(to: phone)
      let before = ask.relay.nowMilliseconds
      let expect = #"{"what":"delivered","push":"\#(held.id)"}"#
      let wish = #"{"expect":\#(expect),"within":"1m","advance":true}"#
      let cockpit = ask.relay.cockpit
      await withTaskGroup(of: String.self) { group in
        for _ in 0..<8 { group.addTask { await Self.outcome(cockpit, wish) } }
        for await outcome in group { #expect(outcome == "NotYet") }
      }
      // Each may begin where the one before has ended.
      #expect(ask.relay.nowMilliseconds <= before + 8 * 60_000)
    }
  }

  @Test func neverCountsAndKnowsWhoIsMeant() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let pushes = [
        try await ask.relay.push(Self.shown, to: phone),
        try await ask.relay.push(Self.shown, to: phone),
      ]
      for push in pushes { try await ask.relay.wait(for: .delivered, of: push) }
      let unknown = "4deb1c52-0d6e-8b34-8000-00000000002a"
      for (more, expected) in [
        (#""topic":"com.example.app","count":2"#, "Happened"),
        (#""topic":"com.example.app","count":3"#, "met 0"),
        (#""push":"\#(pushes[0].id)","topic":"com.other""#, "NeverAgain"),
        (#""push":"\#(pushes[0].id)","kind":"silent""#, "NeverAgain"),
        (#""device":"\#(unknown)""#, "UnknownDevice"), (#""topic":"com.other""#, "met 0"),
      ] {
        let wish = #"{"expect":{"what":"delivered",\#(more),"never":true},"timeout":"0s"}"#
        #expect(await Self.outcome(ask.relay.cockpit, wish) == expected, "\(more)")
      }
    }
  }

  /// What must never happen and has is said at once, not when the time is over.
  @Test func aNeverThatHasHappenedEnds() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let push = try await ask.relay.push(Self.shown, to: phone)
      try await ask.relay.wait(for: .delivered, of: push)
      let wish = #"{"expect":{"what":"delivered","never":true},"timeout":"10m"}"#
      #expect(await Self.outcome(ask.relay.cockpit, wish) == "Happened")
    }
  }

  /// A refused request never becomes a push, and no event tells of it.
  @Test func aWaitForRefusalsLooksFromTimeToTime() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let wish = #"{"expect":{"what":"refused","count":100},"timeout":"10m"}"#
      let met = try await outcome(ask, wish) {
        await #expect(throws: TestRelayError.self) {
          try await ask.relay.push(Self.shown, to: phone, headers: ["apns-priority": "7"])
        }
      }
      #expect(met == "met 0", "refusals are no events")
      let one = try await ask.relay.cockpit.wait(Array(#"{"expect":{"what":"refused"}}"#.utf8))
      let listed = try await ask(.get, "/v1/requests?status=400")
      let rows = listed.json["requests"] as? [[String: Any]] ?? []
      let (ids, told) = (rows.compactMap { $0["uniqueId"] as? String }, one.requests ?? [])
      #expect(told.count >= 100 && !ids.isEmpty && Set(ids).isSubset(of: told), "\(told)")
    }
  }

  /// What can no longer come is not waited for, whether it is known at once or later.
  @Test func aRunningWaitEndsWhenItIsHopeless() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      for _ in 0..<3 { try await ask.relay.pushSilently(to: phone) }
      for patience in 0..<20 {
        let held = try await ask.relay.pushSilently(to: phone)
        let wish =
          #"{"expect":{"what":"delivered","push":"\#(held.id)"},"timeout":"10m"}"#
        let cockpit = ask.relay.cockpit
        async let ended = Self.outcome(cockpit, wish)
        // Later from round to round, so that some come when the wait has looked already.
        for _ in 0..<patience * 20 { await Task.yield() }
        let emptied = try await ask(.delete, "/v1/devices/\(phone.id)/slots")
        #expect(emptied.status == 204)
        #expect(await ended == "NeverAgain", "\(patience)")
      }
    }
  }

  /// By the relay's clock, and exactly: a length that is over when it begins ends with the first
  /// event, whatever that is of.
  @Test func theTimeIsOverWhenTheClockHasReachedIt() async throws {
    try await AdminScene.run { ask in
      let feed = try #require(await ask.relay.relay.feeds.feed())
      let wish = #"{"expect":{"what":"delivered"},"within":"0s","timeout":"10m"}"#
      let moment = Instant(milliseconds: ask.relay.nowMilliseconds)
      let ended = try await outcome(ask, wish) {
        await feed.append(FeedBatch(items: [.policy(.strict, at: moment)]))
      }
      #expect(ended == "NotYet")
    }
  }

  /// Whatever the feed has lost may have been what is waited for.
  @Test func aWaitThatHasMissedEventsLooksAgain() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let feed = try #require(await ask.relay.relay.feeds.feed())
      let wish = #"{"expect":{"what":"delivered","count":3},"timeout":"10m"}"#
      var count = 0
      let met = try await outcome(ask, wish) {
        // What happens now is told to nobody.
        await ask.relay.relay.feeds.pauseUnused(feed, after: .zero)
        count += 1
        if count <= 3 { try await ask.relay.push(Self.shown, to: phone) }
        await feed.append(FeedBatch(lost: 1))
      }
      #expect(met == "met 3")
    }
  }

  // MARK: Conditions on the request

  /// Without what its request was like a push is not the wanted one, and one that is known and
  /// differs will always differ.
  @Test func aWaitMayNameWhatItsRequestWasLike() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      var pushes: [TestRelay.Push] = []
      for _ in 0..<4 { pushes.append(try await ask.relay.pushSilently(to: phone)) }
      for push in pushes.prefix(3) { try await ask.relay.wait(for: .delivered, of: push) }
      let of = pushes.map { #","push":"\#($0.id)""# }
      let (right, wrong) = (#"["aps.content-available=1"]"#, #"["aps.content-available=2"]"#)
      let other = #","topic":"com.example.other""#
      for (what, more, payload, expected) in [
        ("delivered", of[0], right, "met 1"), ("delivered", of[0], wrong, "NeverAgain"),
        ("delivered", of[3], right, "NotYet"), ("delivered", of[3], wrong, "NeverAgain"),
        ("delivered", "", right, "met 3"), ("delivered", "", wrong, "NotYet"),
        ("delivered", other, right, "NotYet"), ("held", of[3], right, "met 1"),
        ("delivered", #","push":"4deb1c52-0d6e-8b34-8000-00000000002a""#, wrong, "NotYet"),
        ("delivered", #","device":"\#(phone.id)""#, right, "met 3"),
      ] {
        let expect = #"{"what":"\#(what)"\#(more),"match":{"payload":\#(payload)}}"#
        let ended = await Self.outcome(
          ask.relay.cockpit, #"{"expect":\#(expect),"timeout":"0s"}"#)
        #expect(ended == expected, "\(expect)")
      }
    }
  }

  // MARK: More than one look takes along

  /// What has happened to an older push than the newest thousand has happened.
  @Test func aLookFindsWhatIsFarBack() async throws {
    try await AdminScene.run { ask in
      let away = try await ask(.post, "/v1/devices", #"{"name":"anna"}"#).json["device"] as? String
      let topic = "com.example.app"
      #expect(try await ask(.put, "/v1/devices/anna/apps/\(topic)", "{}").status == 200)
      func push(_ headers: String) async throws {
        _ = try await ask(
          .post, "/v1/push",
          #"{"to":"anna","topic":"\#(topic)","headers":\#(headers),"payload":\#(Self.shown)}"#)
      }
      try await push(#"{"apns-collapse-id":"far"}"#)
      try await push("{}")
      try await push(#"{"apns-priority":"7"}"#)
      let phone = try await ask.relay.phone(topic: topic)
      for number in 1...1010 {
        let sent = try await ask.relay.push(Self.shown, to: phone)
        if number % 10 == 0 { try await ask.relay.wait(for: .delivered, of: sent) }
      }
      for (what, more, expected) in [
        ("replaced", "", "met 1"), ("replaced", #","never":true"#, "Happened"),
        ("received", #","match":{"headers":{"apns-collapse-id":"far"}}"#, "met 1"),
        ("refused", "", "met 0"), ("refused", #","never":true"#, "Happened"),
        ("expired", #","never":true"#, "met 0"),
      ] {
        let wish = #"{"expect":{"what":"\#(what)","topic":"\#(topic)"\#(more)},"timeout":"0s"}"#
        #expect(await Self.outcome(ask.relay.cockpit, wish) == expected, "\(what)\(more)")
      }
      let stored = try await ask(.get, "/v1/notifications?state=stored")
      let found = stored.json["notifications"] as? [[String: Any]] ?? []
      #expect(found.map { $0["device"] as? String } == [away], "\(stored.text)")
    }
  }

  /// Why nothing was delivered is said of a push that was refused, until it is forgotten.
  @Test func aRefusedPushIsKnownToEachWait() async throws {
    try await AdminScene.run { ask in
      let id = "bbbbbbbb-1111-2222-3333-444444444444"
      _ = try await ask(.post, "/v1/devices", #"{"name":"anna"}"#)
      _ = try await ask(.put, "/v1/devices/anna/apps/a.b", "{}")
      let pushed = try await ask(
        .post, "/v1/push",
        #"{"to":"anna","headers":{"apns-topic":"a.b","apns-priority":"7","apns-id":"\#(id)"},"#
          + #""payload":\#(Self.shown)}"#)
      let unique = pushed.json["uniqueId"] as? String ?? ""
      func message(_ what: String) async throws -> String? {
        let wish = #"{"expect":{"what":"\#(what)","push":"\#(unique)"},"timeout":"0s"}"#
        do {
          _ = try await ask.relay.cockpit.wait(Array(wish.utf8))
          return nil
        } catch let refusal as Refusal {
          return refusal.message
        }
      }
      #expect(try await message("delivered") == "it was refused: BadPriority", "\(pushed.text)")
      #expect(try await message("refused") == nil)
      #expect(try await ask(.delete, "/v1/requests?limit=1").status == 400)
      #expect(try await ask(.delete, "/v1/requests").status == 204)
      #expect(try await message("refused")?.contains("no push") == true)
    }
  }

  // MARK: As routes

  /// A wait that is over leaves its place to the next, however it has ended.
  @Test func aWaitThatIsOverLeavesItsPlace() async throws {
    try await AdminScene.run { ask in
      let phone = try await ask.relay.phone(topic: "com.example.app")
      let push = try await ask.relay.push(Self.shown, to: phone)
      try await ask.relay.wait(for: .delivered, of: push)
      let unknown = "4deb1c52-0d6e-8b34-8000-00000000002a"
      for _ in 0...WaitRoutes.atMost {
        for (id, status) in [(push.id, "200 OK"), (unknown, "409 Conflict")] {
          let answer = try await AdminConnection.answer(ask, "GET", "/v1/wait/\(id)?timeout=0s")
          #expect(answer.hasPrefix("HTTP/1.1 \(status)\r\n"), "\(answer)")
          #expect(answer.lowercased().contains("connection: close"), "nothing more is read from it")
        }
      }
      let wish = #"{"expect":{"what":"delivered","push":"\#(push.id)"}}"#
      let posted = try await AdminConnection.answer(ask, "POST", "/v1/wait", wish)
      #expect(posted.contains("200 OK") && posted.contains(#""met":true"#), "\(posted)")
      for (path, reason) in [
        ("x", "BadId"), ("\(unknown)?timeout=1x", "BadBody"), ("\(unknown)?within=0s", "BadBody"),
        ("\(unknown)?timeout=11m", "BadBody"),
      ] {
        let refused = try await AdminConnection.answer(ask, "GET", "/v1/wait/\(path)")
        #expect(refused.hasPrefix("HTTP/1.1 400 ") && refused.contains(reason), "\(refused)")
      }
    }
  }
}
