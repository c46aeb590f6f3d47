import Primitives

/// The latest steps of notifications' lives in a bounded ring, for `pushrelay log` and the API.
/// Adding is a few stores; looking up walks the few steps whose ids share a bucket.
package struct DeliveryLog: Sendable {
  private var events: [DeliveryEvent] = []
  /// The oldest event, once the ring is full.
  private var oldest = 0
  private let capacity: Int
  /// All steps by unique id; first steps by the provider's id, if that differs.
  private var byUniqueID: Chains
  private var byName: Chains

  /// Average steps of a life: received, stored or sent, its end, and one to spare.
  package static let stepsPerNotification = 4

  /// Remembers about the last `notifications` lives.
  package init(notifications: Int) {
    let count = min(max(1, notifications), Int(Int32.max) / 16)
    capacity = count * Self.stepsPerNotification
    byUniqueID = Chains(bucketCount: count)
    byName = Chains(bucketCount: count)
  }

  package var count: Int { events.count }

  /// Swaps the event with the one it replaces, to avoid a copy.
  package mutating func append(_ event: inout DeliveryEvent) {
    let isFull = events.count == capacity
    let place = isFull ? oldest : events.count
    byUniqueID.append(place, Self.hash(event.uniqueID))
    if case .received(_, let name, _, _) = event.step, name != event.uniqueID {
      byName.append(place, Int(KeyedHash.hash(name)))
    }
    if !isFull {
      events.append(event)
    } else {
      swap(&events[oldest], &event)
      oldest += 1
      if oldest == capacity { oldest = 0 }
    }
  }

  /// The steps of the notification with this unique id, oldest first; otherwise of the latest with
  /// this `apns-id`, or of its first if it was sent again.
  package func steps(of id: UniqueID) -> [DeliveryEvent] {
    let found = steps(ofUnique: id)
    guard found.isEmpty else { return found }
    var named: UniqueID?
    byName.walk(from: Int(KeyedHash.hash(id)), age: age) { place in
      if case .received(_, id, _, _) = events[place].step { named = events[place].uniqueID }
      return named == nil
    }
    let life = named.map { steps(ofUnique: $0) } ?? []
    guard case .discarded(.repeated(let first))? = life.last?.step else { return life }
    let known = steps(ofUnique: first)
    return known.isEmpty ? life : known
  }

  /// Joins the parts of one life from several logs: its device may have moved between shards.
  package static func join(_ parts: [[DeliveryEvent]]) -> [DeliveryEvent] {
    let parts = parts.filter { !$0.isEmpty }
    guard parts.count > 1 else { return parts.first ?? [] }
    // Within a millisecond, the part with the beginning comes first.
    let first = parts.filter(\.beginsWithReceived)
    let steps = first + parts.filter { !$0.beginsWithReceived }
    return steps.joined().enumerated()
      .sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
      .map(\.element)
  }

  /// The latest matching beginnings, newest first, among the last `Limits.listedLives` steps.
  package func latest(limit: Int, where isWanted: (DeliveryEvent) -> Bool) -> [DeliveryEvent] {
    var found: [DeliveryEvent] = []
    for age in 0..<min(events.count, Limits.listedLives) where found.count < limit {
      let event = events[(oldest + events.count - 1 - age) % events.count]
      guard case .received = event.step, isWanted(event) else { continue }
      found.append(event)
    }
    return found
  }

  /// The approximate cost of a copy.
  package var keptBytes: Int { events.count * MemoryLayout<DeliveryEvent>.stride }

  private func steps(ofUnique id: UniqueID) -> [DeliveryEvent] {
    var found: [DeliveryEvent] = []
    byUniqueID.walk(from: Self.hash(id), age: age) { place in
      if events[place].uniqueID == id { found.append(events[place]) }
      return true
    }
    found.reverse()
    return found
  }

  /// Steps since the one at this place.
  private func age(_ place: Int) -> Int {
    let distance = oldest - 1 - place + (place < oldest ? 0 : capacity)
    return events.count < capacity ? events.count - 1 - place : distance
  }

  /// Unique ids are consecutive, so neighbours share cache lines. Peers do not choose them.
  private static func hash(_ id: UniqueID) -> Int {
    Int(truncatingIfNeeded: id.low &+ id.high >> 16)
  }
}

extension [DeliveryEvent] {
  fileprivate var beginsWithReceived: Bool {
    if case .received? = first?.step { true } else { false }
  }
}

/// Chains of places in a ring, by hash: each place links to the one before it in its bucket. A
/// reused place is younger than its link and ends the chain, so nothing is ever removed.
private struct Chains: Sendable {
  private static let end: Int32 = -1

  private let mask: Int
  /// The youngest place of each bucket, or `end`; allocated on first use.
  private var heads: [Int32] = []
  private var previous: [Int32] = []

  init(bucketCount: Int) {
    mask = 1 << (Int.bitWidth - (max(1, bucketCount) - 1).leadingZeroBitCount) - 1
  }

  mutating func append(_ place: Int, _ hash: Int) {
    if heads.isEmpty { heads = [Int32](repeating: Self.end, count: mask + 1) }
    while previous.count <= place { previous.append(Self.end) }
    let bucket = hash & mask
    previous[place] = heads[bucket]
    heads[bucket] = Int32(place)
  }

  /// Visits a bucket's places, youngest first, while `visit` returns true; keys may differ.
  func walk(from hash: Int, age: (Int) -> Int, visit: (Int) -> Bool) {
    guard !heads.isEmpty else { return }
    var place = heads[hash & mask]
    var last = -1
    while place >= 0 {
      let now = age(Int(place))
      guard now > last, visit(Int(place)) else { return }
      last = now
      place = previous[Int(place)]
    }
  }
}
