import HTTP2

/// Where the streams of a connection have their places: a small open-addressed table, by stream
/// identifier.
private struct StreamIndex {
  private let hash = StreamHash()
  private var identifiers: [StreamID] = []
  private var places: [Int32] = []
  private(set) var count = 0

  /// A free entry; stream 0 is the connection itself and never in the table.
  private static var free: StreamID { 0 }

  /// Every stream with its place, in no particular order.
  var all: [(id: StreamID, place: Int)] {
    identifiers.indices.compactMap { entry in
      guard identifiers[entry] != Self.free else { return nil }
      return (identifiers[entry], Int(places[entry]))
    }
  }

  /// How much memory the table has taken, in entries.
  var capacity: Int { identifiers.count }

  private func home(_ id: StreamID) -> Int { hash.home(id) & (identifiers.count &- 1) }

  private func entry(of id: StreamID) -> Int? {
    guard count > 0 else { return nil }
    var entry = home(id)
    while identifiers[entry] != Self.free {
      if identifiers[entry] == id { return entry }
      entry = (entry &+ 1) & (identifiers.count &- 1)
    }
    return nil
  }

  /// The place of a stream; nil when it is not in the table.
  func place(of id: StreamID) -> Int? { entry(of: id).map { Int(places[$0]) } }

  /// Enters a stream that is not in the table.
  mutating func insert(_ id: StreamID, _ place: Int) {
    if (count + 1) * 2 > identifiers.count { grow() }
    enter(id, Int32(place))
    count += 1
  }

  private mutating func enter(_ id: StreamID, _ place: Int32) {
    var entry = home(id)
    while identifiers[entry] != Self.free {
      entry = (entry &+ 1) & (identifiers.count &- 1)
    }
    identifiers[entry] = id
    places[entry] = place
  }

  /// Removes a stream and answers its place; nil when it is not in the table.
  mutating func remove(_ id: StreamID) -> Int? {
    guard let removed = entry(of: id) else { return nil }
    let place = Int(places[removed])
    // What follows in the probe sequence moves back, so that no tombstones remain.
    let mask = identifiers.count &- 1
    var hole = removed
    var entry = (hole &+ 1) & mask
    while identifiers[entry] != Self.free {
      let distance = (entry &- home(identifiers[entry])) & mask
      if distance >= (entry &- hole) & mask {
        identifiers[hole] = identifiers[entry]
        places[hole] = places[entry]
        hole = entry
      }
      entry = (entry &+ 1) & mask
    }
    identifiers[hole] = Self.free
    count -= 1
    return place
  }

  private mutating func grow() {
    let (oldIdentifiers, oldPlaces) = (identifiers, places)
    let capacity = max(8, identifiers.count * 2)
    identifiers = Array(repeating: Self.free, count: capacity)
    places = Array(repeating: -1, count: capacity)
    for (entry, id) in oldIdentifiers.enumerated() where id != Self.free {
      enter(id, oldPlaces[entry])
    }
  }
}

/// What a connection knows about its streams, by stream identifier: states in places, and an index
/// to them.
///
/// A state never moves, and the table allocates only to grow. A free place holds the vacant state:
/// with optional ones every look at a state would copy it whole.
struct StreamMap<State> {
  private var index = StreamIndex()
  private var states: [State] = []
  private var freePlaces: [Int32] = []
  private let vacant: State

  /// - Parameter vacant: lies in free places, so that a removed state lets go of its memory.
  init(vacant: State) {
    self.vacant = vacant
  }

  /// Streams in the table.
  var count: Int { index.count }

  /// The state of a stream; nil when it is not in the table. Setting nil removes it.
  subscript(id: StreamID) -> State? {
    get { index.place(of: id).map { states[$0] } }
    set {
      if let newValue { insert(newValue, id) } else { remove(id) }
    }
  }

  /// Looks at a state where it lies; nil when the stream is not in the table.
  @inline(__always)
  func read<Result>(_ id: StreamID, _ body: (borrowing State) -> Result) -> Result? {
    guard let place = index.place(of: id) else { return nil }
    return body(states[place])
  }

  /// Changes a state where it lies; nil when the stream is not in the table.
  @inline(__always)
  mutating func modify<Result>(_ id: StreamID, _ body: (inout State) -> Result) -> Result? {
    guard let place = index.place(of: id) else { return nil }
    return body(&states[place])
  }

  /// Every stream in the table with its state, in no particular order.
  var all: [(id: StreamID, state: State)] { index.all.map { ($0.id, states[$0.place]) } }

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
    if let place = index.place(of: id) { return place }
    let place: Int
    if let last = freePlaces.popLast() {
      place = Int(last)
    } else {
      place = states.count
      states.append(vacant)
    }
    index.insert(id, place)
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
    guard let place = index.remove(id) else { return }
    body(&states[place])
    freePlaces.append(Int32(truncatingIfNeeded: place))
    if index.count == 0, index.capacity > 256 { shrink() }
  }

  /// A burst of streams must not leave its memory behind.
  @inline(never)
  private mutating func shrink() { self = StreamMap(vacant: vacant) }
}
