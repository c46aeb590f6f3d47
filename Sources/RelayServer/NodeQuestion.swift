import Primitives
import RelayCore
import RelayFaults
package import RelayRecording

/// What the relay of one node asks that of another, for people. It is answered from what that node
/// knows, and asked of nobody else.
enum NodeQuestion: Sendable {
  // Of the node that has the device; empty when it has not.
  case report(DeviceID)
  case credential(DeviceID)
  case administer(DeviceID, AdminAction)
  // Of all nodes.
  case reports([DeviceID])
  case devices(matching: String, after: Relay.DevicePosition?, limit: Int)
  case app(DeviceToken)
  case changes(DeviceID)
  case reset(Topic?)
  case heads(Relay.LifeFilter, limit: Int)
  case steps([UniqueID])
  case note(UniqueID)
  case refusals(limit: Int)
  case counters
  case standing
  /// What has happened since a place of the node's feed; nil asks where it ends. The answer waits
  /// for a moment until there is something.
  case feed(since: UInt64?)

  /// The device whose node is asked; nil when all are.
  var device: DeviceID? {
    switch self {
    case .report(let device), .credential(let device), .administer(let device, _): device
    case .reports, .devices, .app, .changes, .reset, .heads, .steps, .note, .refusals, .counters,
      .standing, .feed:
      nil
    }
  }
}

/// A part of a node's feed, and how its counters stand.
struct NodeFeedPage: Sendable {
  var items: [FeedItem] = []
  /// Where to go on.
  var next: UInt64
  /// How many are gone that came before these.
  var dropped: UInt64 = 0
  var counters: ShardCounters
}

extension NodeQuestion: BinaryCodable {
  func write(to writer: inout ByteWriter) {
    switch self {
    case .report(let device): writer.put(tag: 1, device)
    case .credential(let device): writer.put(tag: 2, device)
    case .administer(let device, let action): writer.put(tag: 3, device, action)
    case .devices(let text, let position, let limit): writer.put(tag: 4, text, position, limit)
    case .app(let token): writer.put(tag: 5, token)
    case .changes(let device): writer.put(tag: 6, device)
    case .reset(let topic): writer.put(tag: 7, topic)
    case .heads(let filter, let limit): writer.put(tag: 8, filter, limit)
    case .steps(let ids): writer.put(tag: 9, ids)
    case .note(let id): writer.put(tag: 10, id)
    case .refusals(let limit): writer.put(tag: 11, limit)
    case .counters: writer.put(tag: 12)
    case .feed(let position): writer.put(tag: 13, position)
    case .reports(let devices): writer.put(tag: 14, devices)
    case .standing: writer.put(tag: 15)
    }
  }

  init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .report(try reader.read())
    case 2: self = .credential(try reader.read())
    case 3: self = .administer(try reader.read(), try reader.read())
    case 4:
      self = .devices(
        matching: try reader.read(), after: try reader.read(), limit: try reader.read())
    case 5: self = .app(try reader.read())
    case 6: self = .changes(try reader.read())
    case 7: self = .reset(try reader.read())
    case 8: self = .heads(try reader.read(), limit: try reader.read())
    case 9: self = .steps(try reader.read())
    case 10: self = .note(try reader.read())
    case 11: self = .refusals(limit: try reader.read())
    case 12: self = .counters
    case 13: self = .feed(since: try reader.read())
    case 14: self = .reports(try reader.read())
    case 15: self = .standing
    default: throw reader.invalid(Self.self)
    }
  }
}

extension NodeFeedPage: BinaryCodable {
  func write(to writer: inout ByteWriter) { writer.put(items, next, dropped, counters) }

  init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      items: try reader.read(), next: try reader.read(), dropped: try reader.read(),
      counters: try reader.read())
  }
}

extension Relay.DevicePosition: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(loop, place) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(loop: try reader.read(), place: try reader.read())
  }
}

extension Relay.DevicePage: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(reports, next) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(reports: try reader.read(), next: try reader.read())
  }
}

extension Relay.LifeFilter: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(device, topic, kind, since) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init()
    device = try reader.read()
    topic = try reader.read()
    kind = try reader.read()
    since = try reader.read()
  }
}

extension PushNote: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(warnings.members.map(\.rawValue), traceParent?.bytes)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init()
    for number: UInt8 in try reader.read([UInt8].self) {
      guard let warning = PayloadWarning(rawValue: number) else {
        throw reader.invalid(Self.self)
      }
      warnings.insert(warning)
    }
    if let bytes: [UInt8] = try reader.read() { traceParent = TraceParent(bytes.span) }
  }
}

extension RefusalReport: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(at, uniqueID, rejection, cause) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      at: try reader.read(), uniqueID: try reader.read(), rejection: try reader.read(),
      cause: try reader.read())
  }
}

// MARK: Feeds

extension DeviceChange.What: BinaryCodable {}
extension Fault.Place: BinaryCodable {}

extension DeviceChange: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(at, device, what, topic, condition, remaining, policy)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      at: try reader.read(), device: try reader.read(), what: try reader.read(),
      topic: try reader.read(), condition: try reader.read(), remaining: try reader.read(),
      policy: try reader.read())
  }
}

extension FaultHit: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(at, name, place, action, uniqueID, topic)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      at: try reader.read(), name: try reader.read(), place: try reader.read(),
      action: try reader.read(), uniqueID: try reader.read(), topic: try reader.read())
  }
}

extension FeedItem: BinaryCodable {
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

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .life(try reader.read())
    case 2: self = .device(try reader.read())
    case 3: self = .fault(try reader.read())
    case 4: self = .policy(try reader.read(), at: try reader.read())
    case 5: self = .rewound(at: try reader.read())
    case 6: self = .gap(dropped: try reader.read(), at: try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}
