import HTTP2
import Primitives

/// A connection's streams by identifier: states in places, and an index to them.
///
/// A state never moves, and the table allocates only to grow. A free place holds the vacant state:
/// optional states would be copied at every look.
struct StreamMap<State> {
  private let hash = KeyedHash.ofProcess
  private var index = HashIndex()
  /// By place: the stream, 0 for none, and its state.
  private var identifiers: [StreamID] = []
  private var states: [State] = []
  private var freePlaces: [Int32] = []
  private let vacant: State

  /// - Parameter vacant: fills free places, so that a removed state releases its memory.
  init(vacant: State) {
    self.vacant = vacant
  }

  var count: Int { index.count }

  @inline(__always)
  private func place(of id: StreamID) -> Int? {
    index.find(hash.hash(counting: id)) { identifiers[Int($0)] == id }.map { Int($0) }
  }

  /// nil when the stream is not in the table. Setting nil removes it.
  subscript(id: StreamID) -> State? {
    get { place(of: id).map { states[$0] } }
    set {
      if let newValue { insert(newValue, id) } else { remove(id) }
    }
  }

  /// Reads a state in place; nil when the stream is not in the table.
  @inline(__always)
  func read<Result>(_ id: StreamID, _ body: (borrowing State) -> Result) -> Result? {
    guard let place = place(of: id) else { return nil }
    return body(states[place])
  }

  /// Changes a state in place; nil when the stream is not in the table.
  @inline(__always)
  mutating func modify<Result>(_ id: StreamID, _ body: (inout State) -> Result) -> Result? {
    guard let place = place(of: id) else { return nil }
    return body(&states[place])
  }

  /// In no particular order.
  var all: [(id: StreamID, state: State)] {
    identifiers.indices.compactMap { place in
      identifiers[place] == 0 ? nil : (identifiers[place], states[place])
    }
  }

  mutating func insert(_ state: consuming State, _ id: StreamID) {
    states[claim(id)] = state
  }

  /// Makes a state in its place from what was left there: the vacant state, or what
  /// `remove(_:leaving:)` left. `source` is passed, since a captured one would be copied.
  @inline(__always)
  mutating func insert<Source>(
    _ id: StreamID, with source: inout Source, making body: (inout State, inout Source) -> Void
  ) {
    body(&states[claim(id)], &source)
  }

  private mutating func claim(_ id: StreamID) -> Int {
    precondition(id != 0, "stream 0 is the connection")
    if let known = self.place(of: id) { return known }
    let place: Int
    if let last = freePlaces.popLast() {
      place = Int(last)
    } else {
      place = states.count
      states.append(vacant)
      identifiers.append(0)
    }
    identifiers[place] = id
    index.insert(Int32(truncatingIfNeeded: place), hash.hash(counting: id))
    return place
  }

  mutating func remove(_ id: StreamID) {
    remove(id) { [vacant] in $0 = vacant }
  }

  /// Removes a stream. The next state in its place is made of what `body` leaves.
  @inline(__always)
  mutating func remove(_ id: StreamID, leaving body: (inout State) -> Void) {
    guard let place = place(of: id) else { return }
    index.remove(Int32(truncatingIfNeeded: place), hash.hash(counting: id))
    identifiers[place] = 0
    body(&states[place])
    freePlaces.append(Int32(truncatingIfNeeded: place))
    if index.count == 0, index.capacity > 256 { shrink() }
  }

  /// Returns the memory of a burst of streams.
  @inline(never)
  private mutating func shrink() { self = StreamMap(vacant: vacant) }
}
