package import Primitives
package import RelayCore

/// Replays a recording through shards and compares their effects with the recorded ones.
package struct Replay: Sendable {
  package struct Step: Hashable, Sendable, CustomStringConvertible {
    package var shard: UInt16
    package var batch: UInt64
    package var at: Instant
    package var event: Event
    package var effects: [Effect]

    package var description: String {
      "shard \(shard), batch \(batch), \(at.iso8601): \(event.name) has other effects than then"
    }
  }

  /// A shard at the start of the recording.
  package enum Beginning: Sendable {
    case start(ShardStart)
    /// It was running already.
    case state(shard: UInt16, Shard)
  }

  package enum Until: Sendable {
    case end
    /// Inclusive. Events that were rewound before it do not count.
    case moment(Instant)
    /// The event that accepted this notification, inclusive.
    case notification(UniqueID)
  }

  package struct Summary: Sendable {
    package var events = 0
    package var batches = 0
    package var chunks = 0
    package var first: Instant?
    /// The latest moment of any shard at the end: what a return to a checkpoint left behind does
    /// not count.
    package var last: Instant?
    /// The first event of each shard with other effects than recorded.
    package var differences: [Step] = []
    package var ending: RecordingEnd?
    package var cutBytes = 0
    package var isStopped = false
  }

  private struct Lane: Sendable {
    var shard: Shard
    var nextChunk: UInt64 = 0
    var nextBatch: UInt64 = 0
    var last: Instant?
    /// Has differed: no further differences are reported.
    var isOff = false
    /// Past the requested moment, until a rewind leads back before it.
    var isBeyond = false
  }

  package private(set) var summary = Summary()
  private var lanes: [UInt16: Lane] = [:]
  private var reader: RecordingReader
  private let until: Until
  private var digest = EffectDigest()
  private var effects: [Effect] = []

  package init(_ reader: RecordingReader, until: Until = .end) {
    self.reader = reader
    self.until = until
  }

  package var header: RecordingHeader { reader.header }

  /// Whether it got as far as was asked for: false if the recording ends before.
  package var isComplete: Bool {
    switch until {
    case .end: true
    case .moment: lanes.values.contains(where: \.isBeyond)
    case .notification: summary.isStopped
    }
  }

  /// The current shards by number.
  package var shards: [(number: UInt16, shard: Shard)] {
    lanes.sorted { $0.key < $1.key }.map { ($0.key, $0.value.shard) }
  }

  /// Replays everything. `observe` gets every step; without it none is kept.
  package mutating func run(
    onStart: ((Beginning) -> Void)? = nil, observe: ((Step) -> Void)? = nil
  ) throws(RecordingReader.ReadingError) {
    while !summary.isStopped {
      let offset = reader.position
      guard let frame = try reader.next() else { break }
      do throws(CodecError) {
        switch frame {
        case .start(let start):
          lanes[start.shard] = Lane(shard: start.makeShard())
          onStart?(.start(start))
        case .state(let recorded):
          let shard = try Self.shard(recorded, before: reader.position)
          lanes[recorded.number] = Lane(shard: shard)
          onStart?(.state(shard: recorded.number, shard))
        case .chunk(var chunk): try play(&chunk, observe)
        case .end: break
        }
      } catch {
        throw .damaged(offset: offset, error.description)
      }
    }
    summary.last = lanes.values.compactMap(\.last).max()
    summary.ending = reader.ending
    summary.cutBytes = reader.cutBytes
  }

  private static func shard(
    _ recorded: RecordedState, before offset: Int
  ) throws(CodecError) -> Shard {
    do throws(StateFlaw) {
      return try Shard(restoring: recorded.shard, checkpoints: recorded.checkpoints)
    } catch {
      throw CodecError(offset: offset, problem: .unsound("shard \(recorded.number)", error))
    }
  }

  private mutating func play(
    _ chunk: inout ByteReader, _ observe: ((Step) -> Void)?
  ) throws(CodecError) {
    let number = try chunk.read(UInt16.self)
    // Removed meanwhile, so that the shard is not copied.
    guard var lane = lanes.removeValue(forKey: number) else {
      throw chunk.error(.invalid("shard \(number)"))
    }
    defer { lanes[number] = lane }
    guard try chunk.varint() == lane.nextChunk, try chunk.varint() == lane.nextBatch else {
      throw chunk.error(.invalid("successor of the chunk before"))
    }
    lane.nextChunk += 1
    var now = try chunk.read(Instant.self)
    summary.chunks += 1
    while !chunk.isAtEnd, !summary.isStopped {
      try playBatch(&chunk, number, &lane, &now, observe)
    }
  }

  private mutating func playBatch(
    _ chunk: inout ByteReader, _ number: UInt16, _ lane: inout Lane, _ now: inout Instant,
    _ observe: ((Step) -> Void)?
  ) throws(CodecError) {
    digest.reset()
    let earlier = summary.events
    var isWhole = true
    while try chunk.peek() != Event.noTag {
      let event = try chunk.read(Event.self)
      now = now + (try chunk.read(Interval.self))
      let check = try chunk.byte()
      if case .moment(let end) = until {
        if case .operated(.rewound) = event { lane.isBeyond = false }
        lane.isBeyond = lane.isBeyond || now > end
        guard !lane.isBeyond else {
          isWhole = false
          continue
        }
      }
      if let flaw = lane.shard.flaw(in: event, at: now) {
        throw chunk.error(.unsound(event.name, flaw))
      }
      effects.removeAll(keepingCapacity: true)
      lane.shard.handle(event, at: now, into: &effects)
      let asked = effects
      digest.add(asked.span)
      summary.events += 1
      if summary.first == nil { summary.first = now }
      lane.last = now
      if isWhole, digest.check != check { differ(&lane, number, now, event) }
      observe?(Step(shard: number, batch: lane.nextBatch, at: now, event: event, effects: effects))
      if case .notification(let id) = until, event.accepts(id) {
        summary.isStopped = true
        return
      }
    }
    _ = try chunk.byte()
    if try chunk.word() != digest.value, isWhole { differ(&lane, number, now, .clock(.tick)) }
    lane.nextBatch += 1
    if summary.events > earlier { summary.batches += 1 }
  }

  private mutating func differ(
    _ lane: inout Lane, _ number: UInt16, _ now: Instant, _ event: Event
  ) {
    guard !lane.isOff else { return }
    lane.isOff = true
    summary.differences.append(
      Step(shard: number, batch: lane.nextBatch, at: now, event: event, effects: effects))
  }
}

extension Event {
  func accepts(_ id: UniqueID) -> Bool {
    guard let notification else { return false }
    return notification.uniqueID == id || notification.apnsID == id
  }
}
