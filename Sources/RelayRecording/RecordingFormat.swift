package import Primitives
package import RelayCore

/// A recording as a file (docs/RECORDING.md): eight bytes of magic, then frames.
///
/// ```
///  0  kind of frame, 1 number of bytes (4 bytes), 5 CRC-32C of both (4 bytes)
///  9  the bytes, then their CRC-32C (4 bytes)
/// ```
///
/// The number of bytes has its own checksum, to tell a cut file from a damaged one.
package enum RecordingFormat {
  /// The last byte of the magic.
  package static let version: UInt8 = 7
  package static let magic: [UInt8] = Array("PRRLOG\n".utf8) + [version]
  static let headBytes = 9
  static let checksumBytes = 4

  enum Kind: UInt8 {
    /// Once, at the beginning.
    case header = 1
    /// A new shard, before its first chunk.
    case start = 2
    /// Batches of one shard.
    case chunk = 3
    /// The last frame, with the reason.
    case end = 4
    /// A running shard, before its first chunk.
    case state = 5
  }

  static func frame(_ kind: Kind, _ body: [UInt8]) -> [UInt8] {
    var writer = ByteWriter(capacity: headBytes + body.count + checksumBytes)
    let key = UInt64(kind.rawValue) << 32 | UInt64(body.count)
    writer.put(tag: kind.rawValue)
    writer.put(word: UInt64(body.count), byteCount: 4)
    writer.put(word: headChecksum(key), byteCount: 4)
    writer.put(raw: body)
    writer.put(word: UInt64(Checksum.crc32C(of: key, then: body.span)), byteCount: 4)
    return writer.bytes
  }

  static func headChecksum(_ key: UInt64) -> UInt64 {
    UInt64(Checksum.crc32C(of: key, then: [UInt8]().span))
  }
}

/// A frame of a file. Its checksums are computed when it is written.
package struct RecordingFrame: Hashable, Sendable {
  let kind: RecordingFormat.Kind
  let body: [UInt8]

  init(kind: RecordingFormat.Kind, body: [UInt8]) {
    self.kind = kind
    self.body = body
  }

  package init(chunk body: [UInt8]) { self.init(kind: .chunk, body: body) }

  package var bytes: [UInt8] { RecordingFormat.frame(kind, body) }
  package var count: Int { body.count + RecordingFormat.headBytes + RecordingFormat.checksumBytes }
}

package struct RecordingHeader: Hashable, Sendable, Composite {
  /// The recording build, in words.
  package var build: String
  /// See `RelayCore.coreVersion`.
  package var coreVersion: UInt32
  package var payloads: RecordedPayloads
  package var shardCount: UInt16
  package var began: Instant

  package init(
    build: String, coreVersion: UInt32 = RelayCore.coreVersion, payloads: RecordedPayloads,
    shardCount: UInt16, began: Instant
  ) {
    self.build = build
    self.coreVersion = coreVersion
    self.payloads = payloads
    self.shardCount = shardCount
    self.began = began
  }

  package static let fields = Fields(
    Self.init, \.build, \.coreVersion, \.payloads, \.shardCount, \.began)

  /// The start of a file.
  package var fileHead: [UInt8] {
    var writer = ByteWriter()
    writer.put(self)
    return RecordingFormat.magic + RecordingFormat.frame(.header, writer.bytes)
  }
}

extension RecordedPayloads: BinaryCodable {}

/// The arguments of `Shard.init` for a new shard.
package struct ShardStart: Hashable, Sendable, Composite {
  static let shards = 0..<UInt16(1 << SequenceRanges.shardBits)

  package var shard: UInt16
  package var configuration: Shard.Configuration
  package var at: Instant
  package var sequences: SequenceRanges
  package var budgets: SilentBudgets

  package init(
    shard: UInt16, configuration: Shard.Configuration, at: Instant, sequences: SequenceRanges,
    budgets: SilentBudgets?
  ) {
    self.shard = shard
    self.configuration = configuration
    self.at = at
    self.sequences = sequences
    self.budgets = budgets ?? SilentBudgets(configuration.policy, at: at)
  }

  package static let fields = Fields(
    of: Self(
      shard: 0, configuration: Shard.Configuration(), at: Instant(milliseconds: 0),
      sequences: SequenceRanges(first: 1), budgets: nil),
    \.shard, \.configuration, \.at, \.sequences, \.budgets)

  package var isPossible: Bool { Self.shards.contains(shard) }

  package func makeShard() -> Shard {
    Shard(configuration: configuration, at: at, sequences: sequences, budgets: budgets)
  }
}

/// The whole state of a shard when a file begins, in place of a `ShardStart`.
package struct RecordedState: Sendable, BinaryCodable {
  package let number: UInt16
  /// Not checked when it has been read: `Shard.init(restoring:checkpoints:)` does.
  package let shard: Shard
  /// The states it can be rewound to.
  package let checkpoints: [UInt32: Shard]

  package init(_ number: UInt16, _ shard: Shard) {
    self.number = number
    self.shard = shard
    checkpoints = shard.checkpointShards
  }

  package func write(to writer: inout ByteWriter) {
    let kept = checkpoints.sorted { $0.key < $1.key }
    writer.put(number, shard, kept.map(\.key), kept.map(\.value))
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    (number, shard) = (try reader.read(), try reader.read())
    let (numbers, shards) = (try reader.read([UInt32].self), try reader.read([Shard].self))
    checkpoints = Dictionary(zip(numbers, shards)) { first, _ in first }
    guard ShardStart.shards.contains(number), numbers.count == shards.count,
      checkpoints.count == shards.count
    else { throw reader.invalid(Self.self) }
  }

  /// As a frame, redacted like the rest of the file.
  package func frame(_ redactor: Redactor) -> [UInt8] {
    var writer = ByteWriter(redactor: redactor)
    writer.put(self)
    return RecordingFormat.frame(.state, writer.bytes)
  }
}

/// Why a recording ends.
package enum RecordingEnd: UInt8, CaseIterable, Sendable, BinaryCodable {
  /// By the operator, or with the relay.
  case stopped
  /// Continues in the next file, which begins with the state of every shard.
  case rotated
  /// The disk could not keep up.
  case tooSlow
  case failed

  package var text: String {
    switch self {
    case .stopped: "stopped"
    case .rotated: "goes on in the next file"
    case .tooSlow: "the disk was too slow"
    case .failed: "the disk could not write"
    }
  }

  package var frame: [UInt8] { RecordingFormat.frame(.end, [rawValue]) }
}

extension Shard.Configuration: Composite {
  package static let fields = Fields(
    of: Self(), \.policy, \.keepAlive, \.keepAliveTimeout, \.ackTimeout, \.rides, \.lowPriorityHold,
    \.requestsPerToken, \.inFlightPerDevice, \.pendingPersists, \.partitionCount,
    \.deadlinesNeedClock)

  /// A timer due again at once would be due for ever.
  package var isPossible: Bool {
    PartitionTable.counts.contains(partitionCount) && keepAlive > .zero
      && keepAliveTimeout > .zero && ackTimeout > .zero
  }
}

extension SequenceRanges: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(first, bits) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    let (first, bits) = (try reader.read(UInt64.self), try reader.read(Int.self))
    guard (1...Self.latestFirst).contains(first), (0...32).contains(bits) else {
      throw reader.invalid(Self.self)
    }
    self.init(first: first, bits: bits)
  }
}

extension SilentBudgets: Composite {
  package static let fields = Fields(Self.init, \.policy, \.appClock, \.deviceClock)
}

extension RefillClock: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(interval, since, reading) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    let (interval, since) = (try reader.read(Interval.self), try reader.read(Instant.self))
    guard interval > .zero else { throw reader.invalid(Self.self) }
    self.init(interval: interval, since: since, reading: try reader.read())
  }
}
