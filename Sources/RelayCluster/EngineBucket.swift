import Dispatch
import NATS
import Primitives
import RelayCore
import RelayRecording
import RelayStore

/// What all nodes share, in a key-value bucket: who they are, and what belongs to no partition. A
/// value is changed only as it was read ("compare and set").
struct EngineBucket: Sendable {
  let client: EngineClient

  /// What belongs to no partition.
  enum Key {
    /// How many runs of nodes there have been.
    case runs
    /// How long a node that is gone keeps its stripes.
    case lease
    /// The silent policy and the clocks by which budgets are kept.
    case budgets
    /// All provider keys.
    case providerKeys
    /// Whose certificates of providers are trusted.
    case authorities
    /// Up to where a reader of the feedback service has read.
    case cursor(reader: String)
    /// The node of this name is to give its stripes away.
    case drain(node: String)
    /// Which import has not brought all of a journal into the stripes; 0 when none.
    case importing

    var subject: String {
      switch self {
      case .runs: "$KV.pushrelay.runs"
      case .lease: "$KV.pushrelay.settings.lease"
      case .budgets: "$KV.pushrelay.common.budgets"
      case .providerKeys: "$KV.pushrelay.common.keys"
      case .authorities: "$KV.pushrelay.common.authorities"
      // Names of readers are whatever they say: subjects have no dots and no spaces inside.
      case .cursor(let reader):
        EngineBucket.cursors + reader.utf8.map { String($0, radix: 16) }.joined(separator: "-")
      case .drain(let node): "$KV.pushrelay.drain.\(node)"
      case .importing: "$KV.pushrelay.importing"
      }
    }
  }

  struct Sight: Sendable {
    var nodes: [Membership.Key] = []
    var settings = SharedSettings()
    /// Which run of a node is to drain, by the node's name.
    var drains: [String: UInt64] = [:]
  }

  private static let leases = "$KV.pushrelay.lease."
  private static let drains = "$KV.pushrelay.drain."
  private static let cursors = "$KV.pushrelay.cursor."
  private static let form: UInt8 = 1

  /// Everything that nodes have to know of each other, with one question; nil when no answer comes.
  func look() async -> Sight? {
    let question =
      #"{"multi_last":["\#(Self.leases)*","$KV.pushrelay.common.*","\#(Self.drains)*"]}"#
    guard
      let messages = await client.some(of: EngineStream.bucket, question, within: .seconds(1))
    else { return nil }
    var sight = Sight()
    for message in messages where !message.body.isEmpty {
      guard let subject = message.headers["Nats-Subject"] else { continue }
      if subject.hasPrefix(Self.leases) {
        if let key = Self.node(message) { sight.nodes.append(key) }
      } else if subject.hasPrefix(Self.drains) {
        sight.drains[String(subject.dropFirst(Self.drains.count))] = Self.value(message.body)
      } else if subject == Key.budgets.subject {
        sight.settings.budgets = Self.value(message.body)
      } else if subject == Key.providerKeys.subject {
        sight.settings.providerKeys = Self.value(message.body)
      } else if subject == Key.authorities.subject {
        sight.settings.authorities = Self.value(message.body)
      }
    }
    return sight
  }

  /// The keys of all nodes.
  func nodes() async throws(StoreError) -> [Membership.Key] {
    try await EngineClient.patiently("it does not say which nodes there are") {
      await look()?.nodes
    }
  }

  private static func node(_ message: NATSMessage) -> Membership.Key? {
    guard let revision = message.sequence,
      let name = message.headers["Nats-Subject"]?.dropFirst(leases.count)
    else { return nil }
    let value = try? StripeMessage(message.body)
    for case .report(let report) in value?.entries ?? [] {
      guard let head = value?.head else { continue }
      return .init(
        revision: revision, stamp: head.stamp, report: report, writtenAt: head.writtenAt)
    }
    // Somebody is at work, and has what it has.
    return .init(
      revision: revision, stamp: Stamp(node: String(name), run: 0), report: .unreadable)
  }

  // MARK: Values

  /// What is in the stripes may be served only when all of it is there.
  func refuseHalfImport() async throws(StoreError) {
    if let number: UInt64 = try await value(of: .importing), number != 0 { throw .halfImported }
  }

  /// Up to where each reader of the feedback service has read.
  func cursors() async throws(StoreError) -> [String: Int64] {
    var cursors: [String: Int64] = [:]
    var next: UInt64 = 1
    while true {
      let messages = try await client.some(
        of: EngineStream.bucket, Self.cursors + "*", from: next)
      for message in messages {
        let name = (message.headers["Nats-Subject"] ?? "").dropFirst(Self.cursors.count)
        let bytes = name.split(separator: "-").compactMap { UInt8($0, radix: 16) }
        cursors[String(decoding: bytes, as: UTF8.self)] = Self.value(message.body)
        next = max(next, (message.sequence ?? 0) + 1)
      }
      if messages.isEmpty { return cursors }
    }
  }

  private static func value<Value: BinaryCodable>(_ bytes: [UInt8]) -> Value? {
    var reader = ByteReader(bytes)
    guard (try? reader.byte()) == form else { return nil }
    return try? reader.read(Value.self)
  }

  /// What cannot be read is something: it is not written over.
  private static func value<Value: BinaryCodable>(
    _ bytes: [UInt8], of key: Key
  ) throws(StoreError) -> Value? {
    guard let first = bytes.first else { return nil }
    guard let value: Value = value(bytes) else {
      throw .otherForm(of: key.subject, found: "\(first)", "\(form)")
    }
    return value
  }

  func value<Value: BinaryCodable>(of key: Key) async throws(StoreError) -> Value? {
    try Self.value(try await client.last(EngineStream.bucket, key.subject).body, of: key)
  }

  /// Changes what a key has, from whatever it is at that moment; `make` may be asked several times.
  ///
  /// - Parameter make: what it is to be; nil when it is to stay as it is.
  @discardableResult
  func change<Value: BinaryCodable>(
    _ key: Key, _ make: (Value?) -> Value?
  ) async throws(StoreError) -> Value? {
    let refusal = "it does not take a change of \(key.subject)"
    return try await EngineClient.patiently(refusal, pause: .milliseconds(20)) {
      () async throws(StoreError) -> Value?? in
      let last = try await client.last(EngineStream.bucket, key.subject)
      let old: Value? = try Self.value(last.body, of: key)
      guard let new = make(old) else { return .some(old) }
      var writer = ByteWriter()
      writer.put(byte: Self.form)
      writer.put(new)
      // One message has all of it.
      guard writer.count < client.maximumPayloadBytes / 4 else {
        throw .engineRefuses(
          reason: "\(writer.count) bytes are too many for one message, \(key.subject)")
      }
      let answer = await client.ask(
        key.subject, writer.bytes, after: last.sequence, within: .seconds(1))
      // Somebody else was faster; or the answer was lost, and then it is found to be so already.
      return answer?.first?.storedSequence == nil ? nil : .some(new)
    }
  }

  func set<Value: BinaryCodable & Equatable>(_ key: Key, to value: Value) async throws(StoreError) {
    try await change(key) { (stored: Value?) in stored == value ? nil : value }
  }

  /// What a key has: this when it has nothing yet.
  func value<Value: BinaryCodable>(
    of key: Key, elseFirst first: Value
  ) async throws(StoreError) -> Value {
    try await change(key) { (stored: Value?) in stored == nil ? first : nil } ?? first
  }

  /// How many runs there have been, with the one that begins.
  func nextRun() async throws(StoreError) -> UInt64 {
    try await change(.runs) { (last: UInt64?) in (last ?? 0) + 1 } ?? 0
  }
}
