import DequeModule
package import Primitives

/// Unregistered tokens and since when, for 410.
package typealias GoneTokens = RecentTable<DeviceToken, Instant>

/// Acknowledged notifications with a promised outcome; others' outcomes are not logged.
package typealias AwaitedOutcomes = RecentTable<UniqueID, AwaitedOutcome>

/// The device that promised an outcome, and its decisions logged since.
package struct AwaitedOutcome: Hashable, Sendable {
  package var device: DeviceNumber
  package var decisions: UInt8

  package init(device: DeviceNumber, decisions: UInt8 = 0) {
    self.device = device
    self.decisions = decisions
  }
}

/// The latest values by key. Bounded: beyond the limit the oldest are dropped.
package struct RecentTable<Key: Hashable & Sendable, Value: Hashable & Sendable>: Sendable {
  package struct Item: Hashable, Sendable {
    package var key: Key
    package var value: Value

    package init(_ key: Key, _ value: Value) {
      self.key = key
      self.value = value
    }
  }

  /// A key's place in the order; nil once removed.
  package struct Place: Hashable, Sendable {
    package var key: Key
    package var value: Value?

    package init(_ key: Key, _ value: Value?) {
      self.key = key
      self.value = value
    }
  }

  private struct Numbered: Sendable {
    var value: Value
    /// Counts insertions, to tell a repeated key's valid place in `order`.
    var number: UInt64
  }

  private let limit: Int
  private var items: [Key: Numbered] = [:]
  /// Oldest first.
  private var order = Deque<(key: Key, number: UInt64)>()
  private var lastNumber: UInt64 = 0

  package init(limit: Int) { self.limit = limit }

  package var count: Int { items.count }
  /// Includes the places of removed keys.
  var placeCount: Int { order.count }

  package subscript(key: Key) -> Value? { items[key]?.value }

  /// Changes a value in place, if it exists.
  mutating func change(_ key: Key, _ change: (inout Value) -> Void) {
    if let index = items.index(forKey: key) { change(&items.values[index].value) }
  }

  var oldest: Item? {
    order.first.flatMap { first in items[first.key].map { Item(first.key, $0.value) } }
  }

  /// Adds a value as the youngest; returns the one dropped for it.
  package mutating func insert(_ value: Value, for key: Key) -> Item? {
    lastNumber += 1
    items[key] = Numbered(value: value, number: lastNumber)
    order.append((key, lastNumber))
    dropLeftPlaces()
    guard items.count > limit, let oldest else { return nil }
    remove(oldest.key)
    return oldest
  }

  @discardableResult
  mutating func remove(_ key: Key) -> Value? {
    guard let item = items.removeValue(forKey: key) else { return nil }
    dropLeftPlaces()
    return item.value
  }

  mutating func changeValues(_ change: (inout Value) -> Void) {
    items = items.mapValues { item in
      var item = item
      change(&item.value)
      return item
    }
  }

  mutating func removeAll(where isIt: (Item) -> Bool) {
    items = items.filter { !isIt(Item($0.key, $0.value.value)) }
    order.removeAll { items[$0.key]?.number != $0.number }
  }

  /// Oldest first.
  package var state: [Place] {
    get {
      order.map { key, number in
        let item = items[key]
        return Place(key, item?.number == number ? item?.value : nil)
      }
    }
    set {
      self = Self(limit: limit)
      for place in newValue {
        lastNumber += 1
        if let value = place.value { items[place.key] = Numbered(value: value, number: lastNumber) }
        order.append((place.key, lastNumber))
      }
    }
  }

  /// Afterwards the first place is valid and at least half of all are, so that removed keys take no
  /// room from others. Each place is visited twice on average.
  private mutating func dropLeftPlaces() {
    if order.count > 2 * items.count + 16 {
      order.removeAll { items[$0.key]?.number != $0.number }
    }
    while let oldest = order.first, items[oldest.key]?.number != oldest.number {
      order.removeFirst()
    }
  }
}
