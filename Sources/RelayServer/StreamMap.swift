import HTTP2
import Primitives

/// What a connection knows about its streams, by stream identifier: states in places, and an index
/// to them.
///
/// A state never moves, and the table allocates only to grow. A free place holds the vacant state:
/// with optional ones every look at a state would copy it whole.
struct StreamMap<State> {
  private let hash = KeyedHash.ofProcess
  private var index = HashIndex()
  /// By place: the stream, 0 for none, and its state.
  private var identifiers: [StreamID] = []
  private var states: [State] = []
  private var freePlaces: [Int32] = []
  private let vacant: State

  /// - Parameter vacant: lies in free places, so that a removed state lets go of its memory.
  init(vacant: State) {
    self.vacant = vacant
  }

  /// Streams in the table.
  var count: Int { index.count }

  @inline(__always)
  private func place(of id: StreamID) -> Int? {
    index.find(hash.hash(counting: id)) { identifiers[Int($0)] == id }.map { Int($0) }
  }

  /// The state of a stream; nil when it is not in the table. Setting nil removes it.
  subscript(id: StreamID) -> State? {
    get { place(of: id).map { states[$0] } }
    set {
      if let newValue { insert(newValue, id) } else { remove(id) }
    }
  }

  /// Looks at a state where it lies; nil when the stream is not in the table.
  @inline(__always)
  func read<Result>(_ id: StreamID, _ body: (borrowing State) -> Result) -> Result? {
    guard let place = place(of: id) else { return nil }
    return body(states[place])
  }

  /// Changes a state where it lies; nil when the stream is not in the table.
  @inline(__always)
  mutating func modify<Result>(_ id: StreamID, _ body: (inout State) -> Result) -> Result? {
    guard let place = place(of: id) else { return nil }
    return body(&states[place])
  }

  /// Every stream in the table with its state, in no particular order.
  var all: [(id: StreamID, state: State)] {
    identifiers.indices.compactMap { place in
      identifiers[place] == 0 ? nil : (identifiers[place], states[place])
    }
  }

  /// Puts a state in, in place of the one that is there.
  mutating func insert(_ state: consuming State, _ id: StreamID) {
    states[claim(id)] = state
  }

  /// Makes a state where it will lie, of what was left there: the vacant state, or one that was
  /// removed by `remove(_:leaving:)`. What it is made with is lent to `body`: captured, it would be
  /// copied.
  @inline(__always)
  mutating func insert<Source>(
    _ id: StreamID, with source: inout Source, making body: (inout State, inout Source) -> Void
  ) {
    body(&states[claim(id)], &source)
  }

  /// The place of a stream, which may be a new one.
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

  /// Removes a stream, if it is there.
  mutating func remove(_ id: StreamID) {
    remove(id) { [vacant] in $0 = vacant }
  }

  /// Removes a stream, if it is there. What `body` leaves of the state is what the next one in that
  /// place is made of.
  @inline(__always)
  mutating func remove(_ id: StreamID, leaving body: (inout State) -> Void) {
    guard let place = place(of: id) else { return }
    index.remove(Int32(truncatingIfNeeded: place), hash.hash(counting: id))
    identifiers[place] = 0
    body(&states[place])
    freePlaces.append(Int32(truncatingIfNeeded: place))
    if index.count == 0, index.capacity > 256 { shrink() }
  }

  /// A burst of streams must not leave its memory behind.
  @inline(never)
  private mutating func shrink() { self = StreamMap(vacant: vacant) }
}
