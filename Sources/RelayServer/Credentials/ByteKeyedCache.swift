/// A bounded map from bytes to values that forgets what has not been asked for lately.
///
/// Second chance instead of exact LRU: a hit sets one flag, and the hand that looks for a victim
/// clears flags until it finds an entry that was not used since it last came by. Both are
/// constant time on average and nothing is moved.
struct ByteKeyedCache<Value: Sendable>: Sendable {
  private struct Slot: Sendable {
    var key: [UInt8]
    var value: Value
    var wasUsed: Bool
  }

  /// Most entries held at once.
  let limit: Int
  private var slots: [Slot] = []
  private var indexByKey: [[UInt8]: Int] = [:]
  private var hand = 0

  /// An empty cache of at most `limit` entries; below 1 counts as 1.
  init(limit: Int) {
    self.limit = max(1, limit)
  }

  /// How many entries are held.
  var count: Int { slots.count }

  /// The value for `key`, which thereby counts as used.
  mutating func value(for key: [UInt8]) -> Value? {
    guard let index = indexByKey[key] else { return nil }
    slots[index].wasUsed = true
    return slots[index].value
  }

  /// Holds `value` for `key`, in place of what was held for it or of an entry not used lately.
  mutating func insert(_ value: Value, for key: [UInt8]) {
    let slot = Slot(key: key, value: value, wasUsed: false)
    if let index = indexByKey[key] {
      slots[index] = slot
    } else if slots.count < limit {
      indexByKey[key] = slots.count
      slots.append(slot)
    } else {
      let index = victim()
      indexByKey[slots[index].key] = nil
      indexByKey[key] = index
      slots[index] = slot
    }
  }

  /// Forgets everything.
  mutating func removeAll() {
    slots.removeAll(keepingCapacity: true)
    indexByKey.removeAll(keepingCapacity: true)
    hand = 0
  }

  private mutating func victim() -> Int {
    while slots[hand].wasUsed {
      slots[hand].wasUsed = false
      hand = (hand + 1) % slots.count
    }
    defer { hand = (hand + 1) % slots.count }
    return hand
  }
}
