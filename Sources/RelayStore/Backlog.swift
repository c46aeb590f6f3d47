import RelayCore

/// What waits to be written: one line of records per shard, and the forgets. A value without clock
/// or file; moments are nanoseconds of a clock that never goes back.
struct Backlog {
  private struct Queued {
    /// nil once nobody needs the record any more.
    var content: JournalRecord.Content?
    var arrivedAt: UInt64
    var mayLinger: Bool
  }

  /// A shard's records in the order of their sequences, without gaps.
  private struct Line {
    var queued: [Queued] = []
    /// Where the line begins in `queued`; what is before has left.
    var head = 0
    /// The sequence of the record at `head`.
    var first: UInt64 = 0
    /// Records that may not linger.
    var urgentCount = 0

    var count: Int { queued.count - head }

    mutating func removeFirst(_ count: Int) {
      head += count
      first += UInt64(count)
      // Move the rest down only when it is the smaller part: every record moves once at most.
      guard head * 2 >= queued.count else { return }
      queued.removeFirst(head)
      head = 0
    }
  }

  private let lingerNanoseconds: UInt64
  private let forgetDelayNanoseconds: UInt64
  private var lines: [Line] = []
  private var forgets: [UInt64] = []
  /// When the forgets are to be written at the latest.
  private var forgetDeadline = UInt64.max
  /// Records that were forgotten before they were written.
  private(set) var skippedCount = 0

  init(lingerNanoseconds: UInt64, forgetDelayNanoseconds: UInt64) {
    self.lingerNanoseconds = lingerNanoseconds
    self.forgetDelayNanoseconds = forgetDelayNanoseconds
  }

  var isEmpty: Bool { forgets.isEmpty && lines.allSatisfy { $0.count == 0 } }

  var hasOnlyForgets: Bool { !forgets.isEmpty && lines.allSatisfy { $0.count == 0 } }

  /// Takes in what a shard has sent at that moment.
  mutating func append(
    shard: Int, records: [JournalRecord], forgets: [UInt64], at now: UInt64
  ) {
    while lines.count <= shard { lines.append(Line()) }
    for record in records {
      if lines[shard].count == 0 { lines[shard].first = record.sequence }
      precondition(
        record.sequence == lines[shard].first + UInt64(lines[shard].count),
        "sequences of a shard rise by one from record to record")
      lines[shard].queued.append(
        Queued(content: record.content, arrivedAt: now, mayLinger: record.mayLinger))
      if !record.mayLinger { lines[shard].urgentCount += 1 }
    }
    for sequence in forgets { forget(sequence, shard, at: now) }
  }

  private mutating func forget(_ sequence: UInt64, _ shard: Int, at now: UInt64) {
    let first = lines[shard].first
    guard sequence >= first, sequence - first < UInt64(lines[shard].count) else {
      if forgets.isEmpty { forgetDeadline = now &+ forgetDelayNanoseconds }
      return forgets.append(sequence)
    }
    let index = lines[shard].head + Int(sequence - first)
    // Only a notification can be forgotten; what else there is must be written.
    guard case .accepted = lines[shard].queued[index].content else { return }
    lines[shard].queued[index].content = nil
    if !lines[shard].queued[index].mayLinger { lines[shard].urgentCount -= 1 }
    skippedCount += 1
  }

  /// Takes what stands first in its line and need not be written; it is as good as persisted.
  mutating func takeSettled() -> [Journal.Outcome] {
    var outcomes: [Journal.Outcome] = []
    for shard in lines.indices {
      var count = 0
      while count < lines[shard].count,
        lines[shard].queued[lines[shard].head + count].content == nil
      { count += 1 }
      guard count > 0 else { continue }
      lines[shard].removeFirst(count)
      outcomes.append(.persisted(shard: shard, through: lines[shard].first - 1))
    }
    return outcomes
  }

  /// When something has to be written: 0 for at once, nil for never. Ask after `takeSettled`.
  var deadline: UInt64? {
    var deadline = forgets.isEmpty ? UInt64.max : forgetDeadline
    for line in lines where line.count > 0 {
      if line.urgentCount > 0 { return 0 }
      // The first of a line has waited longest.
      deadline = min(deadline, line.queued[line.head].arrivedAt &+ lingerNanoseconds)
    }
    return deadline == .max ? nil : deadline
  }

  /// Takes what is to be written now: of every line all up to the last record that is urgent or has
  /// lingered long enough, and forgets; at most about `limit` of each. `everything` takes what may
  /// linger, too.
  mutating func takeBatch(limit: Int, everything: Bool = false, at now: UInt64) -> Batch {
    var batch = Batch()
    let limitPerLine = max(1, limit / max(1, lines.count))
    for shard in lines.indices {
      var due = 0
      for offset in 0..<min(limitPerLine, lines[shard].count) {
        let queued = lines[shard].queued[lines[shard].head + offset]
        guard queued.content != nil else { continue }
        if everything || !queued.mayLinger || queued.arrivedAt &+ lingerNanoseconds <= now {
          due = offset + 1
        } else if lines[shard].urgentCount == 0 {
          // Those behind it have come later.
          break
        }
      }
      // What is urgent stands further back than a batch reaches: go towards it.
      if due == 0, lines[shard].urgentCount > 0 { due = min(limitPerLine, lines[shard].count) }
      guard due > 0 else { continue }
      for offset in 0..<due { collect(shard, offset, into: &batch) }
      lines[shard].removeFirst(due)
      batch.ends.append((shard, lines[shard].first - UInt64(due), lines[shard].first - 1))
    }
    batch.sortOthers()
    takeForgets(limit, into: &batch)
    return batch
  }

  private mutating func collect(_ shard: Int, _ offset: Int, into batch: inout Batch) {
    let sequence = lines[shard].first + UInt64(offset)
    let index = lines[shard].head + offset
    guard let content = lines[shard].queued[index].content else { return }
    if !lines[shard].queued[index].mayLinger { lines[shard].urgentCount -= 1 }
    if case .accepted(let notification, let instant) = content {
      batch.notifications.append((sequence, notification, instant))
    } else {
      batch.others.append((lines[shard].queued[index].arrivedAt, content))
    }
    // What stays in `queued` for a while must not keep a payload alive.
    lines[shard].queued[index].content = nil
  }

  private mutating func takeForgets(_ limit: Int, into batch: inout Batch) {
    guard forgets.count > limit else {
      batch.forgets = forgets
      forgets = []
      forgetDeadline = .max
      return
    }
    // The rest keeps its deadline. Oldest first: one that was replaced must not come back after its
    // newer one is forgotten.
    batch.forgets = Array(forgets.prefix(limit))
    forgets.removeFirst(limit)
  }

  /// Takes back the forgets of a batch that failed, to be tried again at that moment.
  mutating func putBack(forgets returned: [UInt64], until moment: UInt64) {
    forgets.insert(contentsOf: returned, at: 0)
    if !forgets.isEmpty { forgetDeadline = moment }
  }
}

/// One transaction's worth.
struct Batch {
  var notifications: [(sequence: UInt64, notification: Notification, acceptedAt: Instant)] = []
  /// Everything about devices and apps, in the order of arrival.
  var others: [(arrivedAt: UInt64, content: JournalRecord.Content)] = []
  var forgets: [UInt64] = []
  /// What of each shard the batch covers.
  var ends: [(shard: Int, first: UInt64, last: UInt64)] = []

  var isEmpty: Bool { ends.isEmpty && forgets.isEmpty }

  /// A token may leave one shard and come to another: what came first is written first.
  fileprivate mutating func sortOthers() {
    guard ends.count > 1, others.count > 1 else { return }
    let sorted = others.enumerated().sorted { left, right in
      (left.element.arrivedAt, left.offset) < (right.element.arrivedAt, right.offset)
    }
    others = sorted.map(\.element)
  }
}
