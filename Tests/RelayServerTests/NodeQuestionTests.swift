import AdminAPI
import Primitives
import RelayCluster
import RelayCore
import RelayFaults
import RelayRecording
import RelayRequests
import Testing

@testable import RelayServer

/// What nodes ask each other for people, as bytes and back.
@Suite struct NodeQuestionTests {
  private static let device = DeviceID(UniqueID(high: 7, low: 8))
  private static let moment = Instant(milliseconds: 1_795_000_000_000)

  private static func bytes(_ value: some BinaryCodable) -> [UInt8] {
    var writer = ByteWriter()
    writer.put(value)
    return writer.bytes
  }

  private static func filter() -> Relay.LifeFilter {
    var filter = Relay.LifeFilter()
    (filter.device, filter.topic, filter.kind) = (device, "com.example.app", .silent)
    (filter.since, filter.step) = (moment, "held")
    return filter
  }

  private static let position = Relay.DevicePosition(loop: 1, place: DeviceNumber(2))

  /// Numbers and arguments are part of what nodes of two versions say to each other.
  @Test func questionsStandOnTheWireAsEver() throws {
    let id = Array(Self.bytes(Self.device))
    #expect(NodeQuestions.report.bytes(Self.device) == [19] + id)
    #expect(
      NodeQuestions.administer.bytes(Pair(Self.device, .refillBudget(nil)))
        == [3] + id + Self.bytes(AdminAction.refillBudget(nil)))
    #expect(
      NodeQuestions.devices.bytes(.init(text: "a", position: Self.position, limit: 3))
        == [20, 1, 97, 1, 2, 4, 6])
    #expect(NodeQuestions.counters.bytes(Nothing()) == [12])
    #expect(NodeQuestions.feed.bytes(12) == [13, 1, 12])
    #expect(NodeQuestions.clock.bytes(.fire) == [27, 2])
    #expect(
      NodeQuestions.heads.bytes(Pair(Self.filter(), 9)) == [28] + Self.bytes(Self.filter()) + [18])
  }

  /// Of two with one number, one would never be answered.
  @Test func eachQuestionHasANumberOfItsOwn() {
    #expect(Set(NodeQuestions.all.map(\.number)).count == NodeQuestions.all.count)
  }

  @Test func argumentsComeBack() throws {
    func comesBack<Value: BinaryCodable>(_ value: Value) throws -> Bool {
      var reader = ByteReader(Self.bytes(value))
      return "\(try reader.read(Value.self))" == "\(value)" && reader.isAtEnd
    }
    #expect(try comesBack(Pair(Self.filter(), 9)))
    #expect(try comesBack(DeviceSearch(text: "", position: nil, limit: 1)))
    #expect(try comesBack(DeviceSearch(text: "a", position: Self.position, limit: 3)))
    #expect(try comesBack(Nothing()))
  }

  @Test func stepsOfTheClockComeBack() throws {
    for step: ClockStep in [
      .look(at: Self.moment), .fire, .stand, .halt, .peek, .touch(Self.device),
    ] {
      var reader = ByteReader(Self.bytes(step))
      #expect("\(try reader.read(ClockStep.self))" == "\(step)" && reader.isAtEnd)
    }
    var state = ClockState()
    for next: (Instant, VirtualClock.Kind)? in [nil, (Self.moment, .keepAlive)] {
      (state.sent, state.waitingFor, state.next) = (7, ["hops"], next)
      (state.phones, state.rate) = (2, 0.5)
      var reader = ByteReader(Self.bytes(state))
      #expect("\(try reader.read(ClockState.self))" == "\(state)" && reader.isAtEnd)
    }
  }

  /// Of all nodes together: what is earliest, and whoever is not done.
  @Test func statesOfTheClockAddUp() {
    var (one, other) = (ClockState(), ClockState())
    (one.sent, one.next, one.rate) = (3, (Self.moment, .refill), 60)
    (other.sent, other.waitingFor, other.phones) = (4, ["journal"], 2)
    other.next = (Self.moment - .seconds(1), .phone)
    #expect(one.isQuiet && !other.isQuiet)
    one.add(other)
    #expect(one.sent == 7 && one.waitingFor == ["journal"] && one.phones == 2 && one.rate == 60)
    #expect(one.next?.at == Self.moment - .seconds(1) && one.next?.kind == .phone)
  }

  /// For somebody who has gone nothing is searched.
  @Test(arguments: [true, false]) func aSearchEndsWithWhoAskedFor(it isGone: Bool) async throws {
    let source = RequestSource(
      .provider, peer: "127.0.0.1:4000", isEncrypted: true, .none, connection: 7)
    let request = SentRequest(
      at: Self.moment, UniqueID(high: 0, low: 1), RequestHead([], source), ordinal: 1,
      .push(try Self.notification(), warnings: CaseSet()), bodyBytes: 1)
    let (ends, _) = AsyncStream.makeStream(of: Never.self)
    let search = Task {
      if isGone { for await _ in ends {} }
      return await RequestWish(limit: 9).search(Array(repeating: request, count: 40))
    }
    if isGone { search.cancel() }
    #expect(await search.value.matching.count == (isGone ? 0 : 40))
  }

  @Test func requestsComeBack() throws {
    var match = RequestMatch()
    (match.id, match.topic, match.status) = (UniqueID(high: 1, low: 2), "a.b", 400)
    (match.pushType, match.reason, match.since) = ("alert", "BadTopic", Self.moment)
    match.tokens = [try #require(DeviceToken(hexadecimal: String(repeating: "ab", count: 32)))]
    match.headers = [("a", "b"), ("c", "")]
    match.payload = [#"a\.b={"x":[1]}"#, "c~d", "e"].map { PayloadCondition($0) }
    let wish = RequestWish(match: match, limit: 3, orNearest: true)
    var reader = ByteReader(Self.bytes(wish))
    let read = try reader.read(RequestWish.self)
    #expect(reader.isAtEnd && read.limit == 3 && read.orNearest)
    #expect(read.match.payload.map(\.text) == match.payload.map(\.text))
    #expect(Self.bytes(read) == Self.bytes(wish))
    for proof: RequestSource.Proof in [.none, .token(team: "T", keyID: "K"), .certificate("c")] {
      for content: SentRequest.Content in [
        .push(try Self.notification(), warnings: CaseSet(PayloadWarning.mismatch)),
        .unusable(body: [1, 2]),
      ] {
        for outcome: SentRequest.Answer.Outcome in [
          .push(.rejected(.badTopic)), .push(.accepted(uniqueID: UniqueID(high: 5, low: 6))),
          .channel(201, nil), .channel(503, .serviceUnavailable),
        ] {
          var reader = ByteReader(Self.bytes(outcome))
          #expect(try reader.read(SentRequest.Answer.Outcome.self) == outcome && reader.isAtEnd)
        }
        let source = RequestSource(
          .binary, peer: "[::1]:9", isEncrypted: true, proof, service: .sandbox, connection: 4)
        let sent = SentRequest(
          at: Self.moment, UniqueID(high: 1, low: 2),
          RequestHead(Array(":path: \nx: y\n".utf8), source), ordinal: 5, content, bodyBytes: 17,
          SentRequest.Answer(.push(.rejected(.badTopic)), after: .milliseconds(2)))
        var reader = ByteReader(Self.bytes(sent))
        let back = try reader.read(SentRequest.self)
        #expect(RequestStatus(back) == RequestStatus(sent) && reader.isAtEnd)
        #expect(back.source.service == .sandbox)
      }
    }
  }

  private static func notification() throws -> Notification {
    Notification(
      uniqueID: UniqueID(high: 1, low: 2), apnsID: UniqueID(high: 3, low: 4),
      token: try #require(DeviceToken(hexadecimal: String(repeating: "ab", count: 32))),
      topic: try #require(Topic("com.example.app")), notificationClass: .visible,
      pushType: .alert, priority: .immediate, wakesApp: false, collapseID: [1],
      expiration: .at(moment), payload: Array(#"{"aps":{"badge":2}}"#.utf8))
  }

  @Test func feedsComeBack() throws {
    var change = DeviceChange(at: Self.moment, device: Self.device, what: .budget)
    change.remaining = 2
    let id = UniqueID(high: 1, low: 2)
    let event = DeliveryEvent(at: Self.moment, uniqueID: id, step: .delivered)
    let hit = FaultHit(at: Self.moment, name: "flaky", place: .delivery, action: "drop")
    let page = NodeFeedPage(
      items: [.life(event), .device(change), .fault(hit), .gap(dropped: 4, at: Self.moment)],
      next: 77, dropped: 3, counters: ShardCounters())
    var reader = ByteReader(Self.bytes(page))
    let read = try reader.read(NodeFeedPage.self)
    #expect("\(read)" == "\(page)" && reader.isAtEnd)
  }

  @Test func whatIsKnownOfAPushComesBack() throws {
    let text = Array("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".utf8)
    let warning = try #require(PayloadWarning.allCases.last)
    let note = PushNote(CaseSet(warning), traceParent: TraceParent(text.span))
    var reader = ByteReader(Self.bytes(note))
    let read = try reader.read(PushNote.self)
    #expect(read.warnings == note.warnings && read.traceParent == note.traceParent)
    #expect(read.traceParent != nil)
    // A note of a newer node is left out.
    var bytes = Self.bytes(PushNote(CaseSet(warning)))
    let place = try #require(bytes.lastIndex(of: warning.rawValue))
    bytes[place] = 200
    reader = ByteReader(bytes)
    #expect(try reader.read(PushNote.self).warnings.isEmpty && reader.isAtEnd)
  }

  @Test func partitionsAreCountedByWhoseTheirStripeIs() {
    var status = ClusterStatus([], [.nobody, .moving, .nobody], partitionCount: 8, form: 5)
    status.node = "a"
    status.stripes[0].node = "a"
    func counts(_ weight: (ClusterStatus.Stripe) -> Int) -> [String: Int] {
      Dictionary(uniqueKeysWithValues: status.count(weight)).filter { $0.value > 0 }
    }
    #expect(counts { _ in 1 } == ["own": 1, "moving": 1, "unowned": 1])
    #expect(
      counts { status.partitionCount(of: $0.stripe) } == ["own": 3, "moving": 3, "unowned": 2])
  }
}
