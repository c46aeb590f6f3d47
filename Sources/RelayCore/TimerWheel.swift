package import Primitives

/// All timers of a shard: a hierarchical timing wheel (Varghese and Lauck, 1987). Setting and
/// cancelling take constant time and leave nothing behind, unlike a heap with lazy deletion.
///
/// Invariants:
/// 1. Level `n` has 64 slots of `64^n` milliseconds. A timer is on the level of the highest six-bit
///    group in which its deadline differs from `now`, in the slot of that group's value.
/// 2. A slot is a doubly linked list through `nodes`; `occupied[level]` has a bit for each
///    non-empty one.
/// 3. A deadline before `now` counts as `now`.
/// 4. `now` is within the levels' range: earlier moments count as 0, later ones as `latest`.
package struct TimerWheel: Sendable {
  /// A timer's purpose; the index is the shard's.
  package enum Subject: Hashable, Sendable {
    case expiration(entry: EntryNumber)
    /// The app's held visible push of low priority has waited long enough.
    case hold(app: AppNumber)
    /// The budget may allow the app's held silent push.
    case refill(app: AppNumber)
    /// A keep-alive is due, or its answer is overdue.
    case keepAlive(device: DeviceNumber)
    /// An acknowledgement may be overdue.
    case acknowledgement(device: DeviceNumber)

    package enum Kind: Int, CaseIterable, Sendable {
      case expiration, hold, refill, keepAlive, acknowledgement
    }

    package var kind: Kind {
      switch self {
      case .expiration: .expiration
      case .hold: .hold
      case .refill: .refill
      case .keepAlive: .keepAlive
      case .acknowledgement: .acknowledgement
      }
    }
  }

  package struct Timer: Hashable, Sendable {
    package var id: TimerID
    package var deadline: Instant
    package var subject: Subject

    package init(id: TimerID, deadline: Instant, subject: Subject) {
      self.id = id
      self.deadline = deadline
      self.subject = subject
    }
  }

  /// The number of its node, as of a place in a slab of subjects.
  package typealias TimerID = Slab<Subject>.Index

  private struct Node: Sendable {
    var deadline: Int64
    var subject: Subject
    var previous = TimerID.none
    var next = TimerID.none
    var list = TimerWheel.free
  }

  /// The list of an unset timer.
  private static let free: Int32 = -1
  private static let levelCount = 8
  private static let slotCount = 64
  /// The last millisecond in range of eight levels (the year 10889).
  private static let latest = Int64(1) << 48 - 1

  private var nodes: [Node] = []
  private var firstFree = TimerID.none
  private var heads: [TimerID]
  private var tails: [TimerID]
  private var occupied: [UInt64]
  private var now: Int64
  package private(set) var count = 0

  package init(now: Instant) {
    self.now = min(max(now.milliseconds, 0), Self.latest)
    heads = Array(repeating: .none, count: Self.levelCount * Self.slotCount)
    tails = heads
    occupied = Array(repeating: 0, count: Self.levelCount)
  }

  /// Restores timers and free ids, both in order; nil unless the ids are 0..<n, each once.
  package init?(now: Instant, _ timers: [Timer], free: [TimerID]) {
    guard TimerID.areAll(timers.map(\.id) + free) else { return nil }
    self.init(now: now)
    let vacant = Node(deadline: 0, subject: .expiration(entry: .none))
    nodes = Array(repeating: vacant, count: timers.count + free.count)
    for timer in timers {
      let deadline = min(max(timer.deadline.milliseconds, self.now), Self.latest)
      nodes[Int(timer.id)].deadline = deadline
      nodes[Int(timer.id)].subject = timer.subject
      link(timer.id)
    }
    count = timers.count
    for id in free.reversed() {
      nodes[Int(id)].next = firstFree
      firstFree = id
    }
  }

  /// In the order of reuse.
  package var freeTimers: [TimerID] {
    Array(sequence(first: firstFree) { nodes[Int($0)].next }.prefix { $0.exists })
  }

  /// In firing order.
  package var state: [Timer] {
    var found: [(deadline: Int64, id: TimerID)] = []
    for list in heads.indices {
      var id = heads[list]
      while id.exists {
        found.append((nodes[Int(id)].deadline, id))
        id = nodes[Int(id)].next
      }
    }
    // Timers of one deadline are in one list, in order.
    return found.enumerated()
      .sorted { ($0.element.deadline, $0.offset) < ($1.element.deadline, $1.offset) }
      .map { _, timer in
        let subject = nodes[Int(timer.id)].subject
        return Timer(
          id: timer.id, deadline: Instant(milliseconds: timer.deadline), subject: subject)
      }
  }

  package var moment: Instant { Instant(milliseconds: now) }

  /// The timer fires at the first `popDue` at `deadline` or later.
  package mutating func set(_ deadline: Instant, _ subject: Subject) -> TimerID {
    let node = Node(deadline: min(max(deadline.milliseconds, now), Self.latest), subject: subject)
    let id: TimerID
    if firstFree.exists {
      id = firstFree
      firstFree = nodes[Int(id)].next
      nodes[Int(id)] = node
    } else {
      id = TimerID(Int32(nodes.count))
      nodes.append(node)
    }
    link(id)
    count += 1
    return id
  }

  /// nil for a timer that is not set.
  package func deadline(of id: TimerID) -> Instant? {
    id.exists ? Instant(milliseconds: nodes[Int(id)].deadline) : nil
  }

  /// Cancels a timer and resets its id.
  package mutating func cancel(_ id: inout TimerID) {
    guard id.exists else { return }
    unlink(id)
    release(id)
    id = .none
  }

  /// The earliest deadline, or the start of a distant timer's slot, a cheap and rare wake-up.
  package var nextWake: Instant? {
    for level in 0..<Self.levelCount where occupied[level] != 0 {
      let position = (now >> Int64(level * 6)) & 63
      let ahead = occupied[level] & ~((UInt64(1) << UInt64(position)) &- 1)
      let slot = Int64((ahead != 0 ? ahead : occupied[level]).trailingZeroBitCount)
      let base = now & ~((Int64(1) << Int64((level + 1) * 6)) &- 1)
      let start = base | slot << Int64(level * 6)
      return Instant(milliseconds: max(start, now))
    }
    return nil
  }

  /// The exact next timer; walks its slot.
  package var earliest: (deadline: Instant, subject: Subject)? {
    guard let level = occupied.firstIndex(where: { $0 != 0 }) else { return nil }
    let position = (now >> Int64(level * 6)) & 63
    let ahead = occupied[level] & ~((UInt64(1) << UInt64(position)) &- 1)
    let slot = (ahead != 0 ? ahead : occupied[level]).trailingZeroBitCount
    var id = heads[level * Self.slotCount + slot]
    var found = nodes[Int(id)]
    while id.exists {
      if nodes[Int(id)].deadline < found.deadline { found = nodes[Int(id)] }
      id = nodes[Int(id)].next
    }
    return (Instant(milliseconds: max(found.deadline, now)), found.subject)
  }

  /// Removes and returns one due timer, in order: it may cancel another that is due.
  package mutating func popDue(at instant: Instant) -> Subject? {
    let target = min(max(instant.milliseconds, now), Self.latest)
    while true {
      if let subject = popFirst() { return subject }
      guard let wake = nextWake, wake.milliseconds <= target else { break }
      now = wake.milliseconds
      cascade()
    }
    now = target
    return nil
  }

  /// The clock was set: timers for a moment keep it, the others their remaining time.
  package mutating func stepClock(by interval: Interval, isMoment: (Subject) -> Bool) {
    let timers = state
    for timer in timers { unlink(timer.id) }
    now = min(max((moment + interval).milliseconds, 0), Self.latest)
    for timer in timers {
      let isFixed = isMoment(timer.subject)
      let deadline = isFixed ? timer.deadline : timer.deadline + interval
      nodes[Int(timer.id)].deadline = min(max(deadline.milliseconds, now), Self.latest)
      link(timer.id)
    }
  }

  /// Redistributes the slots of the outer levels that contain `now`, outermost first.
  private mutating func cascade() {
    var level = Self.levelCount - 1
    while level > 0 {
      let slot = (now >> Int64(level * 6)) & 63
      if occupied[level] & (UInt64(1) << UInt64(slot)) != 0 {
        let list = level * Self.slotCount + Int(slot)
        var id = heads[list]
        heads[list] = .none
        tails[list] = .none
        occupied[level] &= ~(UInt64(1) << UInt64(slot))
        while id.exists {
          let next = nodes[Int(id)].next
          link(id)
          id = next
        }
      }
      level -= 1
    }
  }

  private mutating func popFirst() -> Subject? {
    let first = heads[Int(now & 63)]
    guard first.exists else { return nil }
    let subject = nodes[Int(first)].subject
    unlink(first)
    release(first)
    return subject
  }

  private mutating func link(_ id: TimerID) {
    let deadline = nodes[Int(id)].deadline
    let difference = UInt64(bitPattern: deadline ^ now)
    let highestBit = difference == 0 ? 0 : 63 - difference.leadingZeroBitCount
    let level = min(highestBit / 6, Self.levelCount - 1)
    let slot = Int((deadline >> Int64(level * 6)) & 63)
    let list = level * Self.slotCount + slot
    let last = tails[list]
    nodes[Int(id)].previous = last
    nodes[Int(id)].next = .none
    nodes[Int(id)].list = Int32(list)
    if last.exists { nodes[Int(last)].next = id } else { heads[list] = id }
    tails[list] = id
    occupied[level] |= UInt64(1) << UInt64(slot)
  }

  private mutating func unlink(_ id: TimerID) {
    let node = nodes[Int(id)]
    let list = Int(node.list)
    if node.previous.exists {
      nodes[Int(node.previous)].next = node.next
    } else {
      heads[list] = node.next
    }
    if node.next.exists {
      nodes[Int(node.next)].previous = node.previous
    } else {
      tails[list] = node.previous
    }
    if !heads[list].exists {
      occupied[list / Self.slotCount] &= ~(UInt64(1) << UInt64(list % Self.slotCount))
    }
  }

  private mutating func release(_ id: TimerID) {
    nodes[Int(id)].list = Self.free
    nodes[Int(id)].next = firstFree
    firstFree = id
    count -= 1
  }
}
