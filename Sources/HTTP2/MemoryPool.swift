import CNghttp2
import Glibc

/// The memory libnghttp2 allocates from, one pool per session.
///
/// A request costs it five small pieces, which with a hundred streams at once outrun the
/// allocator's own cache; keeping freed pieces here, by size, saves about a tenth of the time of a
/// request. Pieces are kept up to `maximumSpareBytes`, so that a burst leaves little behind; fewer
/// of a client that has shown no credentials, or each of a thousand strangers would have as many.
///
/// Every piece begins with 16 bytes (the alignment of `malloc`) that hold its size class;
/// class 0 stands for pieces too large to keep.
struct MemoryPool {
  private static let headerBytes = 16
  private static let classBytes = 32
  private static let classCount = 33
  static let strangersSpareBytes = 8 << 10
  static let fullSpareBytes = 128 << 10

  /// By class: the first free piece; each free piece begins with the address of the next.
  private let spares: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  private var spareBytes = 0
  /// Bytes of pieces that are kept.
  var maximumSpareBytes: Int

  init(maximumSpareBytes: Int) {
    self.maximumSpareBytes = maximumSpareBytes
    spares = .allocate(capacity: Self.classCount)
    spares.initialize(repeating: nil, count: Self.classCount)
  }

  /// Frees what is spare. All other pieces must have been given back.
  mutating func destroy() {
    for size in 0..<Self.classCount {
      while let piece = spares[size] {
        spares[size] = piece.load(as: UnsafeMutableRawPointer?.self)
        Glibc.free(piece - Self.headerBytes)
      }
    }
    spares.deallocate()
  }

  mutating func allocate(_ count: Int) -> UnsafeMutableRawPointer? {
    let size = max(1, (count &+ Self.classBytes &- 1) / Self.classBytes)
    guard size < Self.classCount else { return make(size: 0, count) }
    if let piece = spares[size] {
      spares[size] = piece.load(as: UnsafeMutableRawPointer?.self)
      spareBytes &-= size &* Self.classBytes
      return piece
    }
    return make(size: size, size * Self.classBytes)
  }

  private func make(size: Int, _ count: Int) -> UnsafeMutableRawPointer? {
    guard count <= Int.max - Self.headerBytes,
      let piece = malloc(count + Self.headerBytes)
    else { return nil }
    piece.storeBytes(of: size, as: Int.self)
    return piece + Self.headerBytes
  }

  mutating func free(_ piece: UnsafeMutableRawPointer) {
    let start = piece - Self.headerBytes
    let size = start.load(as: Int.self)
    guard size > 0, spareBytes < maximumSpareBytes else {
      Glibc.free(start)
      return
    }
    piece.storeBytes(of: spares[size], as: UnsafeMutableRawPointer?.self)
    spares[size] = piece
    spareBytes &+= size &* Self.classBytes
  }

  mutating func reallocate(
    _ piece: UnsafeMutableRawPointer, _ count: Int
  ) -> UnsafeMutableRawPointer? {
    let start = piece - Self.headerBytes
    let size = start.load(as: Int.self)
    if size == 0 {
      guard let moved = realloc(start, count + Self.headerBytes) else { return nil }
      return moved + Self.headerBytes
    }
    let room = size * Self.classBytes
    guard count > room else { return piece }
    guard let moved = allocate(count) else { return nil }
    moved.copyMemory(from: piece, byteCount: room)
    free(piece)
    return moved
  }
}

extension MemoryPool {
  /// libnghttp2's view of a pool, which must outlive the session that is made with it.
  static func functions(_ pool: UnsafeMutablePointer<MemoryPool>) -> nghttp2_mem {
    nghttp2_mem(
      mem_user_data: pool,
      malloc: { count, pool in memoryPool(pool)?.pointee.allocate(count) },
      free: { piece, pool in
        if let piece { memoryPool(pool)?.pointee.free(piece) }
      },
      calloc: { items, count, pool in
        let (total, overflow) = items.multipliedReportingOverflow(by: count)
        guard !overflow, let piece = memoryPool(pool)?.pointee.allocate(total) else { return nil }
        memset(piece, 0, total)
        return piece
      },
      realloc: { piece, count, pool in
        guard let piece else { return memoryPool(pool)?.pointee.allocate(count) }
        return memoryPool(pool)?.pointee.reallocate(piece, count)
      })
  }
}

private func memoryPool(
  _ pointer: UnsafeMutableRawPointer?
) -> UnsafeMutablePointer<MemoryPool>? {
  pointer?.assumingMemoryBound(to: MemoryPool.self)
}
