import GRDB
import Synchronization

/// Lets traffic break off a long statement that can wait: a file that is written anew.
final class Interruption: Sendable {
  private let isActive = Atomic(false)
  /// The connection that works; it is let go before anything else is done with it, so that a late
  /// call cannot break off a commit.
  private let connection = Mutex<DatabaseQueue?>(nil)

  /// Does the work; an error of SQLite says that it was broken off.
  func run(_ work: (Database) throws -> Void, on queue: DatabaseQueue) throws {
    connection.withLock { $0 = queue }
    isActive.store(true, ordering: .sequentiallyConsistent)
    defer {
      isActive.store(false, ordering: .sequentiallyConsistent)
      connection.withLock { $0 = nil }
    }
    try queue.writeWithoutTransaction(work)
  }

  /// Breaks off what is being done, if anything is. From any thread; costs next to nothing.
  func request() {
    guard isActive.load(ordering: .relaxed) else { return }
    connection.withLock { $0?.interrupt() }
  }
}
