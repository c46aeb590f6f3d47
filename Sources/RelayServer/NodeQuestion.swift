import Primitives
import RelayCluster
import RelayCore
package import RelayFaults
package import RelayRecording
import RelayRequests

struct NodeView: Sendable {
  let inbox: Inbox
  let loops: LoopSet
  let feeds: FeedHolder?
}

/// A question of one node's relay to another's, with its number on the wire. The answer comes from
/// what that node knows, without asking further.
struct NodeQuestion<Argument: BinaryCodable & Sendable, Answer: BinaryCodable & Sendable>: Sendable
{
  let number: UInt8
  /// The device whose node is asked; nil for all nodes.
  var device: (@Sendable (Argument) -> DeviceID)?
  /// How long an answer is waited for.
  let patience: Interval
  /// nil when this node has no answer.
  let answer: @Sendable (NodeView, Argument) async -> Answer?

  init(
    _ number: UInt8, of device: (@Sendable (Argument) -> DeviceID)? = nil,
    patience: Interval = Limits.hopAge,
    _ answer: @escaping @Sendable (NodeView, Argument) async -> Answer?
  ) {
    (self.number, self.device, self.patience, self.answer) = (number, device, patience, answer)
  }

  func bytes(_ argument: Argument, form: UInt8 = ClusterForm.newest) -> [UInt8] {
    var writer = ByteWriter(form: form)
    writer.put(tag: number, argument)
    return writer.bytes
  }
}

/// A question without its types.
protocol AnsweredQuestion: Sendable {
  var number: UInt8 { get }
  /// The answer to a question whose argument is read next; empty when there is none, or when the
  /// question is about a device of another node.
  func answer(_ reader: ByteReader, _ node: NodeView) async -> [UInt8]
}

extension NodeQuestion: AnsweredQuestion {
  func answer(_ reader: ByteReader, _ node: NodeView) async -> [UInt8] {
    var (reader, writer) = (reader, ByteWriter(form: reader.form))
    guard let argument = try? reader.read(Argument.self) else { return [] }
    if let device, await node.inbox.route(of: device(argument)) != .here { return [] }
    if let answer = await answer(node, argument) { writer.put(answer) }
    return writer.bytes
  }
}

enum NodeQuestions {
  static func answer(_ question: ByteReader, _ node: NodeView) async -> [UInt8] {
    var reader = question
    let number = try? reader.byte()
    return await all.first { $0.number == number }?.answer(reader, node) ?? []
  }

  static let all: [any AnsweredQuestion] = [
    report, credential, administer, devices, app, changes, reset, heads, steps, note, refusals,
    counters, feed, reports, standing, requests, forgetRequests, order,
    channels, feedFrom, clock,
  ]

  // 1, 4 and 14 were the same with reports of fewer fields.
  static let report = NodeQuestion(19, of: { $0 }) { node, device -> DeviceReport?? in
    .some(await node.loops.first { $0.core.shard.report(of: device, at: $0.now) })
  }

  static let credential = NodeQuestion(2, of: { $0 }) { node, device -> DeviceCredential?? in
    .some(
      await node.loops.first { runner in
        runner.core.shard.secret(of: device).map { DeviceCredential(device: device, secret: $0) }
      })
  }

  /// False when no device has this id.
  static let administer = NodeQuestion(3, of: \.first) {
    (node, wish: Pair<DeviceID, AdminAction>) -> Bool in
    guard let known = await report.answer(node, wish.first), known != nil else { return false }
    _ = await node.loops.ask(0) { runner in
      let event = Event.operated(.administered(wish.first, wish.second))
      runner.raise(event, for: wish.first, at: runner.now)
      runner.finishBatch()
    }
    return true
  }

  static let devices = NodeQuestion(20) { node, search -> Relay.DevicePage? in
    await node.loops.devices(search)
  }

  static let app = NodeQuestion(5) { node, token -> OwnToken?? in
    .some(
      await node.loops.first { runner in
        runner.core.shard.app(with: token)
          .map { OwnToken(token: token, device: $0.device, topic: $0.topic) }
      })
  }

  static let changes = NodeQuestion(6) { node, device -> [DeviceChange]? in
    await node.loops.onEach { $0.history.changes.filter { $0.device == device } }.flatMap(\.self)
  }

  static let reset = NodeQuestion(7) { (node, topic: Topic?) -> Bool in
    _ = await node.loops.onEach { runner in
      // To a Live Activity's topic belong all that devices have of it.
      let parts = topic.map { whole in runner.core.shard.topics.filter { $0.isPart(of: whole) } }
      for topic in [topic] + (parts ?? []).map(Optional.some) {
        for device in runner.core.shard.deviceIDs(with: topic) {
          for action in [AdminAction.emptySlots(topic), .refillBudget(topic)] {
            runner.raise(.operated(.administered(device, action)), for: device, at: runner.now)
          }
        }
      }
      runner.history.forgetRequests { topic == nil || $0.topic == topic?.description }
      runner.finishBatch()
    }
    return true
  }

  /// The beginnings of the latest lives, newest first. 8 was the same without the step.
  static let heads = NodeQuestion(28) {
    (node, wish: Pair<Relay.LifeFilter, Int>) -> [DeliveryEvent] in
    let heads = await node.loops.onEach { runner in
      let lives = runner.ledger.lives
      return lives.latest(limit: max(0, wish.second)) { head in
        guard wish.first.matches(head) else { return false }
        guard let step = wish.first.step else { return true }
        return lives.steps(of: head.uniqueID).contains { $0.step.isCalled(step) }
      }
    }
    return Array(heads.joined().sorted { $0.at > $1.at }.prefix(max(0, wish.second)))
  }

  static let steps = NodeQuestion(9) { (node, ids: [UniqueID]) -> [[DeliveryEvent]] in
    let parts = await node.loops.onEach { runner in ids.map { runner.ledger.lives.steps(of: $0) } }
    return ids.indices.map { place in DeliveryLog.join(parts.map { $0[place] }) }
  }

  static let note = NodeQuestion(10) { (node, id: UniqueID) -> PushNote in
    await node.loops.onEach { $0.history.notes[id] }.compactMap(\.self).first ?? PushNote()
  }

  // 11 was the same without the clients' addresses, 16 without requests about channels.
  static let refusals = NodeQuestion(30) { (node, limit: Int) -> [RefusedRequest] in
    let all = await node.loops.onEach { Array($0.history.refusals.reversed()) }
    return Array(all.joined().sorted { $0.at > $1.at }.prefix(max(0, limit)))
  }

  static let counters = NodeQuestion(12) { (node, _: Nothing) in await node.loops.counters() }

  /// Events since a position of the node's feed, waiting for a moment if there is nothing; nil asks
  /// for the end.
  static let feed = NodeQuestion(13) { (node, position: UInt64?) in
    await node.feeds?.page(since: position)
  }

  /// The same, since a moment.
  static let feedFrom = NodeQuestion(25) { (node, moment: Instant) in
    await node.feeds?.page(from: moment)
  }

  static let reports = NodeQuestion(21) { (node, devices: [DeviceID]) -> [DeviceReport] in
    await node.loops.onEach { runner in
      devices.compactMap { runner.core.shard.report(of: $0, at: runner.now) }
    }.flatMap(\.self)
  }

  /// An order to a phone whose stream may be on this node.
  static let order = NodeQuestion(22, patience: Limits.orderPatience + Limits.hopAge) {
    (node, wish: Pair<DeviceID, [UInt8]?>) in await node.loops.order(wish.second, to: wish.first)
  }

  static let clock = NodeQuestion(27) { (node, step: ClockStep) -> ClockState? in
    await node.inbox.clock?.answer(step)
  }

  /// Of each channel what this node has published and delivered, and its subscribers here.
  static let channels = NodeQuestion(23) {
    (node, ids: [ChannelID]) -> [Pair<Int, Pair<Int, Int>>] in
    let registry = await (node.loops.ask(0) { $0.settings.channels } ?? nil)?.registry
    let loops = await node.loops.onEach { $0.core.shard.channelCounts }
    return ids.map { id in
      let counts = loops.compactMap { $0[id] }
      let delivered = counts.reduce(0) { $0 + $1.delivered }
      let subscribers = counts.reduce(0) { $0 + $1.subscribers }
      return Pair(registry?[id]?.published ?? 0, Pair(delivered, subscribers))
    }
  }

  // 15 was the same with fewer fields.
  static let standing = NodeQuestion(24) { (node, _: Nothing) in node.inbox.standing }
}

struct Pair<First: BinaryCodable & Sendable, Second: BinaryCodable & Sendable>: Composite {
  let first: First
  let second: Second

  init(_ first: First, _ second: Second) { (self.first, self.second) = (first, second) }

  static var fields: Fields<Self> { Fields(Self.init) { ($0.first, $0.second) } }
}

struct Nothing: BinaryCodable, Sendable {
  init() {}
  func write(to writer: inout ByteWriter) {}
  init(from reader: inout ByteReader) throws(CodecError) {}
}

/// Finds devices whose id begins with a text, or with a name or an app's topic that contains it.
struct DeviceSearch: Sendable {
  var text: String
  var position: Relay.DevicePosition?
  var limit: Int
}

extension LoopSet {
  /// The answer of the loop that has one. It promotes nothing: an absent answer is nil inside.
  fileprivate func first<Answer: Sendable>(
    _ find: @escaping @Sendable (ShardRunner) -> Answer?
  ) async -> Answer? {
    for answer in await onEach(find) { if let answer { return answer } }
    return nil
  }

  fileprivate func devices(_ search: DeviceSearch) async -> Relay.DevicePage {
    let wanted = search.text.lowercased()
    var reports: [DeviceReport] = []
    var place = search.position?.place ?? DeviceNumber(0)
    let begin = max(0, search.position?.loop ?? 0)
    for loop in begin..<max(begin, count) {
      let (first, room) = (place, max(0, search.limit) - reports.count)
      let page = await ask(loop) { runner in
        let named = wanted.isEmpty ? [] : runner.settings.names.devices(like: wanted)
        return runner.core.shard.devices(from: first, limit: room, at: runner.now) { id, topics in
          wanted.isEmpty || id.description.hasPrefix(wanted) || named.contains(id)
            || topics.contains { $0.description.lowercased().contains(wanted) }
        }
      }
      guard let page else { break }
      reports += page.reports
      if let next = page.next {
        return .init(reports: reports, next: .init(loop: loop, place: next))
      }
      place = DeviceNumber(0)
    }
    return .init(reports: reports, next: nil)
  }
}

/// A part of a node's feed, and its counters.
struct NodeFeedPage: Sendable {
  var items: [FeedItem] = []
  /// The next position to ask for.
  var next: UInt64
  /// Lost events before these.
  var dropped: UInt64 = 0
  var counters: ShardCounters
}

extension DeviceSearch: Composite {
  static let fields = Fields(Self.init(text:position:limit:)) { ($0.text, $0.position, $0.limit) }
}

extension NodeFeedPage: Composite {
  static let fields = Fields(Self.init(items:next:dropped:counters:)) {
    ($0.items, $0.next, $0.dropped, $0.counters)
  }
}

extension Relay.DevicePosition: Composite {
  package static let fields = Fields(Self.init(loop:place:)) { ($0.loop, $0.place) }
}

extension Relay.DevicePage: Composite {
  package static let fields = Fields(Self.init(reports:next:)) { ($0.reports, $0.next) }
}

extension Relay.LifeFilter: Composite {
  package static let fields = Fields(of: Self(), \.device, \.topic, \.kind, \.since, \.step)
}

extension DeliveryStep {
  fileprivate func isCalled(_ name: String) -> Bool {
    switch self {
    case .received: name == "received"
    case .restored: name == "restored"
    case .sent: name == "sent"
    case .storedOffline: name == "stored"
    case .storedPower: ["stored", "held"].contains(name)
    case .delivered: name == "delivered"
    case .outcome: name == "outcome"
    case .discarded(let reason): ["discarded", reason.name].contains(name)
    case .decided, .faulted: false
    }
  }
}

extension PushNote: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(warnings.members.map(\.rawValue), traceParent?.bytes)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(try Self.warnings(from: &reader))
    if let bytes: [UInt8] = try reader.read() { traceParent = TraceParent(bytes.span) }
  }
}

extension PushNote {
  static func warnings(
    from reader: inout ByteReader
  ) throws(CodecError) -> CaseSet<PayloadWarning> {
    var warnings = CaseSet<PayloadWarning>()
    // A newer node may know more of them.
    for number: UInt8 in try reader.read([UInt8].self) {
      if let warning = PayloadWarning(rawValue: number) { warnings.insert(warning) }
    }
    return warnings
  }
}

extension RefusedRequest: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(at, uniqueID, peer, isOfChannel, status, reason, explanation)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      at: try reader.read(), uniqueID: try reader.read(), peer: try reader.read(),
      isOfChannel: try reader.read(), status: try reader.read(), reason: try reader.read(),
      cause: .told(try reader.read()))
  }
}

// MARK: Feeds

extension DeviceChange.What: BinaryCodable {}
extension Fault.Place: BinaryCodable {}

extension DeviceChange: Composite {
  package static let fields = Fields(Self.init(at:device:what:topic:condition:remaining:policy:)) {
    ($0.at, $0.device, $0.what, $0.topic, $0.condition, $0.remaining, $0.policy)
  }
}

extension FaultHit: Composite {
  package static let fields = Fields(Self.init(at:name:place:action:uniqueID:topic:)) {
    ($0.at, $0.name, $0.place, $0.action, $0.uniqueID, $0.topic)
  }
}

extension FeedItem: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .life(let event): writer.put(tag: 1, event)
    case .device(let change): writer.put(tag: 2, change)
    case .fault(let hit): writer.put(tag: 3, hit)
    case .policy(let policy, let moment): writer.put(tag: 4, policy, moment)
    case .rewound(let moment): writer.put(tag: 5, moment)
    case .gap(let count, let moment): writer.put(tag: 6, count, moment)
    }
  }

  package static let cases: Cases<Self> = [
    1: .of(Self.life), 2: .of(Self.device), 3: .of(Self.fault), 4: .of(Self.policy),
    5: .of(Self.rewound), 6: .of(Self.gap),
  ]
}
