import Primitives
import RelayCore
import Testing

@testable import RelayCluster

/// What came over an alias: on its device's stripe, with its device, in the order of acceptance,
/// and until it is forgotten.
@Suite("Forwarded notifications") struct ForwardedTests {
  private static func time(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }
  private static let empty = StripeState(feedbackLimit: 64)

  private struct Scene {
    var state = ForwardedTests.empty
    var sequence: UInt64 = 0

    /// - Parameter contents: with the numbers of their records.
    mutating func add(_ contents: (UInt64, JournalRecord.Content)...) {
      add(contents.map { .record(JournalRecord(sequence: $0, content: $1)) })
    }

    mutating func add(_ entries: [JournalEntry], at place: UInt64? = nil) {
      sequence = place ?? sequence + 1
      let head = StripeMessage.Head(
        form: ClusterForm.first, stamp: Stamp(node: "a", run: 1), writtenAt: time(9))
      state.apply(StripeMessage(head: head, entries: entries), at: sequence)
    }
  }

  private static func records(_ states: StripeState...) -> [RestoredRecord] {
    var records: [RestoredRecord] = []
    StripeState.replay(states) { records.append($0) }
    return records
  }

  /// Of the notifications, as they are replayed.
  private static func sequences(_ states: StripeState...) -> [UInt64] {
    var sequences: [UInt64] = []
    StripeState.replay(states) { record in
      switch record {
      case .notification(_, let sequence, _), .forwarded(_, _, let sequence, _):
        sequences.append(sequence)
      case .device, .app, .alias, .gone, .spent, .subscription: break
      }
    }
    return sequences
  }

  private let device = Make.device(1)
  private let topic = Make.topic
  private let token = Make.token(8)

  private func push(_ number: UInt64, to device: DeviceID) -> JournalRecord.Content {
    .forwarded(Make.notification(number, token: 8), to: device, at: Self.time(4))
  }

  @Test func itComesBackWithItsDevice() {
    var scene = Scene()
    scene.add((1, .enrolled(device, Make.secret)))
    scene.add((2, .registered(device, topic, token, isOwn: true)), (3, push(1, to: device)))
    let expected: [RestoredRecord] = [
      .device(device, Make.secret, budget: .init()),
      .app(device, topic, token, isOwn: true, budget: .init()),
      .forwarded(
        Make.notification(1, token: 8), to: device, sequence: 3, acceptedAt: Self.time(4)),
    ]
    #expect(Self.records(scene.state) == expected)
    // And out of a snapshot, read as it was written.
    var entries: [JournalEntry] = []
    scene.state.snapshot { entries.append($0) }
    var copy = Scene()
    copy.add(entries)
    #expect(Self.records(copy.state) == expected)
    copy.add([.forgotten([3])])
    #expect(Self.records(copy.state) == Array(expected.dropLast()))
    #expect(copy.state.sequences.isEmpty)
  }

  /// A removal may have failed, in spite of its record: then the app is recorded again, and has
  /// what it had.
  @Test func itStaysWhateverBecomesOfItsApp() {
    let ends: [JournalRecord.Content] = [
      .unregistered(device, topic, token, at: Self.time(5)),
      .registered(device, topic, Make.token(9), isOwn: true),
      .registered(device, topic, token, isOwn: true),
    ]
    for end in ends {
      var scene = Scene()
      scene.add((1, .registered(device, topic, token, isOwn: true)), (2, push(1, to: device)))
      scene.add((3, end))
      scene.add((4, .registered(device, topic, token, isOwn: true)))
      #expect(Self.sequences(scene.state) == [2], "\(end)")
      scene.add([.forgotten([2])])
      #expect(scene.state.sequences.isEmpty)
    }
  }

  // MARK: Order

  /// Each run begins where it likes: by the sequences, what came last would come first.
  @Test func theOrderIsThatOfTheStreamAndNotOfTheSequences() {
    var (first, second) = (Scene(), Scene())
    func content(_ number: UInt64) -> JournalRecord.Content {
      .accepted(Make.notification(number, token: number), at: Self.time(1))
    }
    func records(_ numbers: [UInt64]) -> [JournalEntry] {
      numbers.map { .record(JournalRecord(sequence: $0, content: content($0))) }
    }
    first.add(records([900, 3, 901]), at: 10)
    second.add(records([500]), at: 11)
    first.add(records([2, 1]), at: 12)
    second.add(records([7, 600]), at: 13)
    let expected: [UInt64] = [900, 3, 901, 500, 2, 1, 7, 600]
    #expect(Self.sequences(first.state, second.state) == expected)
    #expect(Self.sequences(second.state, first.state) == expected)
    // What a snapshot stands for keeps its order, and comes before what is behind it.
    var entries: [JournalEntry] = []
    first.state.snapshot { entries.append($0) }
    var copy = Scene()
    copy.add(Array(entries.prefix(2)), at: 20)
    copy.add(Array(entries.dropFirst(2)), at: 21)
    copy.add(records([4]), at: 22)
    #expect(Self.sequences(copy.state) == [900, 3, 901, 2, 1, 4])
  }

  // MARK: Where it is written

  /// A node whose engine takes all that it wants.
  private struct Node {
    var node: JournalNode
    private var sequence: UInt64 = 0
    /// Which stripe has which record.
    private(set) var stripes: [UInt64: Int] = [:]
    private(set) var forgotten: [UInt64: Int] = [:]

    init(stripes count: Int) {
      let stamp = Stamp(node: "a", run: 1, epoch: 1)
      let lease = LeaseKeeper(
        subject: SubjectWriter(run: 1, last: 0, first: 1), length: .seconds(3600))
      node = JournalNode(
        stamp: stamp, partitionCount: 16, stripeCount: count, lease: lease,
        report: NodeReport(number: 1, loopCount: 1))
      for stripe in 0..<count {
        let writer = StripeWriter(
          stamp: stamp, contents: StripeContents(empty: ForwardedTests.empty))
        let now = Instant(milliseconds: 2_000_000)
        node.claim(stripe, writer, at: now, wall: now)
      }
      run(at: 2_000_000)
    }

    mutating func run(at milliseconds: Int64) {
      let now = Instant(milliseconds: milliseconds)
      node.handle(.tick, at: now, wall: now)
      while true {
        let effects = node.handOver().effects
        guard !effects.isEmpty else { return }
        for case .publish(let target, let message, _) in effects {
          sequence += 1
          if case .stripe(let stripe) = target { note(message, on: stripe) }
          let event = SubjectWriter.Event.stored(number: message.number, sequence: sequence)
          node.handle(.subject(target, event), at: now, wall: now)
        }
      }
    }

    private mutating func note(_ message: SubjectWriter.Message, on stripe: Int) {
      for entry in (try? StripeMessage(message.bytes))?.entries ?? [] {
        switch entry {
        case .record(let record): stripes[record.sequence] = stripe
        case .forgotten(let sequences): for one in sequences { forgotten[one] = stripe }
        case .restored, .listed, .report: break
        }
      }
    }
  }

  @Test func itIsOnItsDevicesStripeAndForgottenThere() {
    let count = 8
    func stripe(_ key: UInt64) -> Int {
      Int(PartitionID(routingKey: key, count: 16).number) % count
    }
    var node = Node(stripes: count)
    var random = SeededRandom(seed: 5)
    var apart = 0
    for sequence in 1...100 as ClosedRange<UInt64> {
      let (token, device) = (random.next(), random.next())
      let now = Int64(2_000_000 + sequence)
      node.node.submit(
        shard: 0,
        records: [Make.forwarded(sequence, token: token, to: device, at: Self.time(now))],
        forgets: [], at: Self.time(now))
      node.run(at: now)
      #expect(node.stripes[sequence] == stripe(device))
      if stripe(token) != stripe(device) { apart += 1 }
      node.node.submit(shard: 0, records: [], forgets: [sequence], at: Self.time(now))
    }
    #expect(apart > 50)
    node.run(at: 2_100_000)
    #expect(node.forgotten == node.stripes && node.forgotten.count == 100)
    #expect(node.node.stripes.allSatisfy { $0?.contents.state.sequences.isEmpty ?? false })
  }
}
