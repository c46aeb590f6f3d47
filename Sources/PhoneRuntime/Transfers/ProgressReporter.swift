import Primitives
import Synchronization

/// Collects reports and passes them on one at a time, progress at most once per `interval`.
final class ProgressReporter: Sendable {
  private let channel: AsyncStream<TransferReport>.Continuation
  private let interval: Duration
  private let last: Mutex<ContinuousClock.Instant?> = Mutex(nil)

  /// The maximum of unread reports; the oldest are dropped, as the newest says it all.
  static let most = 16

  init(to channel: AsyncStream<TransferReport>.Continuation, every interval: Duration) {
    self.channel = channel
    self.interval = interval
  }

  /// Total bytes at a start or restart; always reported.
  func began(at bytes: Int64) {
    last.withLock { $0 = ContinuousClock.now }
    channel.yield(.progressed(bytes: bytes))
  }

  func moved(to bytes: Int64) {
    let now = ContinuousClock.now
    let isDue = last.withLock { last in
      if let last, now - last < interval { return false }
      last = now
      return true
    }
    if isDue { channel.yield(.progressed(bytes: bytes)) }
  }

  /// The last report; nil for a cancelled transfer.
  func end(_ report: TransferReport?) {
    if let report { channel.yield(report) }
    channel.finish()
  }
}
