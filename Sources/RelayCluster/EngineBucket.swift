import Dispatch
import NATS
import Primitives
import RelayCore
import RelayRecording
import RelayStore

/// The key-value bucket of nodes' keys and cluster-wide settings. Values are changed by compare and
/// set.
struct EngineBucket: Sendable {
  let client: EngineClient

  struct Key {
    /// Runs of nodes so far.
    static let runs = Key(subject: "$KV.pushrelay.runs")
    /// How long a node that is gone keeps its stripes.
    static let lease = Key(subject: "$KV.pushrelay.settings.lease")
    static let budgets = Key(subject: "$KV.pushrelay.common.budgets")
    static let providerKeys = Key(subject: "$KV.pushrelay.common.keys")
    static let authorities = Key(subject: "$KV.pushrelay.common.authorities")
    static let names = Key(subject: "$KV.pushrelay.common.names")
    static let clock = Key(subject: "$KV.pushrelay.common.clock")
    /// Of single devices, as text.
    static let policies = Key(subject: "$KV.pushrelay.policies")
    /// One byte: the form that nodes write. Without it, the one that the stream was made in.
    static let form = Key(subject: "$KV.pushrelay.common.form")
    /// Marks of broadcasts that are not stored.
    static let marks = Key(subject: "$KV.pushrelay.marks")
    /// The unfinished import; 0 when none.
    static let importing = Key(subject: "$KV.pushrelay.importing")
    /// Another one with each journal, so that a node that was away knows that its own is gone.
    static let identity = Key(subject: "$KV.pushrelay.common.identity")

    let subject: String

    /// How far a reader of the feedback service has read. Its name is free text; subjects have no
    /// dots or spaces inside.
    static func cursor(reader: String) -> Key {
      Key(subject: cursors + reader.utf8.map { String($0, radix: 16) }.joined(separator: "-"))
    }

    static func drain(node: String) -> Key { Key(subject: drains + node) }

    static func channel(_ place: UInt16) -> Key { Key(subject: "\(channels)\(place)") }
  }

  struct Sight: Sendable {
    var nodes: [Membership.Key] = []
    var settings = SharedSettings()
    /// The run that is to drain, by node name.
    var drains: [String: UInt64] = [:]
    var form = ClusterForm.first

    fileprivate mutating func read(_ message: NATSMessage, of subject: String) {
      switch subject {
      case Key.budgets.subject: settings.budgets = value(message.body)
      case Key.providerKeys.subject: settings.providerKeys = value(message.body)
      case Key.authorities.subject: settings.authorities = value(message.body)
      case Key.names.subject: settings.names = value(message.body)
      case Key.clock.subject:
        let clock: SharedClock? = value(message.body)
        settings.virtualTime = clock?.now
      case Key.form.subject: form = message.body.first ?? form
      case _ where subject.hasPrefix(EngineBucket.drains):
        drains[String(subject.dropFirst(EngineBucket.drains.count))] = value(message.body)
      case _ where subject.hasPrefix(leases):
        if let key = node(message) { nodes.append(key) }
      default: break
      }
    }
  }

  /// The newest message of each key that a node has seen. The servers take turns to answer a look:
  /// one that is behind or has lost a key must not take the node back. A key that is removed has an
  /// empty message.
  struct Seen: Sendable {
    private(set) var messages: [String: NATSMessage] = [:]

    init(_ found: [NATSMessage] = []) { add(found) }

    mutating func add(_ found: [NATSMessage]) {
      for message in found {
        guard let subject = message.headers["Nats-Subject"],
          message.sequence ?? 0 > messages[subject]?.sequence ?? 0
        else { continue }
        messages[subject] = message
      }
    }

    var sight: Sight {
      messages.reduce(into: Sight()) { sight, entry in
        if !entry.value.body.isEmpty { sight.read(entry.value, of: entry.key) }
      }
    }
  }

  /// The value that a change is written behind: the last that was read. The server that leads may
  /// have lost that one; then, after half a second of refusals, the last that it has.
  struct Place {
    private static let refusals = 25
    private var (count, leaderLast): (Int, UInt64) = (0, 0)

    func behind(_ read: UInt64) -> UInt64 { count < Self.refusals ? read : leaderLast }

    mutating func refused(behind read: UInt64, leaderHas last: UInt64?) {
      leaderLast = last ?? read
      count = leaderLast < read ? count + 1 : 0
    }
  }

  private static let leases = "$KV.pushrelay.lease."
  private static let drains = "$KV.pushrelay.drain."
  private static let cursors = "$KV.pushrelay.cursor."
  private static let channels = "$KV.pushrelay.channel."
  private static let reaches = "$KV.pushrelay.reach."
  /// Values stay as they were written, so all forms since then are read.
  private static let firstForm: UInt8 = 1

  /// Reads what nodes need to know of each other, in one question, and in another one which
  /// channels have changed since a revision, in part where the engine is slow; nil when no answer
  /// comes.
  func look(
    channelsAfter revision: UInt64? = nil
  ) async -> (keys: [NATSMessage], channels: [ChannelPlace], isWhole: Bool)? {
    let question =
      #"{"multi_last":["\#(Self.leases)*","$KV.pushrelay.common.*","\#(Self.drains)*"]}"#
    guard
      let keys = await client.some(of: EngineStream.bucket, question, within: .seconds(1))
    else { return nil }
    guard let revision else { return (keys, [], true) }
    let (places, isWhole) = await all(Self.channels, after: revision)
    return (keys, Self.places(places), isWhole)
  }

  /// The identity in the answer to a look; nil if it is missing, as from a server that is behind.
  static func identity(in keys: [NATSMessage]) -> UInt64? {
    keys.first { $0.headers["Nats-Subject"] == Key.identity.subject }.flatMap { value($0.body) }
  }

  func nodes() async throws(StoreError) -> [Membership.Key] {
    try await EngineClient.patiently("it does not say which nodes there are") {
      await look().map { Seen($0.keys).sight.nodes }
    }
  }

  /// Removes a node's key as it was seen; false when the node has renewed it since, or the engine
  /// does not answer.
  func remove(_ node: Membership.Key) async -> Bool {
    let answer = await client.ask(
      Self.leases + node.stamp.node, after: node.revision, headers: [("KV-Operation", "DEL")],
      within: .seconds(1))
    return answer?.first?.storedSequence != nil
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
    // A node of another version is at work.
    return .init(
      revision: revision, stamp: Stamp(node: String(name), run: 0), report: .unreadable)
  }

  // MARK: Reach

  /// Writes how far each stripe of a node goes, nil for those of others: of these stays what an
  /// earlier run of the node knew. It is in another stream than they, so that what that one loses
  /// is noticed.
  func keepReach(of node: String, _ reach: [StripeReach?]) async {
    let key = Key(subject: Self.reaches + node)
    _ = try? await changed(key, tries: Self.hastyTries) { (stored: [StripeReach?]?) in
      let all = reach.indices.map { stripe in
        reach[stripe] ?? stored.flatMap { stripe < $0.count ? $0[stripe] : nil }
      }
      return all == stored ? nil : all
    }
  }

  /// The furthest that nodes know of a stripe, with the name of the node; nil when none does.
  func reach(of stripe: Int) async throws(StoreError) -> (reach: StripeReach, node: String)? {
    try await all(Self.reaches).compactMap { message in
      let node = (message.headers["Nats-Subject"] ?? "").dropFirst(Self.reaches.count)
      let known: [StripeReach?] = Self.value(message.body) ?? []
      return stripe < known.count ? known[stripe].map { ($0, String(node)) } : nil
    }.max { $0.reach.epoch < $1.reach.epoch }
  }

  // MARK: Channels

  func channels() async throws(StoreError) -> [ChannelPlace] {
    Self.places(try await all(Self.channels))
  }

  private static func places(_ messages: [NATSMessage]) -> [ChannelPlace] {
    messages.compactMap { message in
      let place: ChannelPlace? = value(message.body)
      return place?.written(at: message.sequence ?? 0)
    }
  }

  /// A revision behind all earlier ones.
  func mark() async throws(StoreError) -> UInt64 {
    try await EngineClient.patiently(
      "it does not take the mark of a broadcast", tries: Self.hastyTries
    ) { await client.ask(Key.marks.subject, within: .seconds(1))?.first?.storedSequence }
  }

  // MARK: Form

  /// Goes by the form of what is there. Throws, writing nothing, if this version does not read it.
  func adoptForm(of stream: EngineStream) async throws(StoreError) {
    let raised = try await last(.form).body.first
    let form = max(stream.form, raised ?? 0)
    guard ClusterForm.readable.contains(form) else {
      throw .otherForm(of: "the cluster", found: "\(form)", ClusterForm.readable)
    }
    client.form.written = form
  }

  /// Another node may be faster; the next look finds what was written.
  func raiseForm(to form: UInt8) async {
    let last = try? await last(.form, tries: 1)
    guard let last, last.body.first ?? 0 < form else { return }
    _ = await client.ask(Key.form.subject, [form], after: last.sequence, within: .seconds(1))
  }

  // MARK: Values

  /// Throws if an import is unfinished: half a journal must not be served.
  func refuseHalfImport() async throws(StoreError) {
    if let number: UInt64 = try await value(of: .importing), number != 0 { throw .halfImported }
  }

  /// Removes all but the mark of an import that has yet to come, in one step of the engine's (NATS
  /// documentation, "Headers", `Nats-Rollup`).
  func clear(leavingImport run: UInt64) async throws(StoreError) {
    var writer = ByteWriter(form: client.form.written)
    writer.putForm(first: Self.firstForm)
    writer.put(run)
    _ = try await EngineClient.patiently("it does not clear the bucket") {
      await client.ask(
        Key.importing.subject, writer.bytes, headers: [("Nats-Rollup", "all")],
        within: .seconds(1))?.first?.storedSequence
    }
  }

  func cursors() async throws(StoreError) -> [String: Int64] {
    var cursors: [String: Int64] = [:]
    for message in try await all(Self.cursors) {
      let name = (message.headers["Nats-Subject"] ?? "").dropFirst(Self.cursors.count)
      let bytes = name.split(separator: "-").compactMap { UInt8($0, radix: 16) }
      cursors[String(decoding: bytes, as: UTF8.self)] = Self.value(message.body)
    }
    return cursors
  }

  /// How often is asked for what may be missing: of three servers that take turns one may have lost
  /// a key, and by itself does not get it back.
  private static let asks = 8

  private func all(_ prefix: String) async throws(StoreError) -> [NATSMessage] {
    var seen = Seen()
    for _ in 0..<Self.asks {
      let found = try await EngineClient.patiently("it does not say what is on \(prefix)*") {
        let (messages, isWhole) = await all(prefix, after: 0)
        return isWhole ? messages : nil
      }
      seen.add(found)
    }
    return seen.messages.values.sorted { $0.sequence ?? 0 < $1.sequence ?? 0 }
  }

  /// A key's last message; sequence 0 once so many answers know of none.
  private func last(
    _ key: Key, tries: Int = EngineClient.patientTries
  ) async throws(StoreError) -> EngineClient.Last {
    for _ in 0..<Self.asks {
      let last = try await client.last(EngineStream.bucket, key.subject, tries: tries)
      if last.sequence > 0 { return last }
    }
    return (0, [])
  }

  /// The values that were written behind a revision, in order, and whether these are all.
  private func all(
    _ prefix: String, after revision: UInt64
  ) async -> (messages: [NATSMessage], isWhole: Bool) {
    var (messages, last): ([NATSMessage], UInt64) = ([], revision)
    while true {
      // So much comes over a slow link, too.
      let question = EngineClient.next(prefix + "*", last + 1, bytes: 256 << 10)
      let more = await client.some(of: EngineStream.bucket, question, within: .seconds(1))
      guard let next = more?.last?.sequence, let more else { return (messages, more != nil) }
      messages += more
      last = next
    }
  }

  private static func value<Value: BinaryCodable>(_ bytes: [UInt8]) -> Value? {
    var reader = ByteReader(bytes)
    guard (try? reader.readForm(first: firstForm, oldest: ClusterForm.first)) != nil else {
      return nil
    }
    return try? reader.read(Value.self)
  }

  /// Throws for an unreadable value, so that it is not written over.
  private static func value<Value: BinaryCodable>(
    _ bytes: [UInt8], of key: Key
  ) throws(StoreError) -> Value? {
    guard let first = bytes.first else { return nil }
    guard let value: Value = value(bytes) else {
      throw .otherForm(of: key.subject, found: "\(first)", ClusterForm.readable)
    }
    return value
  }

  func value<Value: BinaryCodable>(of key: Key) async throws(StoreError) -> Value? {
    try Self.value(try await last(key).body, of: key)
  }

  /// Changes a key's value by compare and set. `make` may be called several times; nil leaves the
  /// value.
  @discardableResult
  func change<Value: BinaryCodable>(
    _ key: Key, _ make: (Value?) -> Value?
  ) async throws(StoreError) -> Value? { try await changed(key, make).value }

  /// Of what a client waits for: it hears soon that the engine is away.
  static let hastyTries = 3
  private static let hastyPatience = Duration.seconds(5)

  /// As `change`; with the revision of the value, 0 for none. `tries` is how often an engine that
  /// does not answer is asked what there is.
  func changed<Value: BinaryCodable>(
    _ key: Key, tries: Int = EngineClient.patientTries, _ make: (Value?) -> Value?
  ) async throws(StoreError) -> (value: Value?, revision: UInt64) {
    // A message without an answer may come when the engine is back.
    let refusal = "it does not take a change of \(key.subject), or takes it later"
    var (place, hasSent) = (Place(), false)
    let length = tries == Self.hastyTries ? Self.hastyPatience : EngineClient.patience
    return try await EngineClient.patiently(refusal, within: length, pause: .milliseconds(20)) {
      () async throws(StoreError) -> (value: Value?, revision: UInt64)? in
      let last: EngineClient.Last
      do throws(StoreError) {
        last = try await self.last(key, tries: tries)
      } catch {
        if case .stopped = error { throw error }
        throw hasSent ? .engineRefuses(reason: refusal) : error
      }
      let old: Value? = try Self.value(last.body, of: key)
      guard let new = make(old) else { return (old, last.sequence) }
      var writer = ByteWriter(form: client.form.written)
      writer.putForm(first: Self.firstForm)
      writer.put(new)
      let answer = await client.ask(
        key.subject, writer.bytes, after: place.behind(last.sequence), within: .seconds(1)
      )?.first
      hasSent = hasSent || answer == nil
      // Another node was faster, or the answer was lost: then the next read finds the new value.
      if let stored = answer?.storedSequence { return (new, stored) }
      place.refused(
        behind: last.sequence, leaderHas: answer.flatMap { EngineStream.refusal($0.body).last })
      return nil
    }
  }

  /// Refuses a value that a message does not hold.
  func set<Value: BinaryCodable & Equatable>(_ key: Key, to value: Value) async throws(StoreError) {
    var writer = ByteWriter()
    writer.put(value)
    guard writer.count < client.maximumPayloadBytes / 4 else {
      throw .engineRefuses(
        reason: "\(writer.count) bytes are too many for one message, \(key.subject)")
    }
    try await change(key) { (stored: Value?) in stored == value ? nil : value }
  }

  /// The value of a key, set to `first` if there is none.
  func value<Value: BinaryCodable>(
    of key: Key, elseFirst first: Value
  ) async throws(StoreError) -> Value {
    try await change(key) { (stored: Value?) in stored == nil ? first : nil } ?? first
  }

  func nextRun() async throws(StoreError) -> UInt64 {
    try await change(.runs) { (last: UInt64?) in (last ?? 0) + 1 } ?? 0
  }
}
