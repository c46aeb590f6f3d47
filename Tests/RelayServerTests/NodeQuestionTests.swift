import Primitives
import RelayCluster
import RelayCore
import RelayFaults
import RelayRecording
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
    filter.since = moment
    return filter
  }

  private static func questions() throws -> [NodeQuestion] {
    let token = try #require(DeviceToken(hexadecimal: "beef"))
    let id = UniqueID(high: 1, low: 2)
    return [
      .report(device), .credential(device), .administer(device, .refillBudget(nil)),
      .reports([device]),
      .devices(matching: "a", after: .init(loop: 1, place: 2), limit: 3),
      .devices(matching: "", after: nil, limit: 1), .app(token), .changes(device), .reset(nil),
      .reset(Topic("com.example.app")), .heads(filter(), limit: 9), .steps([id]), .note(id),
      .refusals(limit: 5), .counters, .standing, .feed(since: nil), .feed(since: 12),
    ]
  }

  @Test func questionsComeBack() throws {
    for question in try Self.questions() {
      let bytes = Self.bytes(question)
      var reader = ByteReader(bytes)
      let read = try reader.read(NodeQuestion.self)
      #expect("\(read)" == "\(question)" && reader.isAtEnd)
    }
    var reader = ByteReader([99])
    #expect(throws: CodecError.self) { _ = try reader.read(NodeQuestion.self) }
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
  }

  @Test func partitionsAreCountedByWhoseTheirStripeIs() {
    var status = ClusterStatus([], [.nobody, .moving, .nobody], partitionCount: 8)
    status.node = "a"
    status.stripes[0].node = "a"
    let metrics = ClusterMetrics(
      status, leaseLeft: .seconds(2), lags: [:], hops: .init(), moves: .init())
    #expect(metrics.stripes == ["own": 1, "moving": 1, "unowned": 1])
    #expect(metrics.partitions == ["own": 3, "moving": 3, "unowned": 2])
  }
}
