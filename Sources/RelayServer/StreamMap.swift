import HTTP2

/// What a connection knows about its streams, by stream identifier: a small open-addressed table.
///
/// Stream identifiers of one peer rise in steps of two and few are open at a time, so half the
/// identifier is a perfect hash almost always. The table never moves a state while others are
/// inserted into free places, allocates only to grow, and costs nothing per stream.
struct StreamMap<State> {
  private var identifiers: [StreamID] = []
  private var states: [State?] = []
  private(set) var count = 0

  /// A free place; stream 0 is the connection itself and never in the table.
  private static var free: StreamID { 0 }

  /// The state of a stream; nil when it is not in the table. Setting nil removes it.
  subscript(id: StreamID) -> State? {
    get { place(of: id).flatMap { states[$0] } }
    set {
      if let place = place(of: id) {
        if let newValue { states[place] = newValue } else { remove(at: place) }
      } else if let newValue {
        insert(newValue, id)
      }
    }
  }

  /// Looks at a state where it lies; nil when the stream is not in the table.
  @inline(__always)
  func read<Result>(_ id: StreamID, _ body: (borrowing State) -> Result) -> Result? {
    guard let place = place(of: id) else { return nil }
    return body(states[place]!)
  }

  /// Changes a state where it lies; nil when the stream is not in the table.
  @inline(__always)
  mutating func modify<Result>(_ id: StreamID, _ body: (inout State) -> Result) -> Result? {
    guard let place = place(of: id) else { return nil }
    return body(&states[place]!)
  }

  /// Every stream in the table with its state, in no particular order.
  var all: [(id: StreamID, state: State)] {
    identifiers.indices.compactMap { place in
      states[place].map { (identifiers[place], $0) }
    }
  }

  private func home(_ id: StreamID) -> Int {
    Int(id >> 1) & (identifiers.count &- 1)
  }

  private func place(of id: StreamID) -> Int? {
    guard count > 0 else { return nil }
    var place = home(id)
    while identifiers[place] != Self.free {
      if identifiers[place] == id { return place }
      place = (place &+ 1) & (identifiers.count &- 1)
    }
    return nil
  }

  private mutating func insert(_ state: State, _ id: StreamID) {
    precondition(id != Self.free, "stream 0 is the connection")
    if (count + 1) * 2 > identifiers.count { grow() }
    var place = home(id)
    while identifiers[place] != Self.free {
      place = (place &+ 1) & (identifiers.count &- 1)
    }
    identifiers[place] = id
    states[place] = state
    count += 1
  }

  /// Removes by shifting what follows in the probe sequence back, so that no tombstones remain.
  private mutating func remove(at removed: Int) {
    let mask = identifiers.count &- 1
    var hole = removed
    var place = (hole &+ 1) & mask
    while identifiers[place] != Self.free {
      let distance = (place &- home(identifiers[place])) & mask
      if distance >= (place &- hole) & mask {
        identifiers[hole] = identifiers[place]
        states.swapAt(hole, place)
        hole = place
      }
      place = (place &+ 1) & mask
    }
    identifiers[hole] = Self.free
    states[hole] = nil
    count -= 1
    if count == 0, identifiers.count > 64 {
      identifiers = []
      states = []
    }
  }

  private mutating func grow() {
    let old = all
    let capacity = max(8, identifiers.count * 2)
    identifiers = Array(repeating: Self.free, count: capacity)
    states = Array(repeating: nil, count: capacity)
    count = 0
    for (id, state) in old { insert(state, id) }
  }
}
