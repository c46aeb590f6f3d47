import Dispatch
import NATS
package import Primitives
import RelayCore
import RelayRecording
import Synchronization

/// Where a node's loops and those of other nodes talk: subjects of core NATS, on a connection of
/// its own so that the journal's messages do not wait behind it.
///
/// Nothing is sent twice and nothing is promised: what is lost is noticed by whoever waits for an
/// answer. Messages of one loop to another arrive in the order in which they were sent.
package final class HopPort: Sendable {
  /// From a loop here to a loop of another node.
  struct Link: Hashable {
    var node: UInt16
    var loop: UInt16
    var from: UInt16
  }

  struct State {
    var windows: [Link: HopWindow] = [:]
    /// What has arrived and was not said to have: the number of the last message, and the bytes.
    var owed: [Link: (number: UInt64, bytes: Int)] = [:]
    var sentCount = 0
    var refusedCount = 0
    /// On links that there are no more.
    var lostCount = 0
    var isFlushing = false

    /// These are at work: what is kept of others, each start of which has another number, goes.
    mutating func keep(_ nodes: [UInt16]) {
      for (link, window) in windows where !nodes.contains(link.node) {
        lostCount += window.lostCount
        windows[link] = nil
      }
    }
  }

  /// What comes in, on a thread of the connection's.
  struct Handlers: Sendable {
    /// A message for a loop.
    var onHop: @Sendable (_ body: [UInt8], _ loop: Int) -> Void
    /// Somebody has changed what they say of themselves.
    var onLook: @Sendable () -> Void
    /// The connection is there again: what was on its way may be lost.
    var onReturn: @Sendable () -> Void
    /// A question of another node; the answer goes back.
    var onQuestion: @Sendable ([UInt8]) async -> [UInt8]
  }

  /// Bytes of messages after which their arrival is told at once, not within a moment.
  private static let acknowledgedBytes = 256 << 10

  /// This node's number.
  package let number: UInt16
  /// When this node's lease ends, in milliseconds of `ClusterJournal.clock`.
  private let leaseEnd = Atomic<Int64>(0)
  /// How often it has begun to hold one, and after which of these it has looked what others have
  /// taken meanwhile.
  private let leases = Atomic<Int>(0)
  private let lookedAfter = Atomic<Int>(0)
  private let standstill: Mutex<Standstill>
  private let connection: NATSConnection
  private let arrivals: Arrivals
  /// Sending may block for as long as the connection's write deadline; loops must not.
  private let queue = DispatchQueue(label: "relay.hops", qos: .userInitiated)

  /// What the connection's threads reach, and nothing that would keep the connection alive.
  private final class Arrivals: Sendable {
    let state = Mutex(State())
    let questions = OpenQuestions(limitBytes: Limits.nodeAnswerBytes)
    let handlers = Mutex<Handlers?>(nil)
    let port = Mutex<WeakPort>(WeakPort())
  }

  private struct WeakPort { weak var port: HopPort? }

  private static func subject(_ node: UInt16) -> String { "pushrelay.hop.\(node)" }

  /// Connects; blocks for as long as that takes.
  init(
    _ access: NATSAccess, name: String, number: UInt16, lease: Interval
  ) throws(NATSError) {
    let arrivals = Arrivals()
    self.number = number
    standstill = Mutex(Standstill(lease: lease))
    self.arrivals = arrivals
    connection = try NATSConnection(
      access: access, name: name + " hops", inbox: Self.subject(number),
      onMessage: { Self.hear($0, arrivals) },
      onConnection: { isThere in
        if isThere { arrivals.handlers.withLock { $0 }?.onReturn() }
      })
    arrivals.port.withLock { $0.port = self }
  }

  /// Whether nobody else can have taken over what is here: the lease has not run out, and since it
  /// last did this node has seen what is still its own.
  package var isLeaseHeld: Bool {
    ClusterJournal.clock.milliseconds < leaseEnd.load(ordering: .relaxed)
      && lookedAfter.load(ordering: .relaxed) == leases.load(ordering: .relaxed)
  }

  /// Whether something may be sent to phones: not when this node stood still for so long that all
  /// may be somebody else's, before it has looked.
  package var maySend: Bool { standstill.withLock { !$0.isStill(at: ClusterJournal.clock) } }

  /// Time goes on; nil at the end, when nobody tells any more.
  func turn(at now: Instant?) { standstill.withLock { $0.turn(at: now) } }

  /// How long it lasts without another word of the engine; below zero since it has run out.
  package var leaseLeft: Interval {
    Instant(milliseconds: leaseEnd.load(ordering: .relaxed)) - ClusterJournal.clock
  }

  /// Messages between loops here and those of other nodes, since the start.
  package struct Statistics: Hashable, Sendable {
    package var sent = 0
    /// Not sent, because too much was on its way.
    package var refused = 0
    package var lost = 0
    /// What is on its way now.
    package var outstandingBytes = 0

    package init() {}
  }

  /// - Parameter now: in UNIX time.
  package func statistics(at now: Instant) -> Statistics {
    arrivals.state.withLock { state in
      var statistics = Statistics()
      (statistics.sent, statistics.refused) = (state.sentCount, state.refusedCount)
      statistics.lost = state.lostCount
      for link in state.windows.keys {
        state.windows[link]?.expire(at: now)
        statistics.lost += state.windows[link]?.lostCount ?? 0
        statistics.outstandingBytes += state.windows[link]?.outstandingBytes ?? 0
      }
      return statistics
    }
  }

  /// The lease is held until then.
  func holdLease(until end: Instant, at now: Instant) {
    let before = leaseEnd.exchange(end.milliseconds, ordering: .relaxed)
    if before <= now.milliseconds, end > now { leases.add(1, ordering: .relaxed) }
  }

  /// Which lease it is, to be told to `looked(after:)` when what was seen from now on was dealt
  /// with.
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

  /// These are at work.
  func keep(_ nodes: [UInt16]) { arrivals.state.withLock { $0.keep(nodes) } }

  // MARK: Loops

  /// Sends items that were written one behind the other; false when too much is on its way already.
  ///
  /// - Parameter now: in UNIX time.
  package func send(
    _ items: [UInt8], to node: UInt16, loop: UInt16, from own: UInt16, at now: Instant
  ) -> Bool {
    let link = Link(node: node, loop: loop, from: own)
    let number = arrivals.state.withLock { state in
      let number = state.windows[link, default: HopWindow(limitBytes: Limits.hopWindowBytes)]
        .send(bytes: items.count, at: now)
      if number == nil { state.refusedCount += 1 } else { state.sentCount += 1 }
      return number
    }
    guard let number else { return false }
    var writer = ByteWriter()
    writer.put(HopHead(node: self.number, loop: own, number: number, sentAt: now))
    writer.put(raw: items)
    let body = writer.bytes
    queue.async { self.publish(body, node, "\(loop)") }
    return true
  }

  /// A loop has dealt with a message.
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

  private func acknowledge() {
    let owed = arrivals.state.withLock { state in
      defer { (state.owed, state.isFlushing) = ([:], false) }
      return state.owed
    }
    for (link, what) in owed {
      var writer = ByteWriter()
      writer.put(
        HopHead(
          node: number, loop: link.from, number: what.number, sentAt: Instant(milliseconds: 0)))
      publish(writer.bytes, link.node, "ack.\(link.loop)")
    }
  }

  // MARK: Nodes

  /// Tells another node to look around: this one says something new of itself.
  package func nudge(_ nodes: [UInt16]) {
    queue.async { for node in nodes { self.publish([], node, "look") } }
  }

  /// Asks another node; nil when no answer comes in time.
  func ask(_ node: UInt16, _ question: [UInt8]) async -> [UInt8]? {
    let messages: [NATSMessage]? = await withCheckedContinuation { continuation in
      let number = arrivals.questions.open(
        within: .seconds(2), isLast: { $0.tag.hasPrefix("answer") }
      ) { continuation.resume(returning: $0) }
      queue.async { self.publish(question, node, "ask.\(self.number).\(number)") }
    }
    return messages.flatMap(AnswerParts.join)
  }

  private func send(_ answer: [UInt8], to node: UInt16, _ number: UInt64) {
    let parts = AnswerParts.split(answer)
    for part in parts.dropLast() { publish(part, node, "part.\(number)") }
    let totalBytes = parts.reduce(0) { $0 + $1.count }
    publish(parts.last ?? [], node, "answer.\(number).\(totalBytes)")
  }

  private func publish(_ body: [UInt8], _ node: UInt16, _ tag: String) {
    // While there is no connection it is lost, like anything else on this way.
    try? connection.publish(body, to: "\(Self.subject(node)).\(tag)")
  }

  // MARK: In

  private static func hear(_ message: NATSMessage, _ arrivals: Arrivals) {
    let parts = message.tag.split(separator: ".")
    guard let handlers = arrivals.handlers.withLock({ $0 }), let kind = parts.first else { return }
    if let loop = Int(kind) { return handlers.onHop(message.body, loop) }
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
      guard parts.count == 3, let node = UInt16(parts[1]), let number = UInt64(parts[2]) else {
        return
      }
      Task {
        let answer = await handlers.onQuestion(message.body)
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
