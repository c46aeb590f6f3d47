import Primitives
import RelayCore
import Testing

@testable import RelayCluster

/// A stripe as several servers tell it, one of which has lost messages of it.
@Suite("StripeContents") struct StripeContentsTests {
  private static let stamp = Stamp(node: "a", run: 1, epoch: 1)

  private static func message(
    _ sequence: UInt64, _ kind: StripeMessage.Kind = .batch
  ) -> [UInt8] {
    let at = Instant(milliseconds: 5)
    let entry = JournalEntry.record(Make.accepted(sequence, token: sequence, at: at))
    return StripeMessage(
      head: .init(form: ClusterForm.first, stamp: stamp, kind: kind, writtenAt: at),
      entries: [entry]
    ).bytes
  }

  private var contents = StripeContents(empty: StripeState(feedbackLimit: 10))

  @Test mutating func whatOneServerLeavesOutIsReadFromAnother() throws {
    #expect(try contents.read(Self.message(1), at: 11, after: 0, mayMiss: false))
    // A server without the message at 12.
    #expect(try !contents.read(Self.message(3), at: 13, after: 12, mayMiss: false))
    #expect(contents.last == 11 && contents.isWhole && contents.hadGaps)
    #expect(try contents.read(Self.message(2), at: 12, after: 11, mayMiss: false))
    #expect(try contents.read(Self.message(3), at: 13, after: 12, mayMiss: false))
    #expect(contents.last == 13 && contents.isWhole && contents.hadGaps)
    #expect(Set(contents.state.sequences) == [1, 2, 3])
  }

  @Test mutating func withoutTheBeginningItIsNotRead() throws {
    #expect(try !contents.read(Self.message(3), at: 13, after: 12, mayMiss: false))
    #expect(contents.last == 0 && contents.hadGaps)
  }

  @Test mutating func whatNoServerHasIsMissed() throws {
    #expect(try contents.read(Self.message(3), at: 13, after: 12))
    #expect(contents.last == 13 && !contents.isWhole)
  }

  /// Its owner purges what a snapshot replaces while others read.
  @Test mutating func aSnapshotReplacesWhatIsMissing() throws {
    #expect(try contents.read(Self.message(1), at: 11, after: 0, mayMiss: false))
    #expect(try !contents.read(Self.message(3), at: 13, after: 12, mayMiss: false))
    let (first, second) = (
      StripeMessage.Kind.snapshot(part: 0, of: 2), StripeMessage.Kind.snapshot(part: 1, of: 2)
    )
    #expect(try contents.read(Self.message(8, first), at: 18, after: 17, mayMiss: false))
    #expect(!contents.isWhole)
    #expect(try !contents.read(Self.message(9, second), at: 20, after: 19, mayMiss: false))
    #expect(try contents.read(Self.message(9, second), at: 19, after: 18, mayMiss: false))
    #expect(contents.isWhole && !contents.hadGaps)
    #expect(Set(contents.state.sequences) == [8, 9])
  }

  /// Then all servers have it again, and what is damaged goes.
  @Test mutating func theNextOwnerWritesItAnew() throws {
    #expect(try contents.read(Self.message(1), at: 11, after: 0, mayMiss: false))
    #expect(try !contents.read(Self.message(3), at: 13, after: 12, mayMiss: false))
    #expect(try contents.read(Self.message(2), at: 12, after: 11, mayMiss: false))
    var owner = Stamp(node: "b", run: 2, epoch: 2)
    owner.number = 1
    var writer = StripeWriter(stamp: owner, contents: contents)
    let now = Instant(milliseconds: 1000)
    var effects = writer.claim(at: now, wall: now)
    writer.handle(.stored(number: 1, sequence: 13), at: now, wall: now, into: &effects)
    let made = effects.compactMap { effect -> [[JournalEntry]]? in
      guard case .snapshot(let state, _, let messageBytes) = effect else { return nil }
      return state.snapshot(messageBytes: messageBytes)
    }
    writer.write(try #require(made.first), of: 2)
    writer.handle(.tick, at: now, wall: now, into: &effects)
    writer.handle(.stored(number: 2, sequence: 14), at: now, wall: now, into: &effects)
    var (purged, rewritten) = (UInt64(0), 0)
    for effect in effects {
      if case .purge(let sequence) = effect { purged = sequence }
      if case .rewritten = effect { rewritten += 1 }
    }
    #expect(purged == 14 && rewritten == 1 && !writer.contents.hadGaps)
    #expect(writer.deadline == nil)
  }
}
