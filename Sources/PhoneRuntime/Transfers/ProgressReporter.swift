import Primitives
import Synchronization

/// Takes reports from wherever bytes move, and hands them on one after the other, those of progress
/// at most once in a while.
final class ProgressReporter: Sendable {
  private let channel: AsyncStream<TransferReport>.Continuation
  private let interval: Duration
  private let last: Mutex<ContinuousClock.Instant?> = Mutex(nil)

  /// Reports that may wait for whoever reads them; the oldest are dropped, since the newest says
  /// all that counts.
  static let most = 16

  init(to channel: AsyncStream<TransferReport>.Continuation, every interval: Duration) {
    self.channel = channel
    self.interval = interval
  }

  /// So many bytes in all, after a start or a new one, which is always told.
  func began(at bytes: Int64) {
    last.withLock { $0 = ContinuousClock.now }
    channel.yield(.progressed(bytes: bytes))
  }

  /// So many bytes in all.
  func moved(to bytes: Int64) {
    let now = ContinuousClock.now
    let isDue = last.withLock { last in
      if let last, now - last < interval { return false }
      last = now
      return true
    }
    if isDue { channel.yield(.progressed(bytes: bytes)) }
  }

  /// The last report, or none for a cancelled transfer. Later ones are dropped.
  func end(_ report: TransferReport?) {
    if let report { channel.yield(report) }
    channel.finish()
  }
}
