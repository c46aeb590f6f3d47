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

    package init(number: Int32) { self.number = number }

    init(_ place: Int) { number = Int32(place) }

    package static var none: Self { Self(number: -1) }

    /// Whether it is not `none`.
    package var exists: Bool { number >= 0 }

    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }

    package var description: String { "\(number)" }
  }

  private var places: [Element] = []
  /// Per place: the next free place, or `end`, or `taken`.
  private var links: [Int32] = []
  /// The place freed last, or `end`.
  private var firstFree = Self.end
  package private(set) var count = 0
  /// Replaces a freed value, so that its memory is released.
  private let vacant: Element

  package init(vacant: Element) {
    self.vacant = vacant
  }

  /// Restores the taken places, and the free ones in the order of reuse; nil unless their numbers
  /// are 0..<n, each once.
  package init?(taken: [(number: Int32, element: Element)], free: [Int32], vacant: Element) {
    let placeCount = taken.count + free.count
    var isSeen = [Bool](repeating: false, count: placeCount)
    for number in taken.map(\.number) + free {
      guard isSeen.indices.contains(Int(number)), !isSeen[Int(number)] else { return nil }
      isSeen[Int(number)] = true
    }
    self.vacant = vacant
    places = Array(repeating: vacant, count: placeCount)
    links = Array(repeating: Self.taken, count: placeCount)
    for (number, element) in taken { places[Int(number)] = element }
    for number in free.reversed() {
      links[Int(number)] = firstFree
      firstFree = number
    }
    count = taken.count
  }

  private static var end: Int32 { -1 }
  private static var taken: Int32 { -2 }

  /// Returns the value's number.
  package mutating func insert(_ element: consuming Element) -> Int32 {
    count += 1
    guard firstFree >= 0 else {
      places.append(element)
      links.append(Self.taken)
      return Int32(places.count - 1)
    }
    let index = firstFree
    firstFree = links[Int(index)]
    links[Int(index)] = Self.taken
    places[Int(index)] = element
    return index
  }

  /// Frees a place. Its number may be reused at once.
  package mutating func remove(at index: Int32) {
    precondition(links[Int(index)] == Self.taken, "a place is freed once")
    links[Int(index)] = firstFree
    firstFree = index
    count -= 1
    places[Int(index)] = vacant
  }

  /// The place must be taken.
  package subscript(index: Int32) -> Element {
    _read { yield places.span[Int(index)] }
    _modify { yield &places[Int(index)] }
  }

  /// Taken or free.
  package var placeCount: Int { places.count }

  package func isTaken(_ index: Int32) -> Bool { links[Int(index)] == Self.taken }

  /// For a number from a file.
  func mayBeTaken(_ index: Int32) -> Bool { links.indices.contains(Int(index)) && isTaken(index) }

  /// In the order of reuse.
  package var freePlaces: [Int32] {
    Array(sequence(first: firstFree) { links[Int($0)] }.prefix { $0 != Self.end })
  }

  /// The taken places in order.
  package var indices: [Int32] {
    links.indices.compactMap { links[$0] == Self.taken ? Int32($0) : nil }
  }
}

extension Int {
  init<Element>(_ index: Slab<Element>.Index) { self = Int(index.number) }
}
