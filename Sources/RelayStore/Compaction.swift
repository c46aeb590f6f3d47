import SQLite
import Synchronization

/// Keeps the file at no more than twice what is stored, plus `slackBytes`.
///
/// Three means, each when the one before is not enough: free pages are reused; free pages beyond
/// a quarter of the slack are given back, in small steps, when nothing else is to do, and beyond
/// all of it also under load; and a file that is large all the same, because its pages are half
/// empty, is written anew (`VACUUM`) when nothing else is to do. That takes seconds when much is
/// stored, so what is submitted meanwhile breaks it off, a few times at most. SQLite itself merges
/// pages that are less than a third full, which bounds the file under load that never pauses.
struct Compaction {
  private enum Phase {
    /// Nothing was written since all was tidy.
    case tidy
    /// Something was written; a turn is to be asked for.
    case wanted
    /// A turn is on its way.
    case coming
  }

  private static let pagesPerStep = 256
  private static let rowsPerStep = 20_000
  /// Commits between two looks at the free pages under load.
  private static let commitsPerLook = 64

  /// Times that traffic may break off before it has to wait.
  private static let patience = 3
  /// How long the file is left alone then.
  private static let retryNanoseconds: UInt64 = 60_000_000_000

  private let slackBytes: Int
  private let interruption: Interruption
  private var interruptedCount = 0
  private var nextVacuumAt: UInt64 = 0
  private var phase = Phase.wanted
  /// Something was written since the turn was asked for.
  private var isBusy = false
  private var commitsSinceLook = 0
  /// What was forgotten since the last measurement: as long as it is little, nothing has changed.
  private var forgottenSinceMeasured = Int.max / 2
  private var measurement: Measurement?
  /// Times that the file was written anew.
  private(set) var count = 0

  /// A pass over all rows, a part at a time.
  private struct Measurement {
    var next = Int64.min
    var rows = 0
    var bytes = 0
  }

  init(slackBytes: Int, interruption: Interruption) {
    self.slackBytes = slackBytes
    self.interruption = interruption
  }

  var wantsTurn: Bool { phase == .wanted }
  mutating func turnIsComing() { phase = .coming }
  mutating func turnIsOver() { phase = .tidy }

  /// A batch was written.
  mutating func note(_ batch: Batch) {
    if phase == .tidy { phase = .wanted }
    isBusy = true
    commitsSinceLook += 1
    forgottenSinceMeasured = min(.max / 2, forgottenSinceMeasured + batch.forgets.count)
    measurement = nil
  }

  /// Gives some of many free pages back although there is traffic; a sentence when it fails.
  mutating func trimWhileBusy(_ file: JournalFile) -> String? {
    guard commitsSinceLook >= Self.commitsPerLook else { return nil }
    commitsSinceLook = 0
    return attempt {
      guard try freeBytes(file) > slackBytes else { return }
      try giveBack(Self.pagesPerStep, file)
    }
  }

  /// One step of tidying, in a moment without traffic; a sentence when it fails.
  mutating func tidy(_ file: JournalFile, isIdle: Bool, at now: UInt64) -> String? {
    guard isIdle, !isBusy else {
      isBusy = false
      phase = .wanted
      return nil
    }
    var isDone = false
    let problem = attempt { isDone = try step(file, at: now) }
    phase = isDone || problem != nil ? .tidy : .wanted
    return problem
  }

  /// Moves the write-ahead log into the file and cuts it off, unless somebody reads it: nobody is
  /// waited for. A failure costs only space, what is in the log is safe there.
  func truncateLog(_ file: JournalFile) {
    file.connection.setBusyMilliseconds(0)
    defer { file.connection.setBusyMilliseconds(Schema.busyMilliseconds) }
    try? file.connection.truncateLog()
  }

  // MARK: Details

  /// Returns whether nothing is left to do.
  private mutating func step(_ file: JournalFile, at now: UInt64) throws -> Bool {
    if try freeBytes(file) > slackBytes / 4 {
      try giveBack(Self.pagesPerStep * 4, file)
      return false
    }
    let fileBytes = try usedBytes(file)
    if fileBytes > slackBytes, forgottenSinceMeasured > 0, now >= nextVacuumAt {
      guard let live = try measure(file) else { return false }
      if fileBytes > 2 * live + slackBytes {
        try writeAnew(file, at: now)
        return false
      }
    }
    truncateLog(file)
    return true
  }

  private mutating func writeAnew(_ file: JournalFile, at now: UInt64) throws {
    do {
      if interruptedCount < Self.patience {
        try interruption.run("VACUUM", on: file.connection)
      } else {
        try file.connection.execute("VACUUM")
      }
      interruptedCount = 0
      count += 1
    } catch  where error.code == .interrupted {
      interruptedCount += 1
      nextVacuumAt = now &+ Self.retryNanoseconds
      forgottenSinceMeasured = max(1, forgottenSinceMeasured)
    }
  }

  /// The bytes that are stored, once all rows were looked at.
  private mutating func measure(_ file: JournalFile) throws -> Int? {
    var pass = measurement ?? Measurement()
    var rows = 0
    try file.connection.query(
      """
      SELECT count(*), sum(size), max(sequence) FROM (
        SELECT sequence, length(record) + 16 AS size FROM notifications
        WHERE sequence > ? ORDER BY sequence LIMIT ?)
      """, [pass.next.stored, Self.rowsPerStep.stored]
    ) { row in
      rows = Int(row.integer(0) ?? 0)
      pass.bytes += Int(row.integer(1) ?? 0)
      pass.next = row.integer(2) ?? pass.next
    }
    pass.rows += rows
    guard rows < Self.rowsPerStep else {
      measurement = pass
      return nil
    }
    measurement = nil
    forgottenSinceMeasured = 0
    return pass.bytes
  }

  private func freeBytes(_ file: JournalFile) throws -> Int {
    try number("PRAGMA freelist_count", file) * number("PRAGMA page_size", file)
  }

  private func usedBytes(_ file: JournalFile) throws -> Int {
    try number("PRAGMA page_count", file) * number("PRAGMA page_size", file)
  }

  private func giveBack(_ pages: Int, _ file: JournalFile) throws {
    try file.connection.execute("PRAGMA incremental_vacuum(\(pages))")
  }

  private func number(_ pragma: String, _ file: JournalFile) throws -> Int {
    Int(try file.connection.integer(pragma) ?? 0)
  }

  private func attempt(_ work: () throws -> Void) -> String? {
    do {
      try work()
      return nil
    } catch {
      return "\(error)"
    }
  }
}

/// Lets traffic break off a long statement that can wait: a file that is written anew.
final class Interruption: Sendable {
  private let isActive = Atomic(false)
  /// The connection that works; it is let go before anything else is done with it, so that a late
  /// call cannot break off a commit.
  private let connection = Mutex<SQLiteConnection?>(nil)

  /// Does the work; an error of SQLite says that it was broken off.
  func run(_ sql: String, on connection: SQLiteConnection) throws(SQLiteError) {
    self.connection.withLock { $0 = connection }
    isActive.store(true, ordering: .sequentiallyConsistent)
    defer {
      isActive.store(false, ordering: .sequentiallyConsistent)
      self.connection.withLock { $0 = nil }
    }
    try connection.execute(sql)
  }

  /// Breaks off what is being done, if anything is. From any thread; costs next to nothing.
  func request() {
    guard isActive.load(ordering: .relaxed) else { return }
    connection.withLock { $0?.interrupt() }
  }
}
