import Primitives
import RelayCore

/// Records and forgets waiting to be written. A pure value; times are monotonic nanoseconds.
struct Backlog {
  private struct Queued {
    /// nil once the record is no longer needed.
    var content: JournalRecord.Content?
    var sequence: UInt64
    var arrivedAt: UInt64
    var mayLinger: Bool
  }

  /// A shard's records by sequence, without gaps except where a range ends.
  private struct Line {
    var queued: [Queued] = []
    /// Start of the line in `queued`; earlier ones have left.
    var head = 0
    var urgentCount = 0

    var count: Int { queued.count - head }

    func index(of sequence: UInt64) -> Int? {
      guard count > 0, sequence >= queued[head].sequence else { return nil }
      // Right unless there is a gap, which is rare.
      let distance = sequence - queued[head].sequence
      if distance < UInt64(count), queued[head + Int(distance)].sequence == sequence {
        return head + Int(distance)
      }
      var (low, high) = (head, queued.count)
      while low < high {
        let middle = (low + high) / 2
        if queued[middle].sequence < sequence { low = middle + 1 } else { high = middle }
      }
      return low < queued.count && queued[low].sequence == sequence ? low : nil
    }

    mutating func removeFirst(_ count: Int) {
      head += count
      // Compact only when half has left: every record moves once at most.
      guard head * 2 >= queued.count else { return }
      queued.removeFirst(head)
      head = 0
    }
  }

  private let lingerNanoseconds: UInt64
  private let forgetDelayNanoseconds: UInt64
  private var lines: [Line] = []
  private var forgets: [UInt64] = []
  private var forgetDeadline = UInt64.max
  private(set) var skippedCount = 0

  init(lingerNanoseconds: UInt64, forgetDelayNanoseconds: UInt64) {
    self.lingerNanoseconds = lingerNanoseconds
    self.forgetDelayNanoseconds = forgetDelayNanoseconds
  }

  var isEmpty: Bool { forgets.isEmpty && lines.allSatisfy { $0.count == 0 } }

  var hasOnlyForgets: Bool { !forgets.isEmpty && lines.allSatisfy { $0.count == 0 } }

  mutating func append(shard: Int, records: [JournalRecord], forgets: [UInt64], at now: UInt64) {
    while lines.count <= shard { lines.append(Line()) }
    for record in records {
      precondition(
        lines[shard].count == 0 || record.sequence > lines[shard].queued.last?.sequence ?? 0,
        "sequences of a shard rise from record to record")
      lines[shard].queued.append(
        Queued(
          content: record.content, sequence: record.sequence, arrivedAt: now,
          mayLinger: record.mayLinger))
      if !record.mayLinger { lines[shard].urgentCount += 1 }
    }
    for sequence in forgets { forget(sequence, shard, at: now) }
  }

  private mutating func forget(_ sequence: UInt64, _ shard: Int, at now: UInt64) {
    guard let index = lines[shard].index(of: sequence) else {
      if forgets.isEmpty { forgetDeadline = now &+ forgetDelayNanoseconds }
      return forgets.append(sequence)
    }
    // Only notifications can be forgotten; everything else must be written.
    guard lines[shard].queued[index].content?.isNotification == true else { return }
    lines[shard].queued[index].content = nil
    if !lines[shard].queued[index].mayLinger { lines[shard].urgentCount -= 1 }
    skippedCount += 1
  }

  /// Removes what is first in its line and need not be written; it counts as persisted.
  mutating func popSettled() -> [Journal.Outcome] {
    var outcomes: [Journal.Outcome] = []
    for shard in lines.indices {
      var count = 0
      while count < lines[shard].count,
        lines[shard].queued[lines[shard].head + count].content == nil
      { count += 1 }
      guard count > 0 else { continue }
      let last = lines[shard].queued[lines[shard].head + count - 1].sequence
      lines[shard].removeFirst(count)
      outcomes.append(.persisted(shard: shard, through: last))
    }
    return outcomes
  }

  /// When something must be written: 0 for at once, nil for never. Call after `popSettled`.
  var deadline: UInt64? {
    var deadline = forgets.isEmpty ? UInt64.max : forgetDeadline
    for line in lines where line.count > 0 {
      if line.urgentCount > 0 { return 0 }
      deadline = min(deadline, line.queued[line.head].arrivedAt &+ lingerNanoseconds)
    }
    return deadline == .max ? nil : deadline
  }

  /// Removes forgets and, of every line, all up to the last urgent or due record, but not past the
  /// end of a range of sequences; about `limit` of each. `everything` includes what may linger.
  mutating func popBatch(limit: Int, everything: Bool = false, at now: UInt64) -> Batch {
    var batch = Batch()
    let limitPerLine = max(1, limit / max(1, lines.count))
    for shard in lines.indices {
      let due = dueCount(of: lines[shard], limitPerLine, everything: everything, at: now)
      guard due > 0 else { continue }
      let head = lines[shard].head
      batch.ends.append(
        (shard, lines[shard].queued[head].sequence, lines[shard].queued[head + due - 1].sequence))
      for offset in 0..<due { collect(shard, offset, into: &batch) }
      lines[shard].removeFirst(due)
    }
    batch.sortOthers()
    // Oldest first: a replaced one must not come back after its newer one is forgotten. All of them
    // before a registration: none may reach a token's next owner.
    batch.forgets = batch.registers ? forgets : Array(forgets.prefix(limit))
    return batch
  }

  private func dueCount(of line: Line, _ limit: Int, everything: Bool, at now: UInt64) -> Int {
    var due = 0
    var end = min(limit, line.count)
    for offset in 0..<end {
      let queued = line.queued[line.head + offset]
      if offset > 0, queued.sequence != line.queued[line.head + offset - 1].sequence + 1 {
        end = offset
        break
      }
      guard queued.content != nil else { continue }
      if everything || !queued.mayLinger || queued.arrivedAt &+ lingerNanoseconds <= now {
        due = offset + 1
      } else if line.urgentCount == 0 {
        break
      }
    }
    // The urgent one is beyond this batch: get closer to it.
    return due == 0 && line.urgentCount > 0 ? end : due
  }

  private mutating func collect(_ shard: Int, _ offset: Int, into batch: inout Batch) {
    let index = lines[shard].head + offset
    let sequence = lines[shard].queued[index].sequence
    guard let content = lines[shard].queued[index].content else { return }
    if !lines[shard].queued[index].mayLinger { lines[shard].urgentCount -= 1 }
    switch content {
    case .accepted(let notification, let instant), .forwarded(let notification, _, let instant):
      // One table for both: with all partitions in one place, the token leads to the device.
      batch.notifications.append((sequence, notification, instant))
    case .enrolled, .registered, .unregistered, .granted, .released, .forgotten, .subscribed,
      .unsubscribed, .spent:
      let queued = lines[shard].queued[index]
      batch.others.append((queued.arrivedAt, content, isOwed: queued.mayLinger))
    }
    // The rest of `queued` must not keep a payload alive.
    lines[shard].queued[index].content = nil
  }

  mutating func removeForgets(of batch: Batch) {
    forgets.removeFirst(batch.forgets.count)
    if forgets.isEmpty { forgetDeadline = .max }
  }

  /// Call when the batch failed: its forgets stay and are tried again then.
  mutating func postponeForgets(until moment: UInt64) {
    if !forgets.isEmpty { forgetDeadline = moment }
  }

  var keptCount: Int { lines.reduce(forgets.count) { $0 + $1.queued.count } }
}

struct Batch {
  var notifications: [(sequence: UInt64, notification: Notification, acceptedAt: Instant)] = []
  /// Records about devices and apps, in the order of arrival; see `JournalRecord.isOwed`.
  var others: [(arrivedAt: UInt64, content: JournalRecord.Content, isOwed: Bool)] = []
  var forgets: [UInt64] = []
  /// The sequences of each shard that the batch covers.
  var ends: [(shard: Int, first: UInt64, last: UInt64)] = []

  var isEmpty: Bool { ends.isEmpty && forgets.isEmpty }

  fileprivate var registers: Bool {
    others.contains { if case .registered = $0.content { true } else { false } }
  }

  /// By arrival: a token may move from one shard to another.
  fileprivate mutating func sortOthers() {
    guard ends.count > 1, others.count > 1 else { return }
    let sorted = others.enumerated().sorted { left, right in
      (left.element.arrivedAt, left.offset) < (right.element.arrivedAt, right.offset)
    }
    others = sorted.map(\.element)
  }
}
