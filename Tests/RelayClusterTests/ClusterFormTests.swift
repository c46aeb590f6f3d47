import Foundation
import Primitives
import RelayCore
import RelayRecording
import RelayStore
import Testing

@testable import RelayCluster

@Suite("ClusterForm") struct ClusterFormTests {
  private static let first = ClusterForm.first
  private static let next = first + 1

  // MARK: Numbers

  @Test func theFirstFormHadNumbersOfItsOwn() {
    for place: UInt8 in [1, 4, Self.first] {
      #expect(ClusterForm.number(of: Self.first, first: place) == place)
      #expect(ClusterForm.form(place, first: place) == Self.first)
      for form in Self.next...Self.next + 3 {
        #expect(ClusterForm.number(of: form, first: place) == form)
        #expect(ClusterForm.form(form, first: place) == form)
      }
      for number in 0..<Self.first where number != place {
        #expect(ClusterForm.form(number, first: place) == nil)
      }
    }
  }

  @Test func aVersionReadsItsFormAndTheOneBefore() {
    for (lead, range) in [
      Self.first...Self.first, Self.first...Self.next, Self.next...Self.next + 1,
    ]
    .enumerated() {
      #expect(ClusterForm.$lead.withValue(UInt8(lead)) { ClusterForm.readable } == range)
    }
  }

  // MARK: Messages

  private static func isRead(_ lead: UInt8, _ read: () throws -> Bool) -> Bool {
    ClusterForm.$lead.withValue(lead) { (try? read()) == true }
  }

  /// A stripe's message and a hop of each form, and who reads them, by how far ahead they are.
  @Test func whatIsWrittenInAFormIsReadInIt() throws {
    let entries = StripeMessageTests.entries
    for (form, readers) in [(Self.first, [0, 1]), (Self.next, [1, 2])] {
      let message = StripeMessageTests.message(entries, form: form)
      let hop = HopTests.bytes(HopTests.items, form: form)
      for lead: UInt8 in 0...3 {
        let isReader = readers.contains(Int(lead))
        let stripe = Self.isRead(lead) { try StripeMessage(message.bytes) == message }
        let items = Self.isRead(lead) { try HopMessage(hop).items == HopTests.items }
        let stamp = Self.isRead(lead) { Stamp(ofMessage: message.bytes) == message.head.stamp }
        #expect([stripe, items, stamp].allSatisfy { $0 == isReader }, "\(form), \(lead) ahead")
      }
    }
    // The next form has more, and not only another number in front.
    let sizes = [Self.first, Self.next].map {
      StripeMessageTests.message(entries, form: $0).bytes.count
    }
    #expect(sizes[0] < sizes[1])
  }

  private struct Grown: Composite, Equatable {
    var old: UInt8
    var new: UInt64 = 9

    static let fields = Fields(Self.init(old:)) { $0.old }.and(since: 7, \.new)

    init(old: UInt8) { self.old = old }
  }

  @Test func aFieldThatCameLaterIsLeftOut() throws {
    var value = Grown(old: 1)
    value.new = 2
    for (form, bytes, new) in [
      (UInt8(6), [UInt8(1)], UInt64(9)), (7, [1, 2], 2), (.max, [1, 2], 2),
    ] {
      var writer = ByteWriter(form: form)
      writer.put(value)
      #expect(writer.bytes == bytes)
      var reader = ByteReader(bytes, form: form)
      let read: Grown = try reader.read()
      #expect(read.old == 1 && read.new == new && reader.isAtEnd)
    }
  }

  // MARK: Who agrees

  private static func time(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

  private static func key(_ number: UInt16, reads form: UInt8, revision: UInt64) -> Membership.Key {
    var report = NodeReport(number: number, loopCount: 1)
    report.form = form
    return .init(
      revision: revision, stamp: Stamp(node: "\(number)", run: UInt64(number)), report: report)
  }

  /// The form of a node that is a form ahead, beside others.
  private static func next(
    _ forms: [UInt8], at now: Int64, _ membership: inout Membership
  ) -> UInt8? {
    let keys = forms.enumerated().map {
      key(UInt16($0 + 1), reads: $1, revision: UInt64(now) * 10 + UInt64($1))
    }
    return ClusterForm.$lead.withValue(1) {
      membership.observe(keys, at: time(now))
      return membership.nextForm(after: first, at: time(now))
    }
  }

  @Test func theFormRisesWhenAllHaveReadItForALease() {
    var membership = Membership(length: .milliseconds(1000))
    let (old, new) = (Self.first, Self.next)
    #expect(Self.next([old, new], at: 400, &membership) == nil)
    #expect(Self.next([new, new], at: 800, &membership) == nil)
    // One that was ended comes back, as it was, before anything has happened.
    #expect(Self.next([new, old], at: 1600, &membership) == nil)
    #expect(Self.next([new, new], at: 2000, &membership) == nil)
    #expect(Self.next([new, new], at: 2999, &membership) == nil)
    #expect(Self.next([new, new], at: 3000, &membership) == new)
    // This one does not know a newer one.
    let further = ClusterForm.$lead.withValue(1) {
      membership.nextForm(after: new, at: Self.time(9000))
    }
    #expect(further == nil)
  }

  @Test func aNodeThatIsGoneMayComeBackAsItWas() {
    var membership = Membership(length: .milliseconds(1000))
    let old = Self.key(2, reads: Self.first, revision: 1)
    func next(_ keys: [Membership.Key], at now: Int64) -> UInt8? {
      ClusterForm.$lead.withValue(1) {
        membership.observe(keys, at: Self.time(now))
        return membership.nextForm(after: Self.first, at: Self.time(now))
      }
    }
    for now in stride(from: Int64(0), to: 9000, by: 400) { #expect(next([old], at: now) == nil) }
    #expect(membership.alive(at: Self.time(8800)).isEmpty)
    // It is taken off the list.
    #expect(next([], at: 9000) == nil && next([], at: 10_000) == Self.next)
    // So may one whose key cannot be read.
    let strange = Membership.Key(
      revision: 9, stamp: Stamp(node: "2", run: 0), report: .unreadable)
    #expect(next([strange], at: 10_400) == nil && next([strange], at: 12_000) == nil)
  }

  // MARK: Stripes

  /// A stripe of the form before is written again as a whole, once, though nobody writes on it.
  @Test func aStripeIsWrittenAgainInTheNextForm() throws {
    try ClusterForm.$lead.withValue(1) {
      var contents = StripeContents(empty: StripeState(feedbackLimit: 10))
      try contents.read(StripeMessageTests.message([], form: Self.first).bytes, at: 3)
      let stamp = Stamp(node: "a", run: 1, epoch: 3)
      var writer = StripeWriter(stamp: stamp, contents: contents)
      var sequence: UInt64 = 3
      /// The engine takes all that it is given; the forms of that, a snapshot's doubled.
      func settle(_ effects: [StripeWriter.Effect], at now: Int64) throws -> [UInt8] {
        var (effects, forms) = (effects, [UInt8]())
        if effects.isEmpty {
          writer.handle(.tick, at: Self.time(now), wall: Self.time(now), into: &effects)
        }
        while !effects.isEmpty {
          switch effects.removeFirst() {
          case .subject(.publish(let message, _)):
            let head = try StripeMessage(message.bytes).head
            sequence += 1
            forms.append(head.kind == .batch ? head.form : head.form * 2)
            writer.handle(
              .stored(number: message.number, sequence: sequence), at: Self.time(now),
              wall: Self.time(now), into: &effects)
          case .snapshot(let state, let number, let bytes):
            writer.write(state.snapshot(messageBytes: bytes), of: number)
            writer.handle(.tick, at: Self.time(now), wall: Self.time(now), into: &effects)
          case .settled, .written, .purge, .rewritten, .subject: break
          }
        }
        return forms
      }
      #expect(
        try settle(writer.claim(at: Self.time(0), wall: Self.time(0)), at: 0) == [Self.first])
      #expect(writer.deadline == nil && writer.contents.form == Self.first)
      writer.form = Self.next
      #expect(try settle([], at: 10) == [Self.next, Self.next * 2])
      #expect(writer.deadline == nil && writer.contents.form == Self.next)
    }
  }
}

/// What a version has written is read by the next one.
@Suite("Fixtures of forms") struct FormFixtureTests {
  private struct Sample: Sendable {
    var name: String
    var bytes: [UInt8]
    var isRead: @Sendable ([UInt8]) throws -> Bool
  }

  /// As in the bucket, behind its form's number.
  private static func value<Value: BinaryCodable & Equatable & Sendable>(
    _ name: String, _ value: Value
  ) -> Sample {
    var writer = ByteWriter(form: ClusterForm.first)
    writer.putForm(first: 1)
    writer.put(value)
    return Sample(name: name, bytes: writer.bytes) { bytes in
      var reader = ByteReader(bytes)
      try reader.readForm(first: 1)
      return try reader.read(Value.self) == value && reader.isAtEnd
    }
  }

  /// Between nodes, without a number in front.
  private static func spoken<Value: BinaryCodable & Equatable & Sendable>(
    _ name: String, _ value: Value
  ) -> Sample {
    var writer = ByteWriter(form: ClusterForm.first)
    writer.put(value)
    return Sample(name: name, bytes: writer.bytes) { bytes in
      var reader = ByteReader(bytes, form: ClusterForm.first)
      return try reader.read(Value.self) == value && reader.isAtEnd
    }
  }

  private static let stripe = StripeMessageTests.message(
    StripeMessageTests.entries + StripeMessageTests.later)
  private static let now = Instant(milliseconds: 1_795_000_000_000)

  private static let samples: [Sample] = {
    let hops = HopTests.bytes(HopTests.items, form: ClusterForm.first)
    let key = StoredProviderKey(
      keyID: "K", teamID: "T", topics: ["a.b"], environment: "sandbox", relatedKeyID: nil,
      publicKey: "PEM")
    let budgets = SilentBudgets(.documented, at: now)
    let questions: [ClusterQuestion] = [
      .feedback(after: -1, limit: 7), .owned([Make.token(1)]), .relay([1, 2]), .knows(300),
      .place(ChannelPlace(number: 3, revision: 0, stored: Make.stored(newest: 4))),
      .broadcast(Make.broadcast(5)),
    ]
    let listing = ListingPart(
      items: [.init(position: 5, token: Make.token(1), topic: Make.topic, at: now)], end: 9)
    return [
      Sample(name: "stripe", bytes: stripe.bytes) { try StripeMessage($0) == stripe },
      Sample(name: "hop", bytes: hops) { bytes in
        let message = try HopMessage(bytes)
        return message.head == HopTests.head && message.items == HopTests.items
      },
      spoken("questions", questions), spoken("listing", listing), value("runs", UInt64(300)),
      value("lease", Interval.seconds(3)), value("cursor", Int64(-5)), value("authorities", "PEM"),
      value("budgets", SharedBudgets(budgets: budgets, changedAt: now)), value("keys", [key]),
      value("names", [DeviceName(device: Make.device(1), name: "é")]),
      value(
        "channel", ChannelPlace(number: 3, revision: 0, stored: Make.stored(newest: 4))),
    ]
  }()

  @Test func whatWasWrittenInTheFirstFormIsRead() throws {
    let path = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Fixtures/form-5.hex")
    func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }
    if ProcessInfo.processInfo.environment["RELAY_TEST_FIXTURE"] == "write" {
      let text = Self.samples.map { "\($0.name) \(hex($0.bytes))\n" }.joined()
      try text.write(to: path, atomically: true, encoding: .utf8)
    }
    let lines = try String(contentsOf: path, encoding: .utf8).split(separator: "\n")
    #expect(lines.count == Self.samples.count)
    for (line, sample) in zip(lines, Self.samples) {
      let parts = line.split(separator: " ")
      let digits = Array(parts[1])
      let bytes = try stride(from: 0, to: digits.count, by: 2).map {
        try #require(UInt8(String(digits[$0...$0 + 1]), radix: 16))
      }
      #expect(parts[0] == sample.name)
      // As long as it is written it is written like this.
      #expect(sample.bytes == bytes, "\(sample.name)")
      for lead: UInt8 in [0, 1] {
        let isRead = try ClusterForm.$lead.withValue(lead) { try sample.isRead(bytes) }
        #expect(isRead, "\(sample.name), \(lead) ahead")
      }
    }
  }
}
