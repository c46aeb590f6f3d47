import Primitives

/// The latest steps of notifications' lives, in a ring of bounded size: what `pushrelay log` and
/// `GET /v1/notifications/{id}` show.
///
/// Pushes come all the time and questions seldom, so that adding a step is a few stores, and
/// looking a notification up walks over those few steps whose ids share a bucket.
package struct DeliveryLog: Sendable {
  private var events: [DeliveryEvent] = []
  /// The oldest event, once the ring is full.
  private var oldest = 0
  private let capacity: Int
  /// All steps by their unique ids; first steps by what their providers call them, if that is
  /// another.
  private var byUniqueID: Chains
  private var byName: Chains

  /// Steps that a life takes on the average, to turn notifications into steps: received, stored or
  /// sent, and its end, with one to spare.
  package static let stepsPerNotification = 4

  /// - Parameter notifications: about how many of the last notifications are remembered.
  package init(notifications: Int) {
    let count = min(max(1, notifications), Int(Int32.max) / 16)
    capacity = count * Self.stepsPerNotification
    byUniqueID = Chains(bucketCount: count)
    byName = Chains(bucketCount: count)
  }

  /// How many steps are held.
  package var count: Int { events.count }

  /// Leaves in the place of the event what is thrown away for it, so that nothing is copied.
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

  /// The steps of the notification with this unique id, oldest first; or else of the latest one
  /// that its provider called so (`apns-id`), of the first where it was sent again.
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

  /// One life from what several logs hold of it: its device may have moved from one shard to
  /// another on the way.
  package static func join(_ parts: [[DeliveryEvent]]) -> [DeliveryEvent] {
    let parts = parts.filter { !$0.isEmpty }
    guard parts.count > 1 else { return parts.first ?? [] }
    // In the same millisecond, what follows is not before the beginning.
    let first = parts.filter(\.beginsWithReceived)
    let steps = first + parts.filter { !$0.beginsWithReceived }
    return steps.joined().enumerated()
      .sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
      .map(\.element)
  }

  /// The beginnings of the latest lives that are wanted, newest first. Looks at
  /// `Limits.listedLives` steps at most.
  package func latest(
    limit: Int, where isWanted: (DeliveryEvent) -> Bool
  ) -> [DeliveryEvent] {
    var found: [DeliveryEvent] = []
    for age in 0..<min(events.count, Limits.listedLives) where found.count < limit {
      let event = events[(oldest + events.count - 1 - age) % events.count]
      guard case .received = event.step, isWanted(event) else { continue }
      found.append(event)
    }
    return found
  }

  /// About what a copy takes.
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

  /// How many steps have come since the one at this place.
  private func age(_ place: Int) -> Int {
    let distance = oldest - 1 - place + (place < oldest ? 0 : capacity)
    return events.count < capacity ? events.count - 1 - place : distance
  }

  /// The relay numbers unique ids in a row, so that neighbours have neighbouring buckets, which are
  /// in the cache together. Nobody else chooses them.
  private static func hash(_ id: UniqueID) -> Int {
    Int(truncatingIfNeeded: id.low &+ id.high >> 16)
  }
}

extension [DeliveryEvent] {
  fileprivate var beginsWithReceived: Bool {
    if case .received? = first?.step { true } else { false }
  }
}

/// Chains of places in a ring, by hash: a place leads to the one before it in its bucket. A place
/// that was taken anew is younger than the one that leads to it; there a chain ends. So nothing is
/// ever removed.
private struct Chains: Sendable {
  private static let end: Int32 = -1

  private let mask: Int
  /// The youngest place of each bucket, or `end`; made with the first one.
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

  /// Visits the places of a bucket, youngest first, while the visitor wants to go on; among them
  /// may be places of others.
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
