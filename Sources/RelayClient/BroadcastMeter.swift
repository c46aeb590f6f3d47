import DeviceLink
import Primitives
import RelayCore

/// Counts the broadcasts that arrive on a connection's streams, for a fleet that measures the relay
/// and not itself. A line is the same for all phones of a slice, so one is parsed, and the others
/// are compared with it byte by byte, without a task of their own.
struct BroadcastMeter {
  private let report: @Sendable (Broadcast, Int) -> Void
  /// The last line, its end included, and what it says.
  private var line: [UInt8] = []
  private var broadcast: Broadcast?
  private var count = 0

  init(_ report: @escaping @Sendable (Broadcast, Int) -> Void) {
    self.report = report
  }

  /// Takes bytes that are one whole line with a broadcast; others are the stream's reader's.
  mutating func take(_ bytes: Span<UInt8>) -> Bool {
    guard bytes.count > 1, bytes[bytes.count - 1] == UInt8(ascii: "\n") else { return false }
    if areEqual(bytes, line.span) {
      count += 1
      return true
    }
    guard case .broadcast(let broadcast, _) = DownLine(bytes.extracting(droppingLast: 1)) else {
      return false
    }
    endBatch()
    (line, self.broadcast, count) = (bytes.array, broadcast, 1)
    return true
  }

  /// Reports what was taken since the last call.
  mutating func endBatch() {
    guard count > 0, let broadcast else { return }
    report(broadcast, count)
    count = 0
  }
}
