import DequeModule
package import Primitives

/// Tokens that are no longer registered, and since when: what 410 says. Bounded: beyond the limit
/// the oldest are forgotten.
package struct GoneTokens: Sendable {
  package struct Token: Hashable, Sendable {
    package var token: DeviceToken
    package var since: Instant

    package init(token: DeviceToken, since: Instant) {
      self.token = token
      self.since = since
    }
  }

  /// A token's place in the order; a token that is registered again leaves it behind.
  package struct Place: Hashable, Sendable {
    package var token: DeviceToken
    package var since: Instant?

    package init(token: DeviceToken, since: Instant?) {
      self.token = token
      self.since = since
    }
  }

  private struct Item: Sendable {
    var since: Instant
    /// Counts removals: which item of `order` is the valid one when a token went more than once.
    var number: UInt64
  }

  private let limit: Int
  private var items: [DeviceToken: Item] = [:]
  /// Oldest first. A token that came back to life leaves its place behind.
  private var order = Deque<(token: DeviceToken, number: UInt64)>()
  private var lastNumber: UInt64 = 0

  init(limit: Int) { self.limit = limit }

  var count: Int { items.count }
  /// Places that are kept, with those that tokens left behind.
  var placeCount: Int { order.count }

  /// Since when the token has been gone; nil when it is not, or was forgotten.
  subscript(token: DeviceToken) -> Instant? { items[token]?.since }

  /// Adds a token as the youngest; returns the one that is forgotten for it.
  mutating func insert(_ token: DeviceToken, since: Instant) -> DeviceToken? {
    lastNumber += 1
    items[token] = Item(since: since, number: lastNumber)
    order.append((token, lastNumber))
    dropLeftPlaces()
    guard items.count > limit, let oldest = order.popFirst() else { return nil }
    items[oldest.token] = nil
    return oldest.token
  }

  /// The token is registered again.
  mutating func remove(_ token: DeviceToken) {
    items[token] = nil
    dropLeftPlaces()
  }

  /// Takes out those that `isIt` names, oldest first.
  mutating func take(_ isIt: (DeviceToken) -> Bool) -> [Token] {
    var taken: [Token] = []
    for (token, number) in order where isIt(token) {
      guard let item = items[token], item.number == number else { continue }
      taken.append(Token(token: token, since: item.since))
      items[token] = nil
    }
    order.removeAll { items[$0.token]?.number != $0.number }
    return taken
  }

  /// Everything that is kept, oldest first.
  var state: [Place] {
    order.map { token, number in
      let item = items[token]
      return Place(token: token, since: item?.number == number ? item?.since : nil)
    }
  }

  /// Takes over what another one has kept.
  mutating func fill(_ state: [Place]) {
    for place in state {
      lastNumber += 1
      if let since = place.since { items[place.token] = Item(since: since, number: lastNumber) }
      order.append((place.token, lastNumber))
    }
  }

  /// The first place is a valid one afterwards, and at least half of all are: so tokens that come
  /// and go take no places away from others. Each place is looked at twice, on the average.
  private mutating func dropLeftPlaces() {
    if order.count > 2 * items.count + 16 {
      order.removeAll { items[$0.token]?.number != $0.number }
    }
    while let oldest = order.first, items[oldest.token]?.number != oldest.number {
      order.removeFirst()
    }
  }
}
