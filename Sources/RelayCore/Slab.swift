/// Values with small stable numbers: an array and a list of its free places.
///
/// Devices, apps and notifications refer to each other by number, so that a shard is one value that
/// tests can copy and compare. Places hold plain values, not optionals: reading a field through an
/// optional copies the whole value, which was most of the work per notification (measured with
/// callgrind).
package struct Slab<Element: Sendable>: Sendable {
  /// The number of a place, or `none`. An optional would take more than four bytes.
  package struct Index: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: Int32

    package init(_ number: Int32) { self.number = number }

    package static var none: Self { Self(-1) }
    /// It is not `none`.
    package var exists: Bool { number >= 0 }
    package var description: String { "\(number)" }

    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }

    /// These are the numbers from 0, each once.
    static func areAll(_ numbers: [Self]) -> Bool {
      var isThere = [Bool](repeating: false, count: numbers.count)
      for number in numbers where isThere.indices.contains(Int(number)) {
        isThere[Int(number)] = true
      }
      return !isThere.contains(false)
    }
  }

  private var places: [Element] = []
  /// Per place: the next free place, or `none`, or `taken`.
  private var links: [Index] = []
  /// The place freed last, or `none`.
  private var firstFree = Index.none
  package private(set) var count = 0
  /// Replaces a freed value, so that its memory is released.
  private let vacant: Element

  package init(vacant: Element) {
    self.vacant = vacant
  }

  /// Restores the taken places, and the free ones in the order of reuse; nil unless their numbers
  /// are 0..<n, each once.
  package init?(taken: [(number: Index, element: Element)], free: [Index], vacant: Element) {
    guard Index.areAll(taken.map(\.number) + free) else { return nil }
    self.vacant = vacant
    count = taken.count
    places = Array(repeating: vacant, count: count + free.count)
    links = Array(repeating: Self.taken, count: places.count)
    for item in taken { places[Int(item.number)] = item.element }
    for number in free.reversed() {
      links[Int(number)] = firstFree
      firstFree = number
    }
  }

  private static var taken: Index { Index(-2) }

  /// Returns the value's number.
  package mutating func insert(_ element: consuming Element) -> Index {
    count += 1
    guard firstFree.exists else {
      places.append(element)
      links.append(Self.taken)
      return Index(Int32(places.count - 1))
    }
    let index = firstFree
    firstFree = links[Int(index)]
    links[Int(index)] = Self.taken
    places[Int(index)] = element
    return index
  }

  /// Frees a place. Its number may be reused at once.
  package mutating func remove(at index: Index) {
    precondition(links[Int(index)] == Self.taken, "a place is freed once")
    links[Int(index)] = firstFree
    firstFree = index
    count -= 1
    places[Int(index)] = vacant
  }

  /// The place must be taken.
  package subscript(index: Index) -> Element {
    _read { yield places.span[Int(index)] }
    _modify { yield &places[Int(index)] }
  }

  /// Taken or free.
  package var placeCount: Int { places.count }

  package func isTaken(_ index: Index) -> Bool { links[Int(index)] == Self.taken }

  /// For a number from a file.
  func mayBeTaken(_ index: Index) -> Bool { links.indices.contains(Int(index)) && isTaken(index) }

  func isLink(_ index: Index) -> Bool { index == .none || mayBeTaken(index) }

  /// In the order of reuse.
  package var freePlaces: [Index] {
    Array(sequence(first: firstFree) { links[Int($0)] }.prefix { $0.exists })
  }

  /// The taken places in order.
  package var indices: [Index] {
    links.indices.compactMap { links[$0] == Self.taken ? Index(Int32($0)) : nil }
  }
}

extension Int {
  init<Element>(_ index: Slab<Element>.Index) { self = Int(index.number) }
}

package typealias DeviceNumber = Slab<Device>.Index
package typealias AppNumber = Slab<App>.Index
package typealias EntryNumber = Slab<AcceptedNotification>.Index
package typealias AliasNumber = Slab<Alias>.Index
