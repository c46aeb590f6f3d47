/// Values with small stable numbers: an array with a list of free places.
///
/// Devices, apps and notifications refer to each other by these numbers instead of by references, so
/// that a whole shard is one value that a test can copy and compare.
package struct Slab<Element: Sendable>: Sendable {
  private var places: [Element?] = []
  private var free: [Int32] = []

  package init() {}

  /// How many places are taken.
  package var count: Int { places.count - free.count }

  /// Puts a value somewhere and says where.
  package mutating func insert(_ element: consuming Element) -> Int32 {
    if let index = free.popLast() {
      places[Int(index)] = element
      return index
    }
    places.append(element)
    return Int32(places.count - 1)
  }

  /// Frees a place. Its number may be given out again at once.
  package mutating func remove(at index: Int32) {
    precondition(places[Int(index)] != nil, "a place is freed once")
    places[Int(index)] = nil
    free.append(index)
  }

  /// The value at a taken place; asking for a free one is our own bug and traps.
  package subscript(index: Int32) -> Element {
    _read { yield places[Int(index)]! }
    _modify { yield &places[Int(index)]! }
  }

  /// The numbers of all taken places, in order.
  package var indices: [Int32] {
    places.indices.compactMap { places[$0] == nil ? nil : Int32($0) }
  }
}
