import DequeModule
import DeviceLink
import HTTP2
import Logging
import NIOCore
import Primitives
import RelayCore
package import RelayFaults
import RelaySetup
import RelayStore

/// Work that faults delay, in the relay's time; work of the same moment in order of arrival.
struct PutOff {
  private var works: Deque<(at: Instant, work: () -> Void)> = []

  var next: Instant? { works.first?.at }

  mutating func add(at moment: Instant, _ work: @escaping () -> Void) {
    // Delays mostly have one length: then it is the last.
    let place = works.lastIndex { $0.at <= moment }.map { $0 + 1 } ?? 0
    works.insert((moment, work), at: place)
  }

  mutating func stepClock(by interval: Interval) {
    for place in works.indices { works[place].at = works[place].at + interval }
  }

  /// Removes and returns the work that is due, in order.
  mutating func nextDue(at now: Instant) -> [() -> Void] {
    let count = works.prefix { $0.at <= now }.count
    let due = works.prefix(count).map(\.work)
    works.removeFirst(count)
    return due
  }
}

/// The faults of one loop. Loads and stores only, like `LoopClock`: every push asks for them.
struct LoopFaults {
  var inForce: FaultSet?
  /// Until when the journal's answers are held back.
  var journalHeldUntil: Instant?

  var mayHoldJournal: Bool { inForce != nil || journalHeldUntil != nil }

  mutating func stepClock(by interval: Interval) {
    journalHeldUntil = journalHeldUntil.map { $0 + interval }
  }
}

extension ShardRunner {
  /// The effect of faults on a provider's valid request.
  enum Intervention {
    case none
    case answer(ProviderAnswer)
    /// It is answered later.
    case taken
    /// It is never answered.
    case dropped
    /// Its stream is reset; in the binary provider API, its connection is closed.
    case reset
  }

  @inline(__always)
  func mayIntervene(_ notification: Notification) -> Bool {
    faults.inForce != nil || reserved(notification.token) != nil
  }

  private func reserved(_ token: DeviceToken) -> Rejection? {
    settings.answersReservedTokens ? ReservedToken.rejection(token) : nil
  }

  @inline(never)
  func intervene(
    _ notification: Notification, _ stream: StreamID, on handler: ConnectionHandler, at now: Instant
  ) -> Intervention {
    if reserved(notification.token) == nil,
      let rule = faults.inForce?.hit(.connection, notification, at: now)
    {
      tell(of: rule, notification, at: now)
      let action = rule.fault.action
      switch action {
      case .reset, .blackhole:
        sufferSoon(action, handler)
        return .taken
      case .goAway, .halfClose, .stall: sufferSoon(action, handler)
      case .answer, .answerChannels, .delay, .drop, .duplicate, .failWrite: break
      }
    }
    return intervene(
      notification, from: handler.address(stream), peer: handler.peerText, at: now)
  }

  /// For a connection that no fault touches.
  @inline(never)
  func intervene(
    _ notification: Notification, from request: RequestID,
    peer: @autoclosure () -> String = "", at now: Instant
  ) -> Intervention {
    if let rejection = reserved(notification.token) {
      history.refused(rejection, notification.uniqueID, from: peer(), at: now)
      return .answer(rejection == .unregistered ? .gone(since: now) : .rejected(rejection))
    }
    guard let rule = faults.inForce?.hit(.provider, notification, at: now) else { return .none }
    tell(of: rule, notification, at: now)
    switch rule.fault.action {
    case .answer(let rejection):
      history.refused(rejection, notification.uniqueID, .fault(rule.name), from: peer(), at: now)
      return .answer(rejection == .unregistered ? .gone(since: now) : .rejected(rejection))
    case .delay(let delay):
      timers.putOff.add(at: now + delay) { [unowned self] in
        submit(notification, from: request, at: self.now)
      }
      return .taken
    case .drop: return .dropped
    case .reset: return .reset
    case .answerChannels, .duplicate, .goAway, .halfClose, .blackhole, .stall, .failWrite:
      return .none
    }
  }

  /// Acts after the connection's current work. An answer to that work no longer passes.
  private func sufferSoon(_ action: Fault.Action, _ handler: ConnectionHandler) {
    switch action {
    case .halfClose, .stall: handler.muting = Muting(since: RelayClock.steady, input: .taken)
    case .blackhole: handler.muting = Muting(since: RelayClock.steady, input: .lost)
    case .reset, .goAway, .answer, .answerChannels, .delay, .drop, .duplicate, .failWrite: break
    }
    let bound = NIOLoopBound(handler, eventLoop: eventLoop)
    eventLoop.execute { bound.value.runner.suffer(action, bound.value) }
  }

  private func suffer(_ action: Fault.Action, _ handler: ConnectionHandler) {
    switch action {
    case .reset: handler.resetConnection()
    case .goAway(let goAway): handler.sayGoAway(goAway)
    case .halfClose: handler.closeOutput()
    case .blackhole: handler.mute(isForGood: true)
    case .stall(let length):
      handler.mute(isForGood: false)
      timers.putOff.add(at: now + length) { [weak handler] in handler?.unmute() }
    case .answer, .answerChannels, .delay, .drop, .duplicate, .failWrite: break
    }
    finishBatch()
  }

  /// Returns whether a fault takes over a frame for a device.
  @inline(never)
  func intervene(_ delivery: Delivery, to address: StreamAddress, _ faults: FaultSet) -> Bool {
    let now = now
    guard let rule = faults.hit(.delivery, delivery.notification, at: now) else { return false }
    tell(of: rule, delivery.notification, at: now)
    switch rule.fault.action {
    case .drop: return true
    case .delay(let delay):
      timers.putOff.add(at: now + delay) { [unowned self] in
        deliver(.notification(delivery), to: address)
      }
      return true
    case .duplicate:
      deliver(.notification(delivery), to: address)
      return false
    case .reset:
      resetStream(address)
      return true
    case .answer, .answerChannels, .goAway, .halfClose, .blackhole, .stall, .failWrite:
      return false
    }
  }

  /// When the journal's answer is passed on; nil for at once. Answers keep their order.
  func journalDelay() -> Instant? {
    let now = now
    if let rule = faults.inForce?.journalHit(failing: false, at: now),
      case .delay(let delay) = rule.fault.action
    {
      feed.append(.fault(FaultHit(rule, at: now)))
      faults.journalHeldUntil = max(now + delay, faults.journalHeldUntil ?? now)
    }
    guard let held = faults.journalHeldUntil, held > now else {
      faults.journalHeldUntil = nil
      return nil
    }
    return held
  }

  /// The refusal that faults give a request about channels that is in order; nil for none.
  func intervene(
    _ wish: ChannelWish, of bundle: Topic, _ cause: inout RefusedRequest.Cause?
  ) -> ChannelRefusal? {
    guard let set = faults.inForce else { return nil }
    guard let (rule, refusal) = set.hit(channelsOf: bundle, at: now) else {
      return wish.isWritten && writeFails() ? .serviceUnavailable : nil
    }
    var hit = FaultHit(rule, at: now)
    hit.topic = bundle
    feed.append(.fault(hit))
    cause = .fault(rule.name)
    return refusal
  }

  /// Whether this write fails, which is none of the journal's batches.
  func writeFails() -> Bool {
    let now = now
    guard let rule = faults.inForce?.journalHit(failing: true, at: now) else { return false }
    feed.append(.fault(FaultHit(rule, at: now)))
    return true
  }

  private func tell(of rule: FaultRule, _ notification: Notification, at now: Instant) {
    var hit = FaultHit(rule, at: now)
    hit.uniqueID = notification.uniqueID
    hit.topic = notification.topic
    feed.append(.fault(hit))
    decide(
      .operated(
        .faulted(
          notification.uniqueID,
          FaultMark(name: rule.name, place: hit.place.rawValue, action: hit.action))), at: now)
    logger.debug(
      "fault", metadata: ["name": "\(rule.name)", "uniqueID": "\(notification.uniqueID)"])
  }
}

extension FaultHit {
  init(_ rule: FaultRule, at now: Instant) {
    let fault = rule.fault
    self.init(at: now, name: rule.name, place: fault.place, action: fault.action.name)
  }
}

extension Relay {
  package var faults: [FaultRule] { board.rules }

  package var faultCount: Int { board.hitCount }

  /// True if faults are allowed: not in production.
  package var mayFail: Bool { configuration.profile == .dev }

  /// Puts a fault in force; false when there are too many.
  package func put(_ fault: Fault, named name: String) async -> Bool {
    guard board.put(FaultRule(name, fault, at: now)) else { return false }
    await announceFaults()
    return true
  }

  /// Removes a fault; false when there is none of this name.
  package func removeFault(named name: String) async -> Bool {
    guard board.remove(name) else { return false }
    await announceFaults()
    return true
  }

  private func announceFaults() async {
    let set = board.set
    _ = await inbox.loops?.onEach { $0.faults.inForce = set }
  }
}
