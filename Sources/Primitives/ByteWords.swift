/// The eight bytes at `position`, which must exist, as a little-endian word. Written byte by byte,
/// as the safe API has no wider load; the optimizer makes it one.
@inlinable
@inline(__always)
public func littleEndianWord(_ bytes: Span<UInt8>, at position: Int) -> UInt64 {
  let window = bytes.extracting(position..<(position &+ 8))
  let low =
    UInt64(window[0]) | UInt64(window[1]) << 8
    | UInt64(window[2]) << 16 | UInt64(window[3]) << 24
  let high =
    UInt64(window[4]) << 32 | UInt64(window[5]) << 40
    | UInt64(window[6]) << 48 | UInt64(window[7]) << 56
  return low | high
}

/// The eight bytes at `position`, which must exist, as a big-endian word.
@inlinable
@inline(__always)
public func bigEndianWord(_ bytes: Span<UInt8>, at position: Int) -> UInt64 {
  littleEndianWord(bytes, at: position).byteSwapped
}
