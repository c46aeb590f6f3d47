/// Values with small stable numbers: an array with a list of free places.
///
/// Devices, apps and notifications refer to each other by these numbers instead of by references,
/// so that a whole shard is one value that a test can copy and compare. The places hold plain
/// values, not optional ones: reading a field through an optional copies the whole value, which on
/// the path of every notification was most of the work (measured with callgrind).
package struct Slab<Element: Sendable>: Sendable {
  private var places: [Element] = []
  private var isTaken: [Bool] = []
  private var free: [Int32] = []
  /// What lies in a free place, so that a freed value lets go of its memory.
  private let vacant: Element

  package init(vacant: Element) {
    self.vacant = vacant
  }

  /// How many places are taken.
  package var count: Int { places.count - free.count }

  /// Puts a value somewhere and says where.
  package mutating func insert(_ element: consuming Element) -> Int32 {
    if let index = free.popLast() {
      places[Int(index)] = element
      isTaken[Int(index)] = true
      return index
    }
    places.append(element)
    isTaken.append(true)
    return Int32(places.count - 1)
  }

  /// Frees a place. Its number may be given out again at once.
  package mutating func remove(at index: Int32) {
    precondition(isTaken[Int(index)], "a place is freed once")
    isTaken[Int(index)] = false
    places[Int(index)] = vacant
    free.append(index)
  }

  /// The value at a taken place.
  package subscript(index: Int32) -> Element {
    _read { yield places.span[Int(index)] }
    _modify { yield &places[Int(index)] }
  }

  /// The numbers of all taken places, in order.
  package var indices: [Int32] {
    isTaken.indices.compactMap { isTaken[$0] ? Int32($0) : nil }
  }
}
