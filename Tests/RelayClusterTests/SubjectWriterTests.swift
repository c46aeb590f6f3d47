import Primitives
import Testing

@testable import RelayCluster

/// The table of `SubjectWriter`, cell by cell.
@Suite("SubjectWriter") struct SubjectWriterTests {
  private let message = SubjectWriter.Message(number: 3, bytes: [1, 2])
  private let mine = Stamp(node: "a", run: 1, epoch: 4, number: 3)
  private let earlier = Stamp(node: "a", run: 1, epoch: 4, number: 2)
  private let other = Stamp(node: "b", run: 2, epoch: 5, number: 0)
  private let before = Stamp(node: "c", run: 3, epoch: 3, number: 9)
  private func time(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

  /// One that has published its message behind sequence 10 at 0.
  private func writing() -> SubjectWriter {
    var writer = SubjectWriter(run: 1, last: 10, epoch: 4)
    #expect(writer.write(message, at: time(0)) == .publish(message, after: 10))
    return writer
  }

  /// The same, of which an answer has failed to come: it has asked.
  private func doubtful() -> SubjectWriter {
    var writer = writing()
    #expect(writer.handle(.tick, at: time(999)) == nil)
    #expect(writer.handle(.tick, at: time(1000)) == .ask(question: 1))
    return writer
  }

  @Test func anAckEndsTheMessageWheneverItComes() {
    for var writer in [writing(), doubtful()] {
      #expect(writer.handle(.stored(number: 2, sequence: 9), at: time(1)) == nil)
      #expect(!writer.isIdle)
      #expect(
        writer.handle(.stored(number: 3, sequence: 12), at: time(1)) == .stored(sequence: 12))
      #expect(writer.isIdle && writer.last == 12 && writer.deadline == nil)
    }
  }

  @Test func aRefusalIsDoubtAndNoVerdict() {
    var writer = writing()
    #expect(writer.handle(.refused(number: 2), at: time(1)) == nil)
    #expect(writer.handle(.refused(number: 3), at: time(1)) == .ask(question: 1))
    #expect(writer.handle(.refused(number: 3), at: time(2)) == nil)
  }

  @Test func whatIsReadBackDecides() {
    // It is there.
    var writer = doubtful()
    let found = SubjectWriter.Event.found(question: 1, sequence: 11, mine)
    #expect(writer.handle(found, at: time(1001)) == .stored(sequence: 11))
    // It is not: the same again, and not at once.
    writer = doubtful()
    #expect(writer.handle(.found(question: 1, sequence: 10, earlier), at: time(1001)) == nil)
    #expect(writer.deadline == time(1101))
    #expect(writer.handle(.tick, at: time(1101)) == .publish(message, after: 10))
    // Somebody else is.
    writer = doubtful()
    #expect(
      writer.handle(.found(question: 1, sequence: 12, other), at: time(1001)) == .lost(to: other))
    #expect(writer.isLost && writer.deadline == nil)
    #expect(writer.handle(.stored(number: 3, sequence: 11), at: time(1002)) == nil)
    #expect(writer.isLost)
    // Somebody is who is no relay.
    writer = doubtful()
    #expect(
      writer.handle(.found(question: 1, sequence: 12, nil), at: time(1001)) == .lost(to: nil))
  }

  @Test func anOldViewSaysNothing() {
    var writer = doubtful()
    #expect(writer.handle(.found(question: 0, sequence: 11, mine), at: time(1001)) == nil)
    for stamp in [earlier, before, nil] {
      writer = doubtful()
      #expect(writer.handle(.found(question: 1, sequence: 9, stamp), at: time(1001)) == nil)
      #expect(writer.handle(.tick, at: time(1101)) == .ask(question: 2))
    }
  }

  @Test func anOwnersFirstMessageComesBehindSomebodyElses() {
    var writer = doubtful()
    #expect(writer.handle(.found(question: 1, sequence: 10, before), at: time(1001)) == nil)
    #expect(writer.handle(.tick, at: time(1101)) == .publish(message, after: 10))
  }

  /// Reads that the last message was this one; returns the step after each of so many, and when.
  private func reads(
    _ count: Int, _ sequence: UInt64, _ stamp: Stamp?, by writer: inout SubjectWriter
  ) -> (steps: [SubjectWriter.Effect?], end: Int64) {
    var steps: [SubjectWriter.Effect?] = []
    var now: Int64 = 1000
    for question in 1...count {
      now += 100
      let found = SubjectWriter.Event.found(
        question: UInt64(question), sequence: sequence, stamp)
      #expect(writer.handle(found, at: time(now)) == nil)
      now += 100
      steps.append(writer.handle(.tick, at: time(now)))
    }
    return (steps, now)
  }

  @Test func anEngineThatHasLostMessagesGetsTheNextBehindWhatItHas() {
    for stamp in [earlier, before, nil] {
      var writer = doubtful()
      let (steps, end) = reads(SubjectWriter.shortReads, 7, stamp, by: &writer)
      let asked = (2...SubjectWriter.shortReads).map { number in
        SubjectWriter.Effect?.some(.ask(question: UInt64(number)))
      }
      #expect(Array(steps.dropLast()) == asked && steps.last == .publish(message, after: 7))
      #expect(writer.losses == 0)
      // Its sequences begin again.
      let stored = SubjectWriter.Event.stored(number: 3, sequence: 8)
      #expect(writer.handle(stored, at: time(end)) == .stored(sequence: 8))
      #expect(writer.last == 8 && writer.losses == 1)
      let next = SubjectWriter.Message(number: 4, bytes: [])
      #expect(writer.write(next, at: time(end)) == .publish(next, after: 8))
    }
  }

  @Test func anEngineThatHasThemAfterAllRefusesAndNothingIsLost() {
    var writer = doubtful()
    let count = SubjectWriter.shortReads
    let (_, end) = reads(count, 7, earlier, by: &writer)
    #expect(
      writer.handle(.refused(number: 3), at: time(end)) == .ask(question: UInt64(count) + 1))
    let found = SubjectWriter.Event.found(question: UInt64(count) + 1, sequence: 10, earlier)
    #expect(writer.handle(found, at: time(end)) == nil)
    #expect(writer.handle(.tick, at: time(end + 100)) == .publish(message, after: 10))
    let stored = SubjectWriter.Event.stored(number: 3, sequence: 11)
    #expect(writer.handle(stored, at: time(end + 101)) == .stored(sequence: 11))
    #expect(writer.losses == 0)
  }

  /// A server that has lost messages leads: it refuses what comes behind the last one, which the
  /// others have.
  @Test func aLeaderThatHasLostMessagesGetsTheNextBehindWhatItHas() {
    var writer = writing()
    var now: Int64 = 0
    for count in 1..<SubjectWriter.shortReads {
      #expect(
        writer.handle(.refused(number: 3, last: 7), at: time(now)) == .ask(question: UInt64(count)))
      let found = SubjectWriter.Event.found(question: UInt64(count), sequence: 10, earlier)
      #expect(writer.handle(found, at: time(now)) == nil)
      now += 100
      #expect(writer.handle(.tick, at: time(now)) == .publish(message, after: 10))
    }
    var other = writer
    let question = UInt64(SubjectWriter.shortReads)
    let found = SubjectWriter.Event.found(question: question, sequence: 10, earlier)
    _ = writer.handle(.refused(number: 3, last: 7), at: time(now))
    #expect(writer.handle(found, at: time(now)) == nil)
    #expect(writer.handle(.tick, at: time(now + 100)) == .publish(message, after: 7))
    let stored = SubjectWriter.Event.stored(number: 3, sequence: 11)
    #expect(writer.handle(stored, at: time(now + 101)) == .stored(sequence: 11))
    #expect(writer.losses == 1)
    // One that only does not answer has said nothing.
    #expect(other.handle(.tick, at: time(now + 1000)) == .ask(question: question))
    #expect(other.handle(found, at: time(now + 1001)) == nil)
    #expect(other.handle(.tick, at: time(now + 1101)) == .publish(message, after: 10))
    #expect(other.losses == 0)
  }

  /// Its answer was lost; the message stands where an older one of ours did.
  @Test func whatWasStoredAfterALossIsKnownWhereverItIs() {
    var writer = doubtful()
    let (_, end) = reads(SubjectWriter.shortReads, 7, earlier, by: &writer)
    let question = UInt64(SubjectWriter.shortReads) + 1
    #expect(writer.handle(.tick, at: time(end + 1000)) == .ask(question: question))
    let found = SubjectWriter.Event.found(question: question, sequence: 8, mine)
    #expect(writer.handle(found, at: time(end + 1001)) == .stored(sequence: 8))
    #expect(writer.losses == 1)
  }

  /// Another node may have claimed the stripe behind what the engine still had.
  @Test func alsoAfterALossALaterOwnerIsTheOwner() {
    var writer = doubtful()
    #expect(
      writer.handle(.found(question: 1, sequence: 8, other), at: time(1001)) == .lost(to: other))
  }

  @Test func aQuestionWithoutAnAnswerIsAskedAgain() {
    var writer = doubtful()
    #expect(writer.handle(.tick, at: time(1999)) == nil)
    #expect(writer.handle(.tick, at: time(2000)) == .ask(question: 2))
  }
}

/// When others may take over, and up to when one may rely on that they do not.
@Suite("Lease") struct LeaseKeeperTests {
  private func time(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

  @Test func itIsHeldFromBeforeItWasWritten() {
    var lease = LeaseKeeper(subject: SubjectWriter(run: 1, last: 0), length: .seconds(3))
    // The first is due at once, however long the lease.
    #expect(lease.deadline.map { $0 <= time(1) } == true)
    #expect(
      lease.tick(at: time(5000)) { [UInt8($0)] } == .publish(.init(number: 1, bytes: [1]), after: 0)
    )
    #expect(lease.heldUntil < time(5000))
    #expect(
      lease.handle(.stored(number: 1, sequence: 7), at: time(5600)) == .stored(sequence: 7))
    #expect(lease.heldUntil == time(8000))
    #expect(lease.deadline == time(6000))
    #expect(
      lease.tick(at: time(6000)) { [UInt8($0)] } == .publish(.init(number: 2, bytes: [2]), after: 7)
    )
  }
}
