import Primitives
import TestSeeds
import Testing

@testable import RelayCore
@testable import RelayRecording

/// Recordings whose checksums are right and whose contents nobody has recorded. Whatever they say,
/// replay comes to an end: it plays them, says what differs, or names the byte that cannot be.
@Suite struct CraftedRecordingTests {
  /// A file taken apart, so that it can be put together again with other contents.
  private struct File {
    var header: RecordingHeader
    var frames: [(kind: RecordingFormat.Kind, body: [UInt8])] = []

    init(_ bytes: [UInt8]) throws {
      var reader = try RecordingReader(bytes)
      header = reader.header
      var start = reader.position
      while try reader.next() != nil {
        let kind = try #require(RecordingFormat.Kind(rawValue: bytes[start]))
        let body = bytes[start + RecordingFormat.headBytes..<reader.position - 4]
        frames.append((kind, Array(body)))
        start = reader.position
      }
    }

    /// With new checksums.
    var bytes: [UInt8] {
      frames.reduce(into: header.fileHead) { $0 += RecordingFormat.frame($1.kind, $1.body) }
    }

    /// One to four bytes of one frame are others.
    mutating func changeBytes(_ random: inout SeededRandom) {
      let frame = Int(random.below(Int64(frames.count)))
      guard !frames[frame].body.isEmpty else { return }
      for _ in 0...random.below(4) {
        let place = Int(random.below(Int64(frames[frame].body.count)))
        let old = frames[frame].body[place]
        frames[frame].body[place] =
          switch random.below(6) {
          case 0: old &+ 1
          case 1: old &- 1
          case 2: old ^ 1 << UInt8(random.below(8))
          case 3: UInt8(random.below(26))
          case 4: UInt8(random.below(256))
          // Two entries, apps or timers of one number.
          default: frames[frame].body[Int(random.below(Int64(frames[frame].body.count)))]
          }
      }
    }

    /// Events of a chunk come twice, elsewhere, in another shard, at other times, or not at all.
    mutating func changeEvents(_ random: inout SeededRandom) throws {
      let chunks = frames.indices.filter { frames[$0].kind == .chunk }
      let frame = chunks[Int(random.below(Int64(chunks.count)))]
      var chunk = try Chunk(frames[frame].body)
      let other = try Chunk(frames[chunks[Int(random.below(Int64(chunks.count)))]].body)
      for _ in 0...random.below(6) {
        guard !chunk.events.isEmpty, let foreign = other.events.randomElement(using: &random)
        else { return }
        let (one, two) = (
          Int(random.below(Int64(chunk.events.count))),
          Int(random.below(Int64(chunk.events.count)))
        )
        switch random.below(6) {
        case 0: chunk.events.remove(at: one)
        case 1: chunk.events.insert(chunk.events[one], at: two)
        case 2: chunk.events.swapAt(one, two)
        case 3:
          let any = Int64(bitPattern: random.next()) >> random.below(64)
          chunk.events[one].after = .milliseconds(any)
        default: chunk.events.insert(foreign, at: one)
        }
      }
      frames[frame].body = chunk.body
    }
  }

  /// A chunk whose digests say nothing.
  private struct Chunk {
    var head: (shard: UInt16, number: UInt64, batch: UInt64, at: Instant)
    var events: [(event: Event, after: Interval)] = []
    var batches = 0

    init(_ body: [UInt8]) throws {
      var reader = ByteReader(body)
      head = (try reader.read(), try reader.varint(), try reader.varint(), try reader.read())
      while !reader.isAtEnd {
        while try reader.peek() != Event.noTag {
          events.append((try reader.read(), try reader.read()))
          _ = try reader.byte()
        }
        _ = try reader.byte()
        _ = try reader.word()
        batches += 1
      }
    }

    /// The same number of batches, most of them empty, so that the next chunk fits.
    var body: [UInt8] {
      var writer = ByteWriter()
      writer.put(head.shard, head.number, head.batch, head.at)
      for (event, after) in events { writer.put(event, after, UInt8(0)) }
      for _ in 0..<batches {
        writer.put(tag: Event.noTag)
        writer.put(word: 0)
      }
      return writer.bytes
    }
  }

  private func recording(_ seed: UInt64) throws -> File {
    var recorder = Recorder(chunksBetweenStates: 2)
    if seed % 2 == 0 {
      var world = World(seed: seed)
      for _ in 0..<30 { world.step() }
      recorder.add(world)
    } else {
      recorder.addShards(seed: seed, steps: 20)
    }
    return try File(recorder.bytes)
  }

  private enum Outcome: Hashable { case same, different, unsound, damaged }

  private func play(_ bytes: [UInt8], comparesPolicies: Bool = true) -> Outcome {
    do throws(RecordingReader.ReadingError) {
      var replay = Replay(try RecordingReader(bytes))
      try replay.run()
      if comparesPolicies {
        _ = try PolicyComparison(try RecordingReader(bytes), other: .strict)
      }
      return replay.summary.differences.isEmpty ? .same : .different
    } catch {
      return error.description.contains("cannot be") ? .unsound : .damaged
    }
  }

  @Test func whateverItSaysReplayComesToAnEnd() throws {
    let rounds = 80
    var counts: [Outcome: Int] = [:]
    for seed in seeds(0..<20) {
      let file = try recording(seed)
      #expect(play(file.bytes) == .same, "seed \(seed)")
      var random = SeededRandom(seed: seed)
      for round in 0..<rounds {
        var crafted = file
        if round % 2 == 0 {
          crafted.changeBytes(&random)
        } else {
          try crafted.changeEvents(&random)
        }
        let outcome = play(crafted.bytes, comparesPolicies: round % 5 == 0)
        counts[outcome, default: 0] += 1
      }
    }
    for outcome in [Outcome.different, .unsound, .damaged] {
      #expect(counts[outcome, default: 0] > rounds / 2, "\(outcome) of \(counts)")
    }
  }
}
