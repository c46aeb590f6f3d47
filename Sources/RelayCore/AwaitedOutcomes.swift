import DequeModule

/// Notifications that were acknowledged with the promise that the app's outcome follows, and by
/// which device. Bounded: beyond the limit the oldest promise is forgotten, and an outcome that
/// nobody waits for is not logged. So a device can add to the lives of its own notifications only.
package struct AwaitedOutcomes: Sendable {
  package struct Promise: Hashable, Sendable {
    package var id: UniqueID
    package var device: Int32
    /// How often the device has said meanwhile what it decides.
    package var decisions: UInt8

    package init(id: UniqueID, device: Int32, decisions: UInt8 = 0) {
      self.id = id
      self.device = device
      self.decisions = decisions
    }
  }

  /// A promise's place in the order; one that was kept leaves it behind.
  package struct Place: Hashable, Sendable {
    package var id: UniqueID
    package var device: Int32?
    package var decisions: UInt8

    package init(id: UniqueID, device: Int32?, decisions: UInt8 = 0) {
      self.id = id
      self.device = device
      self.decisions = decisions
    }
  }

  private struct Item: Sendable {
    var device: Int32
    var decisions: UInt8
    /// Counts promises: which item of `order` is the valid one when an id comes twice.
    var number: UInt64
  }

  private let limit: Int
  private var promises: [UniqueID: Item] = [:]
  /// Oldest first. An outcome that came leaves its item behind.
  private var order = Deque<(id: UniqueID, number: UInt64)>()
  private var lastNumber: UInt64 = 0

  init(limit: Int) { self.limit = limit }

  mutating func insert(_ id: UniqueID, of device: Int32, decisions: UInt8 = 0) {
    if order.count >= limit, let oldest = order.popFirst(),
      promises[oldest.id]?.number == oldest.number
    {
      promises[oldest.id] = nil
    }
    lastNumber += 1
    promises[id] = Item(device: device, decisions: decisions, number: lastNumber)
    order.append((id, lastNumber))
  }

  /// Whether this device has promised an outcome of this notification; it may keep it once.
  mutating func remove(_ id: UniqueID, of device: Int32) -> Bool {
    guard let promise = promises[id], promise.device == device else { return false }
    promises[id] = nil
    // Mostly the promises are kept in their order: then nothing is left behind.
    while let oldest = order.first, promises[oldest.id]?.number != oldest.number {
      order.removeFirst()
    }
    return true
  }

  /// Whether this device has promised an outcome of this notification and may say once more what it
  /// decides.
  mutating func noteDecision(_ id: UniqueID, of device: Int32) -> Bool {
    guard let promise = promises[id], promise.device == device,
      promise.decisions < Limits.decisionsPerPush
    else { return false }
    promises[id]?.decisions += 1
    return true
  }

  /// Everything that is kept, oldest first.
  var state: [Place] {
    order.map { id, number in
      let item = promises[id]
      guard let item, item.number == number else { return Place(id: id, device: nil) }
      return Place(id: id, device: item.device, decisions: item.decisions)
    }
  }

  /// Takes over what another one has kept.
  mutating func fill(_ state: [Place]) {
    for place in state {
      lastNumber += 1
      if let device = place.device {
        promises[place.id] = Item(
          device: device, decisions: place.decisions, number: lastNumber)
      }
      order.append((place.id, lastNumber))
    }
  }

  /// Takes out what these devices have promised, oldest first; `places` says what to call them.
  mutating func take(of places: [Int32: Int32]) -> [Promise] {
    var taken: [Promise] = []
    for (id, number) in order {
      guard let item = promises[id], item.number == number, let place = places[item.device]
      else { continue }
      taken.append(Promise(id: id, device: place, decisions: item.decisions))
      promises[id] = nil
    }
    order.removeAll { promises[$0.id]?.number != $0.number }
    return taken
  }
}
