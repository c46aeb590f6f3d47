import FoundationEssentials
import Logging
import NIOCore
import Synchronization

/// Whether the process has as much memory as it may (`maximumMemory`): then what would stay is
/// refused, long before the system ends the process and everybody loses it.
final class MemoryWatch: Sendable {
  private let limitBytes: Int
  private let logger: Logger
  private let state = Atomic(false)
  /// Looks since memory was last given back; used by one loop.
  private let looks = Atomic(0)
  /// A sixteenth must be free again, so that it does not change its mind with each look.
  private static let room = 16
  private static let looksBetweenReturns = 20
  /// Between two looks: at a gigabit a second of pushes that stay, 12 MB.
  static let pause = TimeAmount.milliseconds(100)

  init(limitBytes: Int, _ logger: Logger) { (self.limitBytes, self.logger) = (limitBytes, logger) }

  var isFull: Bool { state.load(ordering: .relaxed) }

  /// Looks at the process; by one loop.
  func look() {
    guard let used = Self.residentBytes else { return }
    guard record(used) else { return looks.store(0, ordering: .relaxed) }
    // Freed memory may still be counted. Slow: not on a loop.
    let count = looks.load(ordering: .relaxed)
    looks.store((count + 1) % Self.looksBetweenReturns, ordering: .relaxed)
    if count == 0 { Task { Relay.returnMemory() } }
  }

  /// Returns whether so much is too much, and logs when that changes.
  @discardableResult
  func record(_ used: Int) -> Bool {
    let wasFull = isFull
    let isFull = used > (wasFull ? limitBytes - limitBytes / Self.room : limitBytes)
    guard isFull != wasFull else { return isFull }
    state.store(isFull, ordering: .relaxed)
    let numbers: Logger.Metadata = [
      "usedMegabytes": "\(used >> 20)", "maximumMegabytes": "\(limitBytes >> 20)",
    ]
    if isFull {
      logger.error(
        "memory is at maximumMemory: pushes and registrations are refused with 503",
        metadata: numbers)
    } else {
      logger.notice("memory suffices: pushes and registrations are taken again", metadata: numbers)
    }
    return isFull
  }

  /// As the kernel counts it (proc_pid_statm(5)); nil where there is no such file.
  private static var residentBytes: Int? {
    let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    let words = text?.split(separator: " ") ?? []
    guard words.count > 1, let pages = Int(words[1]) else { return nil }
    return pages * 4096
  }
}
