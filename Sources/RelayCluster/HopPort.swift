import DequeModule
import Dispatch
import NATS
package import Primitives
import RelayCore
package import RelayRecording
import Synchronization

/// Messages between loops of different nodes: core NATS, on a connection of its own, so that they
/// do not wait behind the journal's. Nothing is repeated: those that wait for answers notice
/// losses. Messages between two loops arrive in order.
package final class HopPort: Sendable {
  struct Link: Hashable {
    var node: UInt16
    var loop: UInt16
    var from: UInt16
  }

  struct State {
    var windows: [Link: HopWindow] = [:]
    /// Arrivals not acknowledged yet: the last message's number, and the bytes.
    var owed: [Link: (number: UInt64, bytes: Int)] = [:]
    /// Losses only of links that no longer exist: the others count their own.
    var statistics = Statistics()
    var isFlushing = false

    /// Drops the state of other nodes: each start of a node has a new number.
    mutating func keep(_ nodes: [UInt16]) {
      for (link, window) in windows where !nodes.contains(link.node) {
        statistics.lost += window.lostCount
        windows[link] = nil
      }
    }
  }

  /// Called for what arrives, on one of the connection's threads.
  struct Handlers: Sendable {
    var onHop: @Sendable (_ body: [UInt8], _ loop: Int) -> Void
    /// A node has changed its report.
    var onLook: @Sendable () -> Void
    var onReturn: @Sendable () -> Void
    var onQuestion: @Sendable (ByteReader) async -> [UInt8]
  }

  /// Bytes that are acknowledged at once, not a moment later.
  private static let acknowledgedBytes = 256 << 10

  package let number: UInt16
  package let form: ClusterForm
  /// When the lease ends, in milliseconds of `ClusterJournal.clock`.
  private let leaseEnd = Atomic<Int64>(0)
  /// Leases begun, and the last of them after which this node has looked what others have claimed.
  private let leases = Atomic<Int>(0)
  private let lookedAfter = Atomic<Int>(0)
  private let standstill: Mutex<Standstill>
  private let connection: NATSConnection
  private let arrivals: Arrivals
  /// Sending may block up to the connection's write deadline; loops must not.
  private let queue = DispatchQueue(label: "relay.hops", qos: .userInitiated)

  /// State for the connection's threads, apart so that it does not keep the connection alive.
  private final class Arrivals: Sendable {
    let state = Mutex(State())
    let questions = OpenQuestions(limitBytes: Limits.nodeAnswerBytes)
    let handlers = Mutex<Handlers?>(nil)
    let port = Mutex<WeakPort>(WeakPort())
  }

  private struct WeakPort { weak var port: HopPort? }

  private static func subject(_ node: UInt16) -> String { "pushrelay.hop.\(node)" }

  /// Connects; blocks meanwhile.
  init(
    _ access: NATSAccess, name: String, number: UInt16, lease: Interval, form: ClusterForm,
    onBar: @escaping @Sendable (String) -> Void
  ) throws(NATSError) {
    let arrivals = Arrivals()
    (self.number, self.form) = (number, form)
    standstill = Mutex(Standstill(lease: lease))
    self.arrivals = arrivals
    connection = try NATSConnection(
      access: access, name: name + " hops", inbox: Self.subject(number),
      onMessage: { Self.hear($0, arrivals) },
      onConnection: { isThere in
        if isThere { arrivals.handlers.withLock { $0 }?.onReturn() }
      }, onBar: onBar)
    arrivals.port.withLock { $0.port = self }
  }

  /// True while no other node can have claimed this node's stripes: the lease holds, and since its
  /// last lapse this node has looked.
  package var isLeaseHeld: Bool {
    ClusterJournal.clock.milliseconds < leaseEnd.load(ordering: .relaxed)
      && lookedAfter.load(ordering: .relaxed) == leases.load(ordering: .relaxed)
  }

  /// False after a standstill that may have cost the stripes, until this node has looked.
  package var maySend: Bool { standstill.withLock { !$0.isStill(at: ClusterJournal.clock) } }

  /// Advances the clock; nil at the end.
  func turn(at now: Instant?) { standstill.withLock { $0.turn(at: now) } }

  /// How long the lease lasts without another renewal; negative once it has run out.
  package var leaseLeft: Interval {
    Instant(milliseconds: leaseEnd.load(ordering: .relaxed)) - ClusterJournal.clock
  }

  /// Messages between nodes' loops, since the start.
  package struct Statistics: Hashable, Sendable {
    package var sent = 0
    /// Not sent, because too much was on its way.
    package var refused = 0
    package var lost = 0
    package var outstandingBytes = 0
  }

  /// - Parameter now: in UNIX time.
  package func statistics(at now: Instant) -> Statistics {
    arrivals.state.withLock { state in
      var statistics = state.statistics
      for link in state.windows.keys {
        state.windows[link]?.expire(at: now)
        statistics.lost += state.windows[link]?.lostCount ?? 0
        statistics.outstandingBytes += state.windows[link]?.outstandingBytes ?? 0
      }
      return statistics
    }
  }

  func holdLease(until end: Instant, at now: Instant) {
    let before = leaseEnd.exchange(end.milliseconds, ordering: .relaxed)
    if before <= now.milliseconds, end > now { leases.add(1, ordering: .relaxed) }
  }

  /// The current lease, to pass to `looked(after:)` once what was seen from now on is handled.
  var lease: (number: Int, standstills: Int) {
    (leases.load(ordering: .relaxed), standstill.withLock { $0.count })
  }

  func looked(after lease: (number: Int, standstills: Int)) {
    lookedAfter.store(lease.number, ordering: .relaxed)
    standstill.withLock { $0.looked(after: lease.standstills) }
  }

  func setHandlers(_ handlers: Handlers?) {
    arrivals.handlers.withLock { $0 = handlers }
  }

  func keep(_ nodes: [UInt16]) { arrivals.state.withLock { $0.keep(nodes) } }

  // MARK: Loops

  /// For a message's items.
  package var writer: ByteWriter { ByteWriter(form: form.written) }

  /// Sends encoded items; false when too much is on its way. `now` is UNIX time.
  package func send(
    _ items: ByteWriter, to node: UInt16, loop: UInt16, from own: UInt16, at now: Instant
  ) -> Bool {
    let link = Link(node: node, loop: loop, from: own)
    let number = arrivals.state.withLock { state in
      let number = state.windows[link, default: HopWindow(limitBytes: Limits.hopWindowBytes)]
        .send(bytes: items.count, at: now)
      if number == nil { state.statistics.refused += 1 } else { state.statistics.sent += 1 }
      return number
    }
    guard let number else { return false }
    var writer = ByteWriter(form: items.form)
    writer.put(HopHead(node: self.number, loop: own, number: number, sentAt: now))
    writer.put(raw: items.bytes)
    let body = writer.bytes
    queue.async { self.publish(body, node, "\(loop)") }
    return true
  }

  /// A loop has handled a message.
  package func dealtWith(_ head: HopHead, by loop: UInt16, bytes: Int) {
    let link = Link(node: head.node, loop: head.loop, from: loop)
    let due = arrivals.state.withLock { state -> (now: Bool, later: Bool) in
      let owed = (state.owed[link]?.bytes ?? 0) + bytes
      state.owed[link] = (head.number, owed)
      guard !state.isFlushing else { return (owed >= Self.acknowledgedBytes, false) }
      state.isFlushing = true
      return (owed >= Self.acknowledgedBytes, true)
    }
    if due.now { queue.async { self.acknowledge() } }
    if due.later { queue.asyncAfter(deadline: .now() + .milliseconds(10)) { self.acknowledge() } }
  }

  /// Acknowledges everything at once: a clock stands until all has arrived.
  package func acknowledgeNow() { queue.async { self.acknowledge() } }

  private func acknowledge() {
    let owed = arrivals.state.withLock { state in
      defer { (state.owed, state.isFlushing) = ([:], false) }
      return state.owed
    }
    for (link, what) in owed {
      var writer = writer
      writer.put(
        HopHead(
          node: number, loop: link.from, number: what.number, sentAt: Instant(milliseconds: 0)))
      publish(writer.bytes, link.node, "ack.\(link.loop)")
    }
  }

  // MARK: Nodes

  /// Tells other nodes to look: this one's report has changed.
  package func nudge(_ nodes: [UInt16]) {
    queue.async { for node in nodes { self.publish([], node, "look") } }
  }

  /// Asks another node, which answers in the question's form; nil when no answer comes in time.
  func ask(
    _ node: UInt16, _ question: ByteWriter, within patience: Interval
  ) async -> ByteReader? {
    // The first form was not said.
    let form = question.form == ClusterForm.first ? "" : ".\(question.form)"
    let messages: [NATSMessage]? = await withCheckedContinuation { continuation in
      let number = arrivals.questions.open(
        within: .milliseconds(Int(patience.milliseconds)),
        isLast: { $0.tag.hasPrefix("answer") }
      ) { continuation.resume(returning: $0) }
      queue.async {
        self.publish(question.bytes, node, "ask.\(self.number).\(number)\(form)")
      }
    }
    return messages.flatMap(AnswerParts.join).map { ByteReader($0, form: question.form) }
  }

  private func send(_ answer: [UInt8], to node: UInt16, _ number: UInt64) {
    let parts = AnswerParts.split(answer)
    for part in parts.dropLast() { publish(part, node, "part.\(number)") }
    let totalBytes = parts.reduce(0) { $0 + $1.count }
    publish(parts.last ?? [], node, "answer.\(number).\(totalBytes)")
  }

  private func publish(_ body: [UInt8], _ node: UInt16, _ tag: String) {
    // Without a connection it is lost, like anything on this way.
    try? connection.publish(body, to: "\(Self.subject(node)).\(tag)")
  }

  // MARK: In

  private static func hear(_ message: NATSMessage, _ arrivals: Arrivals) {
    let parts = message.tag.split(separator: ".")
    guard let handlers = arrivals.handlers.withLock({ $0 }), let kind = parts.first else { return }
    if let loop = UInt16(kind) { return handlers.onHop(message.body, Int(loop)) }
    switch kind {
    case "look": handlers.onLook()
    case "ack":
      var reader = ByteReader(message.body)
      guard parts.count == 2, let own = UInt16(parts[1]),
        let head = try? reader.read(HopHead.self)
      else { return }
      let link = Link(node: head.node, loop: head.loop, from: own)
      arrivals.state.withLock { $0.windows[link]?.arrived(through: head.number) }
    case "ask":
      guard parts.count >= 3, let node = UInt16(parts[1]), let number = UInt64(parts[2]),
        let form = parts.count == 3 ? ClusterForm.first : UInt8(parts[3]),
        ClusterForm.readable.contains(form)
      else { return }
      Task {
        let answer = await handlers.onQuestion(ByteReader(message.body, form: form))
        guard let port = arrivals.port.withLock({ $0.port }) else { return }
        port.queue.async { port.send(answer, to: node, number) }
      }
    case "part", "answer":
      guard parts.count > 1, let number = UInt64(parts[1]) else { return }
      arrivals.questions.hear(message, to: number)
    default: break
    }
  }
}

/// One loop's unacknowledged messages to a loop of another node, bounded. A value.
package struct HopWindow: Sendable {
  private struct Sent {
    var number: UInt64
    var bytes: Int
    var at: Instant
  }

  private let limitBytes: Int
  private var sent: Deque<Sent> = []
  private var lastNumber: UInt64 = 0
  package private(set) var outstandingBytes = 0
  package private(set) var lostCount = 0

  /// How long without an acknowledgement until messages count as lost. They are not repeated: those
  /// that wait for answers have deadlines.
  package static let patience = Interval.seconds(2)

  package init(limitBytes: Int) { self.limitBytes = limitBytes }

  /// Gives up messages older than `patience`: their node may be gone.
  package mutating func expire(at now: Instant) {
    guard let first = sent.first, now - first.at >= Self.patience else { return }
    lostCount += sent.count
    sent = []
    outstandingBytes = 0
  }

  /// Returns the number of a message to send, or nil when too much is on its way; the number is
  /// used up all the same, so the receiver notices the gap. A single message is always allowed.
  package mutating func send(bytes: Int, at now: Instant) -> UInt64? {
    expire(at: now)
    lastNumber += 1
    guard sent.isEmpty || outstandingBytes + bytes <= limitBytes else { return nil }
    sent.append(Sent(number: lastNumber, bytes: bytes, at: now))
    outstandingBytes += bytes
    return lastNumber
  }

  /// The other loop has handled everything up to this number.
  package mutating func arrived(through number: UInt64) {
    while let first = sent.first, first.number <= number {
      sent.removeFirst()
      outstandingBytes -= first.bytes
    }
  }
}
