import DeviceLink
import Foundation
import Primitives
import RelayClient
import RelayCore
import Synchronization

/// What everybody outside of the relay has seen, and what does not agree with what it promises.
///
/// Moments are counted, not measured: `begun` and `ended` of a push, `since` of a checkpoint. What
/// ended before something else began came before it; all else may have come in either order.
final class CrashLedger: Sendable {
  struct State: Sendable {
    var moment = 0
    var isOfCluster = false
    /// Every registration there was.
    var apps: [CrashApp] = []
    /// The latest of each app of each device.
    var live: [Int] = []
    var pushes: [CrashPush] = []
    /// Which push a unique id belongs to.
    var uniqueIDs: [UniqueID: Int] = [:]
    var counts = CrashCounts()
    var violations: [String] = []
    var life = 0

    mutating func next() -> Int {
      moment += 1
      return moment
    }

    /// Writes down what must not be. The first ones say enough.
    mutating func violated(_ what: String) {
      guard violations.count < 20 else { return }
      violations.append("life \(life): \(what)")
    }

    func describe(_ number: Int) -> String {
      let push = pushes[number]
      let app = apps[push.app]
      return """
        push \(number) (\(push.className), life \(push.life), \(push.answer), \
        expiration \(push.expirationSeconds.map { "\($0)" } ?? "none"), \
        id \(push.id?.description ?? "unknown"), \
        unique id \(push.uniqueID?.description ?? "unknown"), \
        moments \(push.begun)...\(push.ended == .max ? "" : "\(push.ended)"), \
        \(push.deliveries) deliveries) to device \(app.device) \(app.topic)
        """
    }
  }

  let state = Mutex(State())

  /// - Parameter isOfCluster: whether a 503 says that nobody knows (docs/CLUSTER.md): a node that
  ///   takes over may find the push, which then takes an older one's place, and expires.
  init(isOfCluster: Bool = false) {
    state.withLock { $0.isOfCluster = isOfCluster }
  }

  var violations: [String] { state.withLock { $0.violations } }
  var counts: CrashCounts { state.withLock { $0.counts } }

  func moment() -> Int { state.withLock { $0.next() } }

  func violated(_ what: String) { state.withLock { $0.violated(what) } }

  func count(_ change: @Sendable (inout CrashCounts) -> Void) {
    state.withLock { change(&$0.counts) }
  }

  /// The relay lives again.
  func begin(life: Int) { state.withLock { $0.life = life } }

  static func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

  /// Of the pushes that were answered 200 in this life, the first ones, and what is known of them.
  func acceptedInThisLife(limit: Int) -> [(number: Int, push: CrashPush)] {
    state.withLock { state in
      let numbers = state.pushes.indices.filter {
        state.pushes[$0].life == state.life && state.pushes[$0].answer == .accepted
      }
      return numbers.prefix(limit).map { ($0, state.pushes[$0]) }
    }
  }

  // MARK: Apps

  func registered(device: Int, topic: String, token: String) {
    state.withLock { state in
      let place = state.place(device, topic)
      if let place, state.apps[state.live[place]].phase == .registered {
        guard state.apps[state.live[place]].token != token else { return }
        let history = state.apps[state.live[place]].history.joined(separator: ", ")
        return state.violated(
          "device \(device) \(topic) has another token than before: \(history)")
      }
      if let place, case .leaving = state.apps[state.live[place]].phase,
        state.apps[state.live[place]].token == token
      {
        // Nobody has said that it is gone for good; what was stored for it may be.
        state.apps[state.live[place]].open = ["visible": [], "silent": []]
        state.apps[state.live[place]].phase = .registered
        state.note("registered again", of: state.live[place])
        return
      }
      if state.apps.contains(where: { $0.token == token }) {
        state.violated("device \(device) \(topic) was given a token that was given before")
      }
      state.apps.append(CrashApp(device: device, topic: topic, token: token))
      if let place {
        state.apps[state.apps.count - 1].history = state.apps[state.live[place]].history.suffix(9)
      }
      state.note("registered", of: state.apps.count - 1)
      state.counts.registrations += 1
      guard let place else { return state.live.append(state.apps.count - 1) }
      state.live[place] = state.apps.count - 1
    }
  }

  func leaving(device: Int, topic: String) {
    state.withLock { state in
      guard let app = state.current(device, topic), state.apps[app].phase == .registered else {
        return
      }
      state.apps[app].phase = .leaving(since: state.next())
      state.note("leaving", of: app)
    }
  }

  /// What else was heard of an app that is to leave.
  func note(_ word: String, device: Int, topic: String) {
    state.withLock { state in
      guard let app = state.current(device, topic) else { return }
      state.note(word, of: app)
    }
  }

  func left(device: Int, topic: String) {
    state.withLock { state in
      guard let app = state.current(device, topic) else { return }
      for number in state.apps[app].open.values.joined()
      where state.pushes[number].answer == .accepted && state.pushes[number].deliveries == 0 {
        state.counts.unregistered += 1
      }
      state.apps[app].open = ["visible": [], "silent": []]
      state.note("left", of: app)
      state.apps[app].phase = .gone(since: state.next(), atMilliseconds: Self.now())
      state.counts.removals += 1
    }
  }

  // MARK: Providers

  /// What to post next, if there is an app to post to.
  func begin(
    lane: Int, of lanes: Int, _ random: inout SeededRandom
  ) -> (number: Int, push: PushRequest)? {
    var choices = random
    let draft = state.withLock { state in state.draft(lane: lane, of: lanes, &choices) }
    random = choices
    return draft
  }

  /// The relay died first.
  func lost(_ number: Int) {
    state.withLock { state in
      state.pushes[number].answer = .lost
      state.pushes[number].ended = state.next()
      state.counts.lost += 1
    }
  }

  func answered(_ number: Int, _ answer: PushAnswer) {
    state.withLock { state in
      state.pushes[number].ended = state.next()
      guard answer.status == 200 else { return state.refused(number, answer) }
      state.pushes[number].answer = .accepted
      state.counts.accepted += 1
      if !state.pushes[number].isStorable { state.counts.neverStored += 1 }
      let push = state.pushes[number]
      if case .gone(let since, _) = state.apps[push.app].phase, since < push.begun {
        state.violated("a removed app's token is accepted: \(state.describe(number))")
      }
      state.bind(
        number, id: answer.id.flatMap { UniqueID($0) },
        uniqueID: answer.uniqueID.flatMap { UniqueID($0) }, "the answer")
    }
  }
}

extension CrashLedger.State {
  /// Where in `live` an app stands.
  fileprivate func place(_ device: Int, _ topic: String) -> Int? {
    live.firstIndex { apps[$0].device == device && apps[$0].topic == topic }
  }

  /// The latest registration of an app.
  fileprivate func current(_ device: Int, _ topic: String) -> Int? {
    place(device, topic).map { live[$0] }
  }

  /// Whom to post to. Lanes mostly keep to apps of their own, so that these are posted to one after
  /// the other. Some apps are posted to often and most seldom, or each push would be replaced
  /// before it is missed. A token that is gone is tried now and then.
  private func choose(lane: Int, of lanes: Int, _ random: inout SeededRandom) -> Int? {
    guard let last = live.indices.last else { return nil }
    if random.chance(1) { return random.number(0...apps.count - 1) }
    let skewed = Double.random(in: 0..<1, using: &random)
    var place = Int(skewed * skewed * Double(live.count))
    if !random.chance(10) { place = min(last, place / lanes * lanes + lane) }
    if case .gone = apps[live[place]].phase, !random.chance(20) { return nil }
    return live[place]
  }

  fileprivate mutating func draft(
    lane: Int, of lanes: Int, _ random: inout SeededRandom
  ) -> (number: Int, push: PushRequest)? {
    guard let app = choose(lane: lane, of: lanes, &random) else { return nil }
    let isSilent = random.chance(40)
    let seconds = Int64(Date().timeIntervalSince1970)
    var expiration: Int64?
    switch random.number(0...99) {
    case 0..<4: expiration = 0
    case 4..<18: expiration = seconds + Int64(random.number(1...4))
    case 18..<40: expiration = seconds + 86_400
    default: break
    }
    let number = pushes.count
    let id = random.chance(80) ? UniqueID(generator: random.next(), number: UInt64(number)) : nil
    pushes.append(
      CrashPush(
        app: app, isSilent: isSilent, expirationSeconds: expiration, id: id, begun: next(),
        life: life))
    counts.posts += 1
    if !apps[app].isGone { apps[app].open[pushes[number].className]?.append(number) }
    var push = PushRequest(
      token: apps[app].token, payload: Array(CrashPush.payload(number, isSilent: isSilent).utf8))
    push.topic = apps[app].topic
    push.pushType = isSilent ? "background" : "alert"
    push.priority = isSilent || random.chance(20) ? 5 : 10
    push.expirationSeconds = expiration
    push.id = id?.description
    return (number, push)
  }

  fileprivate mutating func refused(_ number: Int, _ answer: PushAnswer) {
    pushes[number].answer = .refused(status: answer.status)
    switch (answer.status, apps[pushes[number].app].phase) {
    case (503, _):
      counts.unavailable += 1
    case (410, .leaving), (410, .gone):
      counts.unregisteredAnswers += 1
    default:
      violated("\(answer.status) \(answer.reason ?? ""): \(describe(number))")
    }
  }

  fileprivate mutating func note(_ word: String, of app: Int) {
    apps[app].history.append("\(word) at \(CrashLedger.now() % 1_000_000)")
  }

  /// One push, one id and one unique id, and no unique id for two pushes.
  mutating func bind(_ number: Int, id: UniqueID?, uniqueID: UniqueID?, _ source: String) {
    guard let id, let uniqueID else {
      return violated("\(source) has no id: \(describe(number))")
    }
    if let known = pushes[number].id, known != id {
      violated("\(source) has the id \(id): \(describe(number))")
    }
    if let known = pushes[number].uniqueID, known != uniqueID {
      violated("\(source) has the unique id \(uniqueID): \(describe(number))")
    }
    if let other = uniqueIDs[uniqueID], other != number {
      violated("\(source) of push \(number) has the unique id of \(describe(other))")
    }
    pushes[number].id = id
    pushes[number].uniqueID = uniqueID
    uniqueIDs[uniqueID] = number
  }
}
