import AdminAPI
import Hummingbird
import Primitives
import RelayCore
import RelayRequests
import RelayServer
import ServiceLifecycle

/// Waits until something has happened, and says why not.
///
/// A wait first looks at the past, so that nothing can come between a push and the wait for it. The
/// feed says when to look again; only for refusals and the end of `within` a clock does. In a
/// cluster it looks at all nodes and the feed covers all of them; an ended wait leaves nothing on
/// them.
struct WaitRoutes {
  let relay: Relay
  let epoch: Epoch
  /// The most that may be under way.
  static let atMost = 256
  let waits = Places(WaitRoutes.atMost)

  func add(to router: Router<AdminContext>) {
    router.post("/v1/wait") { request, _ in
      try await request.whileConnected { bytes in
        let wish = try WaitWish(bytes)
        return try await cancelWhenGracefulShutdown { try await answer(wish) }
      }
    }
    router.get("/v1/wait/:id") { request, context in
      guard let id = context.parameters.get("id").flatMap({ UniqueID($0) }) else {
        throw Refusal(400, "BadId", "a notification's id is a UUID: apns-id or apns-unique-id")
      }
      try request.allow("timeout")
      var wish = WaitWish(what: .delivered, push: id)
      if let text = request.parameter("timeout") { wish.timeout = try WaitWish.timeout(text) }
      let wanted = wish
      return try await request.whileConnected { _ in
        try await cancelWhenGracefulShutdown { try await answer(wanted) }
      }
    }
  }

  private func answer(_ wish: WaitWish) async throws -> Response {
    if let match = wish.match { try check(match) }
    if wish.what == .refused, !relay.keepsRequests { throw RequestRoutes.notKept }
    guard let place = waits.reserve() else {
      throw Refusal(
        503, "TooManyWaits", "\(waits.limit) waits are under way; try again when one is over")
    }
    defer { withExtendedLifetime(place) {} }
    return try Response(json: try await wait(wish))
  }

  /// Conditions that what is kept cannot tell.
  private func check(_ match: RequestMatch) throws {
    guard relay.keepsRequests else { throw RequestRoutes.notKept }
    try RequestRoutes.bound(match, field: "expect.match")
    try RequestRoutes.check(match.payload, relay, field: "expect.match.payload")
  }

  func wait(_ given: WaitWish) async throws -> WaitAnswer {
    guard let feed = await relay.feeds.feed() else { throw Refusal.notReady }
    let (id, signals) = await feed.signals()
    defer { Task { await feed.forget(id) } }
    var position = await feed.position
    let start = relay.now
    let limit = given.within.map { start + $0 }
    var wish = given
    wish.end = limit
    let deadline = ContinuousClock.now + .milliseconds(wish.timeout.milliseconds)
    if wish.advances,
      let answer = try await advance(wish, from: start, to: limit ?? start, until: deadline)
    {
      return answer
    }
    let timer = Task {
      try await Task.sleep(until: deadline, clock: .continuous)
      await feed.forget(id)
    }
    defer { timer.cancel() }
    let rewindCount = relay.rewindCount
    var finding = try await look(wish, isWide: true)
    if let met = met(finding, wish, since: start) { return met }
    if finding.isDecided(for: wish) { return try await over(wish, since: start) }
    if relay.nodeName != nil, wish.timeout > .milliseconds(0) {
      // Events on other nodes are missed until those are followed.
      await relay.feeds.follow(feed)
      finding = try await look(wish)
      if let met = met(finding, wish, since: start) { return met }
    }
    // No event tells of a refusal, as it never becomes a push, nor that time has passed.
    let needsClock = wish.what == .refused || limit != nil
    let pulse = Task {
      while needsClock {
        try await Task.sleep(for: .milliseconds(100))
        await feed.wake(id)
      }
    }
    defer { pulse.cancel() }
    var isOver = false
    for await _ in signals {
      try goesOn(since: rewindCount)
      let page = await feed.read(since: position, limit: Limits.feedEvents)
      position = page.next
      let isBehind = page.dropped > 0
      if isBehind || wish.what == .refused
        || page.items.contains(where: { wish.mayMatter($0.item, finding.uniqueID) })
      {
        let begunAt = ContinuousClock.now
        finding = try await look(wish)
        if let met = met(finding, wish, since: start) { return met }
        if finding.isDecided(for: wish) { break }
        // As long as it took, so that waits leave time for what they wait for.
        let length = ContinuousClock.now - begunAt
        if length > .milliseconds(10) { try await Task.sleep(for: length) }
      }
      if let limit, !wish.advances, relay.now >= limit {
        // That moment itself counts, and may still be under way at the first look.
        if isOver || relay.now > limit { break }
        isOver = true
      }
    }
    try goesOn(since: rewindCount)
    return try await over(wish, since: start)
  }

  /// Throws when the client has gone, the relay ends, or went back to a checkpoint.
  private func goesOn(since rewindCount: UInt32? = nil) throws {
    guard rewindCount == nil || relay.rewindCount == rewindCount else {
      throw Refusal.conflict(
        "Reset", "the relay was taken back to a checkpoint meanwhile; wait again")
    }
    guard !Task.isShuttingDownGracefully else {
      throw Refusal(503, "ShuttingDown", "the relay ends; wait again when it is back")
    }
    try Task.checkCancellation()
  }

  /// Advances the clock event by event until the wait is met or the time is over. nil when a phone
  /// that is not on this clock has yet to acknowledge a push: that takes the machine's time.
  private func advance(
    _ wish: WaitWish, from start: Instant, to end: Instant,
    until deadline: ContinuousClock.Instant
  ) async throws -> WaitAnswer? {
    guard let clock = relay.virtualClock else {
      throw Refusal.conflict(
        "ClockNotVirtual", "advance needs a clock that moves when told: serve --clock virtual")
    }
    let rewindCount = relay.rewindCount
    var isFirst = true
    do {
      try await clock.settled()
      while true {
        try goesOn(since: rewindCount)
        let finding = try await look(wish, isWide: exchange(&isFirst, with: false))
        guard wish.push == nil || finding.isKnown || finding.refusal != nil else {
          throw Refusal.missing("UnknownNotification", "no such notification in the relay's log")
        }
        if let met = met(finding, wish, since: start) { return met }
        if finding.isDecided(for: wish) { return try await over(wish, since: start) }
        guard ContinuousClock.now < deadline else {
          let note =
            "the clock has come only to \(clock.now.iso8601) of \(end.iso8601) in the timeout of "
            + "\(wish.timeout.text), which may be up to 10m"
          guard wish.never else { return try await over(wish, since: start, note) }
          throw Refusal.conflict("NotYet", note)
        }
        guard let next = await clock.next(), next.at <= end, clock.now < end else {
          if clock.now < end { try await reach(end, by: clock) }
          let last = try await look(wish)
          if let met = met(last, wish, since: start) { return met }
          let isUnacknowledged = last.lives.contains { life in
            if case .sent = life.last.step { true } else { false }
          }
          if isUnacknowledged, !wish.never { return nil }
          return try await over(wish, since: start)
        }
        // Not to what is next by then, which may be beyond the end.
        try await reach(next.at, by: clock)
      }
    } catch let error as VirtualClock.ClockError {
      throw Refusal(error)
    }
  }

  private func reach(_ end: Instant, by clock: VirtualClock) async throws {
    do throws(VirtualClock.ClockError) {
      _ = try await clock.advance(.to(end))
    } catch {
      // Somebody else has moved the clock beyond.
      if case .backwards = error { return }
      // Whether the relay or the client ends is looked at next.
      if case .stopped = error, Task.isCancelled { return }
      throw error
    }
  }

  private struct Finding {
    var lives: [Relay.Life] = []
    var events: [NotificationLife.Step] = []
    /// Such requests that were refused, and when, oldest first.
    var refusals: [(at: Instant, id: UniqueID)] = []
    var isHopeless = false
    /// True if such pushes are known, whatever their requests are like.
    var isKnown = false
    /// The device is in the wanted state.
    var isSo = false
    /// Of the awaited push, once it is known.
    var uniqueID: UniqueID?
    var missing = Missing()
    var away: NodeAway?
    /// The request that is nearest to the wanted, if none is that.
    var nearest: SentRequest?
    /// Why the awaited push can never be the wanted one.
    var contradiction: String?
    /// Why the awaited push was refused; its provider may send it again.
    var refusal: String?
    /// True if nobody knows any more what the awaited push was like.
    var isForgotten = false

    var count: Int { events.count + refusals.count }

    /// It cannot come any more, or what must never happen has happened.
    func isDecided(for wish: WaitWish) -> Bool {
      isHopeless || wish.never && (isSo || count >= wish.count)
    }
  }

  /// Pushes or requests that one look takes along.
  private static let looked = 1000

  /// - Parameter isWide: looks farther back than the newest, which takes a loop's time.
  private func look(_ wish: WaitWish, isWide: Bool = false) async throws -> Finding {
    if let device = wish.filter.device, wish.what.isOfDevice {
      return await look(at: device, wish)
    }
    if wish.what == .refused { return try await lookAtRefusals(wish) }
    var finding = Finding()
    if let push = wish.push {
      let found = await relay.life(of: push)
      finding.missing = found.missing
      finding.uniqueID = found.value?.uniqueID
      guard let life = found.value else {
        finding.refusal = await refusal(of: push)
        return finding
      }
      if let contradiction = wish.filter.contradiction(in: life) {
        (finding.isKnown, finding.isHopeless, finding.contradiction) = (true, true, contradiction)
        return finding
      }
      finding.lives = [life]
    } else {
      let found = await relay.lives(wish.filter, limit: Self.looked)
      finding.missing = found.missing
      finding.lives = found.value
      if isWide, found.value.count == Self.looked {
        // Of more than that, what is awaited may have happened to an older one.
        var filter = wish.filter
        filter.step = wish.what.rawValue
        let older = await relay.lives(filter, limit: Self.looked)
        finding.missing.formUnion(older.missing)
        if !older.value.isEmpty { finding.lives = older.value }
      }
    }
    finding.isKnown = !finding.lives.isEmpty
    if let match = try await match(wish) {
      let most = isWide && relay.nodeName == nil ? Int.max : Self.looked
      let requests = await relay.requests(match, limit: most, orNearest: true)
      // Of a wait that was given up not all was looked at.
      try goesOn()
      finding.missing.formUnion(requests.missing)
      // All of them are as wanted, or there is the nearest alone.
      let isMet = requests.value.first.map(match.matches) ?? false
      let ids = Set(isMet ? requests.value.map(\.uniqueID) : [])
      if finding.lives.count < Self.looked {
        finding.lives = finding.lives.filter { ids.contains($0.uniqueID) }
      } else {
        let found = await relay.lives(of: Array(ids))
        finding.missing.formUnion(found.missing)
        finding.lives = found.value.filter { wish.filter.contradiction(in: $0) == nil }
      }
      // A refused one has no life.
      if finding.lives.isEmpty { finding.nearest = requests.value.first }
      finding.isHopeless = wish.push != nil && finding.isKnown && finding.lives.isEmpty
      if finding.isHopeless {
        let own = RequestMatch(id: finding.uniqueID)
        finding.isForgotten = await relay.requests(own, limit: 1).value.isEmpty
        if finding.isForgotten { finding.nearest = nil }
      }
    }
    let lives = finding.lives.compactMap { NotificationLife($0.steps) }
    finding.events = lives.flatMap { $0.steps.filter(wish.matches) }.sorted { $0.time < $1.time }
    // The app of a delivered push may still report an outcome.
    let last: Set<String> = wish.what == .outcome ? ["discarded"] : ["delivered", "discarded"]
    let isHopeless =
      wish.push != nil && finding.events.count < wish.count && !lives.isEmpty
      && lives.allSatisfy { last.contains($0.state) }
    finding.isHopeless = finding.isHopeless || isHopeless
    return finding
  }

  private func lookAtRefusals(_ wish: WaitWish) async throws -> Finding {
    var wish = wish
    wish.match = wish.match ?? RequestMatch()
    guard let match = try await match(wish) else { return Finding() }
    var finding = Finding()
    let found = await relay.requests(
      match, limit: Self.looked, orNearest: true, refusedOnly: true)
    try goesOn()
    finding.missing = found.missing
    let isMet = found.value.first.map { match.matches($0) && $0.answer?.refusal != nil } ?? false
    finding.refusals = isMet ? found.value.map { ($0.at, $0.uniqueID) } : []
    // Of a client that has not shown who it is only the refusal is kept.
    let kept = Set(found.value.map(\.uniqueID))
    let refused = await relay.refusals(limit: Limits.rememberedRefusals)
    finding.missing.formUnion(refused.missing)
    finding.refusals += refused.value
      .filter { !kept.contains($0.uniqueID) && match.mayMatch($0) }
      .map { ($0.at, $0.uniqueID) }
    if let end = wish.end { finding.refusals.removeAll { $0.at > end } }
    finding.refusals.sort { $0.at < $1.at }
    if finding.refusals.isEmpty { finding.nearest = found.value.first }
    if let push = wish.push {
      let life = await relay.life(of: push)
      finding.missing.formUnion(life.missing)
      finding.isKnown = life.value != nil
    }
    return finding
  }

  /// Why the relay did not accept a push with this id.
  private func refusal(of push: UniqueID) async -> String? {
    var match = RequestMatch()
    match.id = push
    let found = await relay.requests(match, limit: 1, refusedOnly: true)
    let kept = found.value.first { match.matches($0) }?.answer?.refusal?.reason
    guard kept == nil else { return kept }
    return await relay.refusals(limit: Limits.rememberedRefusals).value
      .first { $0.uniqueID == push }?.reason
  }

  /// The conditions on a push's request, with those on the push itself.
  private func match(_ wish: WaitWish) async throws -> RequestMatch? {
    guard var match = wish.match else { return nil }
    match.id = wish.push
    match.topic = match.topic ?? wish.filter.topic.map { Topic($0)?.whole.description ?? $0 }
    if match.tokens == nil, let device = wish.filter.device {
      // Unknown for a device whose node is away.
      match.tokens = try? await RequestRoutes.tokens(of: device, relay)
    }
    return match
  }

  private func look(at device: DeviceID, _ wish: WaitWish) async -> Finding {
    var finding = Finding()
    let report: DeviceReport?
    do throws(NodeAway) {
      report = try await relay.report(of: device)
    } catch {
      // It may return, or another node take the device, before the time is over.
      finding.away = error
      return finding
    }
    guard let report else { return finding }
    let topic = wish.filter.topic
    finding.isSo =
      switch wish.what {
      case .connected: report.isConnected
      case .disconnected: !report.isConnected
      case .registered: report.apps.contains { topic == nil || $0.topic.description == topic }
      case .received, .refused, .restored, .sent, .stored, .held, .delivered, .discarded,
        .replaced, .expired, .outcome:
        false
      }
    return finding
  }

  private func met(_ finding: Finding, _ wish: WaitWish, since start: Instant) -> WaitAnswer? {
    let times = finding.events.map(\.time) + finding.refusals.map(\.at.milliseconds)
    guard !wish.never, finding.isSo || times.count >= wish.count else { return nil }
    return WaitAnswer(
      at: finding.isSo ? relay.now.milliseconds : times[wish.count - 1],
      relayTime: (relay.now - start).text, events: finding.events,
      requests: wish.what == .refused ? finding.refusals.map(\.id.description) : nil)
  }

  /// The answer when the time is over or the wait is hopeless.
  private func over(
    _ wish: WaitWish, since start: Instant, _ note: String? = nil
  ) async throws -> WaitAnswer {
    let finding = try await look(wish, isWide: true)
    if let met = met(finding, wish, since: start) { return met }
    if let away = finding.away { throw away }
    if wish.never {
      try await checkNever(finding, wish, since: start)
      return WaitAnswer(at: relay.now.milliseconds, relayTime: (relay.now - start).text)
    }
    let nearest = await NotificationRoutes(relay: relay, epoch: epoch)
      .bodies(of: finding.lives.prefix(3))
    let stranger = (try? await stranger(wish)) ?? nil
    let (reason, message) =
      finding.isHopeless && !finding.isForgotten
      ? ("NeverAgain", finding.contradiction ?? "it cannot come true any more")
      : ("NotYet", stranger ?? nothing(wish, finding))
    let count = finding.count
    var refusal = Refusal.conflict(reason, nearest.first?.sentence ?? message)
    if count > 0 {
      let times = "t has happened \(count) of \(wish.count) times"
      refusal.message = nearest.first?.sentence.map { "\($0) I\(times)." } ?? "i\(times)"
    }
    refusal.nearest = nearest
    if let request = finding.nearest, let match = try await match(wish),
      let difference = Self.difference(match, request)
    {
      refusal.nearestRequest = RequestRoutes.status(of: request, relay)
      refusal.difference = difference
      refusal.message =
        "no push is as wanted; the nearest is \(request.uniqueID), sent at "
        + "\(request.at.iso8601): \(difference)"
    }
    if wish.push == nil, !wish.what.isOfDevice, count == 0, nearest.isEmpty,
      finding.nearest == nil, let last = await relay.refusals(limit: 1).value.first,
      last.at >= start - .minutes(1)
    {
      // Clients that do not look at answers hear of it here.
      refusal.message +=
        "; the last request that was refused, at \(last.at.iso8601), was "
        + "\(last.status) \(last.reason): \(last.uniqueID)"
    }
    if let note { refusal.message = "\(note); \(refusal.message)" }
    if !finding.missing.nodes.isEmpty { refusal.missingNodes = finding.missing.nodes }
    throw refusal
  }

  /// Throws what has happened and must not. That nothing has means nothing for a push or a phone
  /// that is another relay's, for a push that is not the wanted, nor before the time is over.
  private func checkNever(
    _ finding: Finding, _ wish: WaitWish, since start: Instant
  ) async throws {
    guard finding.missing.isEmpty else { throw Refusal(finding.missing) }
    guard !finding.isForgotten else { throw Refusal.conflict("NotKept", nothing(wish, finding)) }
    guard !finding.isSo else {
      throw Refusal.conflict("Happened", "the device is \(wish.what.rawValue)")
    }
    if let contradiction = finding.contradiction {
      throw Refusal.conflict("NeverAgain", "\(contradiction): no such thing can happen")
    }
    if finding.count >= wish.count {
      let times = finding.count > 1 ? " \(finding.count) times" : ""
      if let first = finding.refusals.first {
        let when = "such a request was refused\(times) at \(first.at.iso8601)"
        throw Refusal.conflict("Happened", "\(when): \(first.id)")
      }
      let first = finding.events.first.map { ": \($0.at) \($0.text)" } ?? ""
      throw Refusal.conflict("Happened", "it has happened\(times)\(first)")
    }
    if let stranger = try await stranger(wish) { throw Refusal.missing("UnknownDevice", stranger) }
    guard wish.push == nil || finding.isKnown || finding.refusal != nil else {
      throw Refusal.missing("UnknownNotification", nothing(wish, finding))
    }
    guard let within = wish.within, relay.now < start + within, !finding.isHopeless else { return }
    let hint = relay.virtualClock == nil ? "wait with a longer timeout" : "wait with advance"
    throw Refusal.conflict(
      "NotYet",
      "it has not happened, but only \((relay.now - start).text) of \(within.text) have passed: "
        + hint)
  }

  /// The first difference of a request from the wanted; a refused one did not become a push.
  private static func difference(_ match: RequestMatch, _ request: SentRequest) -> String? {
    if let difference = match.differences(of: request).first { return difference }
    guard let answer = request.answer else { return nil }
    if let refusal = answer.refusal { return "it was refused: \(answer.status) \(refusal.reason)" }
    if case .channel = answer.outcome { return "it was a broadcast, which has no steps" }
    return "it was accepted"
  }

  private func stranger(_ wish: WaitWish) async throws -> String? {
    guard let device = wish.filter.device, try await relay.report(of: device) == nil else {
      return nil
    }
    return "the relay knows no phone \(device)"
  }

  private func nothing(_ wish: WaitWish, _ finding: Finding) -> String {
    if wish.what.isOfDevice {
      let topic = wish.filter.topic.map { " for \($0)" } ?? ""
      return "the device is not \(wish.what.rawValue)\(wish.what == .registered ? topic : "")"
    }
    if let refusal = finding.refusal { return "it was refused: \(refusal)" }
    if finding.isKnown, wish.what == .refused { return "it was not refused" }
    if finding.isKnown { return "the relay no longer keeps the request of such a push" }
    guard let push = wish.push else {
      return wish.match == nil ? "nothing of the kind has happened" : "no such push was sent"
    }
    return "the relay knows no push \(push): it is another relay's, mistyped, forgotten, or a "
      + "broadcast, which has no steps"
  }
}
