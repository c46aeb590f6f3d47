import Primitives
import RelayCore
import RelayRecording

/// A loop's shard, its unperformed effects and its observers: together, so that a decision is one
/// checked access to a property of the loop.
struct LoopShard {
  /// Of the loop.
  private let number: UInt16
  var shard: Shard
  var effects: [Effect] = []
  private let feed: FeedOutlet
  /// Set while the shard is recorded.
  private var recorder: ShardRecorder?
  private var spare: [Effect] = []

  init(_ start: ShardStart, _ feed: FeedOutlet, _ recording: Recording?) {
    number = start.shard
    shard = start.makeShard()
    self.feed = feed
    recorder = recording.map { ShardRecorder(start, to: $0) }
  }

  /// Lets the shard decide; returns a device's change, which a push never is.
  @inline(__always)
  mutating func decide(_ event: Event, at now: Instant) -> DeviceChange? {
    guard recorder == nil, !feed.isOpen, !event.isAboutDevice else {
      return decideWatched(event, at: now)
    }
    shard.handle(event, at: now, into: &effects)
    return nil
  }

  @inline(never)
  private mutating func decideWatched(_ event: Event, at now: Instant) -> DeviceChange? {
    var gone: DeviceID?
    if case .stream(let stream, .disconnected) = event { gone = shard.device(on: stream) }
    let first = effects.count
    shard.handle(event, at: now, into: &effects)
    recorder?.record(event, at: now, &effects, from: first)
    guard feed.isOpen || event.isAboutDevice else { return nil }
    let change = change(by: event, effects[first...], gone: gone, at: now)
    guard feed.isOpen else { return change }
    if let change { feed.append(.device(change)) }
    // Every loop gets this event; one reports it.
    if case .operated(.policyChanged(let policy, let moment)) = event, number == 0 {
      feed.append(.policy(policy, at: moment))
    }
    for case .persist(let record) in effects[first...] {
      guard case .spent(let device, let topic, _, _) = record.content else { continue }
      var change = DeviceChange(at: now, device: device, what: .budget, topic: topic)
      change.remaining = shard.remaining(topic, of: device)
      feed.append(.device(change))
    }
    return change
  }

  /// - Parameters:
  ///   - effects: of the event; a refused request, also from strangers, changes nothing.
  ///   - gone: the device of a stream that has ended.
  private func change(
    by event: Event, _ effects: ArraySlice<Effect>, gone: DeviceID?, at now: Instant
  ) -> DeviceChange? {
    func change(_ device: DeviceID, _ what: DeviceChange.What, _ topic: Topic? = nil)
      -> DeviceChange?
    {
      let isRefused = effects.contains { if case .answer(_, .refused) = $0 { true } else { false } }
      return isRefused ? nil : DeviceChange(at: now, device: device, what: what, topic: topic)
    }
    switch event {
    case .asked(let request, let credential, let stream):
      let device = credential.device
      switch request {
      case .connected:
        return shard.isConnected(device, on: stream) ? change(device, .connected) : nil
      case .enrolled: return change(device, .enrolled)
      case .registered(let topic, _, _): return change(device, .registered, topic)
      case .unregistered(let topic): return change(device, .unregistered, topic)
      case .inspected, .subscribed, .unsubscribed: return nil
      }
    case .stream(_, .disconnected): return gone.flatMap { change($0, .disconnected) }
    case .stream(let stream, .reported):
      guard let device = shard.device(on: stream) else { return nil }
      var change = change(device, .condition)
      change?.condition = shard.condition(of: device)
      return change
    case .operated(.administered(let device, let action)):
      switch action {
      case .disconnect:
        let hasEnded = effects.contains { if case .close = $0 { true } else { false } }
        return hasEnded ? change(device, .disconnected) : nil
      case .emptySlots(let topic): return change(device, .emptied, topic)
      case .refillBudget(let topic): return change(device, .budget, topic)
      case .setPolicy:
        var change = change(device, .policy)
        change?.policy = shard.report(of: device)?.policy
        return change
      case .forget: return shard.report(of: device) == nil ? change(device, .forgotten) : nil
      }
    case .submitted, .stream, .journal, .alias, .broadcast, .operated, .clock: return nil
    }
  }

  /// The next timer of the shard. `mutating`, since a value that is only read would be copied.
  mutating func nextWake() -> Instant? { shard.nextWake }

  // MARK: Effects

  /// All unperformed effects; `reuse` returns the memory.
  mutating func nextEffects() -> [Effect] {
    var next: [Effect] = []
    swap(&next, &spare)
    swap(&next, &effects)
    return next
  }

  mutating func reuse(_ performed: consuming [Effect]) {
    performed.removeAll(keepingCapacity: performed.capacity <= 65_536)
    spare = performed
  }

  // MARK: Recording

  mutating func record(to recording: Recording) {
    recorder = ShardRecorder(number, shard, to: recording)
  }

  mutating func stopRecording() {
    flushRecording()
    recorder = nil
  }

  /// Hands over recorded batches. The recording stops when the file takes no more.
  mutating func flushRecording() {
    if recorder?.flush(&shard) == false { recorder = nil }
  }

  mutating func endBatch() {
    if recorder?.endBatch(&shard) == false { recorder = nil }
    feed.flush()
  }
}

extension Event {
  /// True if a phone has come, gone or changed: rare, compared with pushes.
  @inline(__always)
  fileprivate var isAboutDevice: Bool {
    switch self {
    case .asked(let request, _, _): request != .inspected
    case .stream(_, .disconnected), .stream(_, .reported), .operated(.administered),
      .operated(.policyChanged):
      true
    case .submitted, .stream, .journal, .alias, .broadcast, .operated, .clock: false
    }
  }
}
