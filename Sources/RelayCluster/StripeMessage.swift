package import Primitives
package import RelayCore
package import RelayRecording
package import RelayStore

/// The writer of a message, and the message's number.
package struct Stamp: Hashable, Sendable {
  /// The node's name, for people.
  package var node: String
  /// The node's run: random, so unique.
  package var run: UInt64
  /// Rises by one with each owner.
  package var epoch: UInt64 = 0
  package var number: UInt64 = 0
}

/// A message on a stripe: a batch of records, or part of a snapshot of everything before. The
/// form's byte, the head, the entries, by the codec of recordings; changing that codec makes
/// another `ClusterForm`.
package struct StripeMessage: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case batch
    /// One of so many consecutive parts, from 0.
    case snapshot(part: UInt32, of: UInt32)

    var beginsSnapshot: Bool { if case .snapshot(0, _) = self { true } else { false } }
  }

  /// In every message: a subject's last one, which is never purged, tells the next owner all it
  /// needs.
  package struct Head: Hashable, Sendable {
    package var form: UInt8
    package var stamp: Stamp
    package var kind = Kind.batch
    /// The highest record sequence ever on this stripe.
    package var highest: UInt64 = 0
    /// The writer's time, for tokens that another one replaces.
    package var writtenAt: Instant
  }

  static let firstForm: UInt8 = 4
  /// Added by the engine to each message: subject, headers, its own data.
  static let overheadBytes = 160

  package var head: Head
  package var entries: [JournalEntry]
}

extension StripeMessage {
  package init(_ bytes: [UInt8]) throws(CodecError) {
    var reader = ByteReader(bytes)
    self.init(head: try reader.read(), entries: [])
    while !reader.isAtEnd { entries.append(try reader.read()) }
  }

  package var bytes: [UInt8] {
    var writer = ByteWriter(form: head.form)
    writer.put(head)
    for entry in entries { writer.put(entry) }
    return writer.bytes
  }
}

/// One addition to a stripe's state, or removal from it.
package enum JournalEntry: Hashable, Sendable {
  case record(JournalRecord)
  case forgotten([UInt64])
  /// In snapshots: devices, apps, aliases and notifications.
  case restored(RestoredRecord)
  /// In snapshots: an unregistered token with its place in the listing.
  case listed(FeedbackItem)
  /// In a node's key: its report.
  case report(NodeReport)
}

extension Stamp: Composite {
  package static let fields = Fields(Self.init(node:run:epoch:number:)) {
    ($0.node, $0.run, $0.epoch, $0.number)
  }
  #if DEBUG
    .and(since: ClusterForm.trial, \.trial)
  #endif

  #if DEBUG
    private var trial: UInt64 {
      get { run }
      set {}
    }
  #endif
}

extension StripeMessage.Head: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.putForm(first: StripeMessage.firstForm)
    writer.put(stamp, kind, highest, writtenAt)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    try reader.readForm(first: StripeMessage.firstForm)
    self.init(
      form: reader.form, stamp: try reader.read(), kind: try reader.read(),
      highest: try reader.read(), writtenAt: try reader.read())
  }
}

extension StripeMessage.Kind: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .batch: writer.put(tag: 0)
    case .snapshot(let part, let count): writer.put(tag: 1, part, count)
    }
  }

  package static let cases: Cases<Self> = [0: .just(.batch), 1: .of(Self.snapshot)]
}

extension JournalEntry: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .record(let record): writer.put(tag: 1, record)
    case .forgotten(let sequences): writer.put(tag: 2, sequences)
    case .restored(let record): writer.put(tag: 6, record)
    case .listed(let item): writer.put(tag: 7, item)
    case .report(let report): writer.put(tag: 8, report)
    }
  }

  package static let cases: Cases<Self> = [
    1: .of(Self.record), 2: .of(Self.forgotten), 6: .of(Self.restored), 7: .of(Self.listed),
    8: .of(Self.report),
  ]
}

extension FeedbackItem: Composite {
  package static let fields = Fields(Self.init(position:token:topic:at:)) {
    ($0.position, $0.token, $0.topic, $0.at)
  }
}

extension StoredProviderKey: Composite {
  package static let fields = Fields(
    Self.init(keyID:teamID:topics:environment:relatedKeyID:publicKey:)
  ) { ($0.keyID, $0.teamID, $0.topics, $0.environment, $0.relatedKeyID, $0.publicKey) }
}
