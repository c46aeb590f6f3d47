import Primitives
import RelayCore

/// What waits to be written: one line of records per shard, and the forgets. A value without clock
/// or file; moments are nanoseconds of a clock that never goes back.
struct Backlog {
  private struct Queued {
    /// nil once nobody needs the record any more.
    var content: JournalRecord.Content?
    var sequence: UInt64
    var arrivedAt: UInt64
    var mayLinger: Bool
  }

  /// A shard's records in the order of their sequences, without gaps but where a range ends.
  private struct Line {
    var queued: [Queued] = []
    /// Where the line begins in `queued`; what is before has left.
    var head = 0
    /// Records that may not linger.
    var urgentCount = 0

    var count: Int { queued.count - head }

    /// Where in `queued` this sequence waits; nil when it does not.
    func index(of sequence: UInt64) -> Int? {
      guard count > 0, sequence >= queued[head].sequence else { return nil }
      // Without a gap in the line, which there hardly ever is, this is the place.
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
    // Only a notification can be forgotten; what else there is must be written.
    guard lines[shard].queued[index].content?.isNotification == true else { return }
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
      let last = lines[shard].queued[lines[shard].head + count - 1].sequence
      lines[shard].removeFirst(count)
      outcomes.append(.persisted(shard: shard, through: last))
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
  /// lingered long enough, but not beyond the end of a range of sequences, and forgets; at most
  /// about `limit` of each. `everything` takes what may linger, too.
  mutating func takeBatch(limit: Int, everything: Bool = false, at now: UInt64) -> Batch {
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
    // Oldest first: one that was replaced must not come back after its newer one is forgotten. And
    // all of them before a registration: none must come back to a token's next owner.
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
        // Those behind it have come later.
        break
      }
    }
    // What is urgent stands further back than a batch reaches: go towards it.
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
    case .enrolled, .registered, .unregistered, .granted, .released, .forgotten, .spent:
      let queued = lines[shard].queued[index]
      batch.others.append((queued.arrivedAt, content, isOwed: queued.mayLinger))
    }
    // What stays in `queued` for a while must not keep a payload alive.
    lines[shard].queued[index].content = nil
  }

  /// The forgets of a batch are on disk; the rest keeps its deadline.
  mutating func removeForgets(of batch: Batch) {
    forgets.removeFirst(batch.forgets.count)
    if forgets.isEmpty { forgetDeadline = .max }
  }

  /// The forgets of a batch failed with it: they stay, to be tried again at that moment.
  mutating func postponeForgets(until moment: UInt64) {
    if !forgets.isEmpty { forgetDeadline = moment }
  }

  /// How many records and forgets are kept.
  var keptCount: Int { lines.reduce(forgets.count) { $0 + $1.queued.count } }
}

/// One transaction's worth.
struct Batch {
  var notifications: [(sequence: UInt64, notification: Notification, acceptedAt: Instant)] = []
  /// Everything about devices and apps, in the order of arrival; `JournalRecord.isOwed`.
  var others: [(arrivedAt: UInt64, content: JournalRecord.Content, isOwed: Bool)] = []
  var forgets: [UInt64] = []
  /// What of each shard the batch covers.
  var ends: [(shard: Int, first: UInt64, last: UInt64)] = []

  var isEmpty: Bool { ends.isEmpty && forgets.isEmpty }

  /// Whether it gives an app a token.
  fileprivate var registers: Bool {
    others.contains { if case .registered = $0.content { true } else { false } }
  }

  /// A token may leave one shard and come to another: what came first is written first.
  fileprivate mutating func sortOthers() {
    guard ends.count > 1, others.count > 1 else { return }
    let sorted = others.enumerated().sorted { left, right in
      (left.element.arrivedAt, left.offset) < (right.element.arrivedAt, right.offset)
    }
    others = sorted.map(\.element)
  }
}
