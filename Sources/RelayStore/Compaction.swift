import SQLite
import Synchronization

/// Keeps the file below twice what is stored plus `slackBytes`. When idle, free pages beyond a
/// quarter of the slack are released in small steps; beyond all of it also under load. A file whose
/// pages are half empty is rewritten when idle (`VACUUM`), which takes seconds for much data; so
/// new submissions interrupt it, a few times at most. SQLite merges pages less than a third full,
/// which bounds the file under constant load.
struct Compaction {
  private enum Phase {
    case tidy
    /// A turn must be scheduled.
    case wanted
    /// A turn is scheduled.
    case coming
  }

  private static let pagesPerStep = 256
  private static let rowsPerStep = 20_000
  /// Commits between two checks of the free pages under load.
  private static let commitsPerLook = 64

  /// Interrupted rewrites before one runs to its end.
  private static let patience = 3
  /// Pause after an interrupted rewrite.
  private static let retryNanoseconds: UInt64 = 60_000_000_000

  private let slackBytes: Int
  private let interruption: Interruption
  private var interruptedCount = 0
  private var nextVacuumAt: UInt64 = 0
  private var phase = Phase.wanted
  /// Something was written since the turn was scheduled.
  private var isBusy = false
  private var commitsSinceLook = 0
  /// Rows deleted since the last measurement; without any, nothing has changed.
  private var forgottenSinceMeasured = Int.max / 2
  private var measurement: Measurement?
  /// Rewrites so far.
  private(set) var count = 0

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

  mutating func record(_ batch: Batch) {
    if phase == .tidy { phase = .wanted }
    isBusy = true
    commitsSinceLook += 1
    forgottenSinceMeasured = min(.max / 2, forgottenSinceMeasured + batch.forgets.count)
    measurement = nil
  }

  /// Releases some pages under load if there are many; returns an error's text.
  mutating func trimWhileBusy(_ file: JournalFile) -> String? {
    guard commitsSinceLook >= Self.commitsPerLook else { return nil }
    commitsSinceLook = 0
    return attempt {
      guard try freeBytes(file) > slackBytes else { return }
      try giveBack(Self.pagesPerStep, file)
    }
  }

  /// One step of tidying when idle; returns an error's text.
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

  /// Moves the write-ahead log into the file and truncates it, unless there is a reader.
  func truncateLog(_ file: JournalFile) {
    file.connection.setBusyMilliseconds(0)
    defer { file.connection.setBusyMilliseconds(Schema.busyMilliseconds) }
    try? file.connection.truncateLog()
  }

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

  /// The stored bytes; nil until all rows were read.
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

/// Lets traffic interrupt a long statement that can wait.
final class Interruption: Sendable {
  private let isActive = Atomic(false)
  /// Cleared when the work ends, so that a late call cannot interrupt a commit.
  private let connection = Mutex<SQLiteConnection?>(nil)

  /// Throws `interrupted` after `request`.
  func run(_ sql: String, on connection: SQLiteConnection) throws(SQLiteError) {
    self.connection.withLock { $0 = connection }
    isActive.store(true, ordering: .sequentiallyConsistent)
    defer {
      isActive.store(false, ordering: .sequentiallyConsistent)
      self.connection.withLock { $0 = nil }
    }
    try connection.execute(sql)
  }

  /// Interrupts the running statement, if any. From any thread; almost free.
  func request() {
    guard isActive.load(ordering: .relaxed) else { return }
    connection.withLock { $0?.interrupt() }
  }
}
