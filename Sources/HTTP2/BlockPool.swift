/// A queue of bytes: a chain of blocks in a `BlockPool`.
struct ByteQueue {
  var first: Int32 = -1
  var last: Int32 = -1
  /// Bytes of the first block already read.
  var readOffset: Int32 = 0
  /// Bytes of the last block that are filled.
  var fill: Int32 = 0
  var count = 0
}

/// The outgoing bytes of a session's streams, in equal blocks of one growing array: no allocation
/// once the pool has its size, and an idle stream costs nothing.
struct BlockPool {
  /// Small, so that one waiting line is cheap; large enough for a full notification (4 kB) in a few
  /// steps.
  static let blockBytes = 256
  private var bytes: [UInt8] = []
  private var next: [Int32] = []
  private var firstFree: Int32 = -1
  private var used = 0

  var usedBytes: Int { used &* Self.blockBytes }

  mutating func append(_ source: UnsafeBufferPointer<UInt8>, to queue: inout ByteQueue) {
    var rest = UnsafeRawBufferPointer(source)
    queue.count += rest.count
    while !rest.isEmpty {
      if queue.last < 0 || queue.fill == Int32(Self.blockBytes) { extend(&queue) }
      let room = Self.blockBytes - Int(queue.fill)
      let count = min(room, rest.count)
      let start = Int(queue.last) * Self.blockBytes + Int(queue.fill)
      bytes.withUnsafeMutableBytes { target in
        UnsafeMutableRawBufferPointer(rebasing: target[start..<start + count])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
      }
      queue.fill += Int32(truncatingIfNeeded: count)
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  /// Moves up to `target.count` bytes out of the queue; returns how many.
  mutating func read(from queue: inout ByteQueue, into target: UnsafeMutableBufferPointer<UInt8>)
    -> Int
  {
    let wanted = min(target.count, queue.count)
    var done = 0
    while done < wanted {
      let end = queue.first == queue.last ? Int(queue.fill) : Self.blockBytes
      let count = min(end - Int(queue.readOffset), wanted - done)
      let start = Int(queue.first) * Self.blockBytes + Int(queue.readOffset)
      bytes.withUnsafeBytes { source in
        UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(target)[done...])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[start..<start + count]))
      }
      done += count
      queue.readOffset += Int32(truncatingIfNeeded: count)
      if Int(queue.readOffset) == end { dropFirstBlock(&queue) }
    }
    queue.count -= done
    return done
  }

  mutating func release(_ queue: inout ByteQueue) {
    while queue.first >= 0 { dropFirstBlock(&queue) }
    queue.count = 0
  }

  private mutating func extend(_ queue: inout ByteQueue) {
    if firstFree < 0 { grow() }
    let block = firstFree
    firstFree = next[Int(block)]
    next[Int(block)] = -1
    used += 1
    if queue.last >= 0 {
      next[Int(queue.last)] = block
    } else {
      queue.first = block
      queue.readOffset = 0
    }
    queue.last = block
    queue.fill = 0
  }

  private mutating func dropFirstBlock(_ queue: inout ByteQueue) {
    let block = queue.first
    queue.first = next[Int(block)]
    queue.readOffset = 0
    if queue.first < 0 {
      queue.last = -1
      queue.fill = 0
    }
    next[Int(block)] = firstFree
    firstFree = block
    used -= 1
    // Frees a slow reader's backlog once it is gone.
    if used == 0 && next.count > 128 { self = BlockPool() }
  }

  private mutating func grow() {
    let old = next.count
    let new = max(2, old * 2)
    bytes.reserveCapacity(new * Self.blockBytes)
    bytes.append(contentsOf: repeatElement(0, count: (new - old) * Self.blockBytes))
    next.reserveCapacity(new)
    for block in old..<new {
      next.append(block + 1 < new ? Int32(truncatingIfNeeded: block + 1) : -1)
    }
    firstFree = Int32(truncatingIfNeeded: old)
  }
}
