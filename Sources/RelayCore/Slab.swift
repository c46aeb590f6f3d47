/// Values with small stable numbers: an array and a list through its free places.
///
/// Devices, apps and notifications refer to each other by these numbers instead of by references,
/// so that a whole shard is one value that a test can copy and compare. The places hold plain
/// values, not optional ones: reading a field through an optional copies the whole value, which on
/// the path of every notification was most of the work (measured with callgrind).
package struct Slab<Element: Sendable>: Sendable {
  private var places: [Element] = []
  /// For each place: the free place behind it in the list of free ones, or `end`, or `taken`.
  private var links: [Int32] = []
  /// The place that was freed last, or `end`.
  private var firstFree = Self.end
  /// How many places are taken.
  package private(set) var count = 0
  /// What lies in a free place, so that a freed value lets go of its memory.
  private let vacant: Element

  package init(vacant: Element) {
    self.vacant = vacant
  }

  /// A list with these places.
  init(vacant: Element, placeCount: Int, free: [Int32], taken: [(number: Int32, element: Element)])
  {
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

  /// Puts a value somewhere and says where.
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

  /// Frees a place. Its number may be given out again at once.
  package mutating func remove(at index: Int32) {
    precondition(links[Int(index)] == Self.taken, "a place is freed once")
    links[Int(index)] = firstFree
    firstFree = index
    count -= 1
    places[Int(index)] = vacant
  }

  /// The value at a taken place.
  package subscript(index: Int32) -> Element {
    _read { yield places.span[Int(index)] }
    _modify { yield &places[Int(index)] }
  }

  /// How many places there are, taken or free.
  package var placeCount: Int { places.count }

  /// Whether there is a value at a place.
  package func isTaken(_ index: Int32) -> Bool { links[Int(index)] == Self.taken }

  /// The free places, in the order in which they are given out.
  var freePlaces: [Int32] {
    Array(sequence(first: firstFree) { links[Int($0)] }.prefix { $0 != Self.end })
  }

  /// The numbers of all taken places, in order.
  package var indices: [Int32] {
    links.indices.compactMap { links[$0] == Self.taken ? Int32($0) : nil }
  }
}
