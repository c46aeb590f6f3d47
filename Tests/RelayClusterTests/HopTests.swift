import Primitives
import RelayCore
import RelayRecording
import Testing

@testable import RelayCluster

@Suite("Hops") struct HopTests {
  private static let stream = StreamAddress(loop: 1, connection: 2, stream: 3, node: 4)
  private static let other = StreamAddress(loop: 0, connection: 9, stream: 5, node: 300)

  static let items: [HopItem] = [
    .event(
      .submitted(Make.notification(1, token: 2), from: stream), routingKey: .max,
      HopItem.Journey(since: Instant(milliseconds: 1_795_000_000_001))),
    .event(
      .submitted(Make.notification(2, token: 2), from: other), routingKey: 1,
      HopItem.Journey(lifetime: 0, since: Instant(milliseconds: 0))),
    .event(
      .asked(
        .connected, DeviceCredential(device: Make.device(1), secret: Make.secret), from: stream),
      routingKey: 7, HopItem.Journey(lifetime: 1, since: Instant(milliseconds: -1))),
    .effect(.respond(stream, .accepted(uniqueID: UniqueID(high: 1, low: 2)))),
    .effect(
      .send(
        other,
        Delivery(
          notification: Make.notification(2, token: 2), via: .connect,
          acceptedAt: Instant(milliseconds: 1), sentAt: Instant(milliseconds: 2)))),
    .effect(.close(stream, .moved)), .gone(other),
    .effect(.sendBroadcast(Make.broadcast(9), to: [stream, other])),
  ]

  static let head = HopHead(
    node: 4, loop: 1, number: 77, sentAt: Instant(milliseconds: 1_795_000_000_000))

  private func bytes(_ items: [HopItem]) -> [UInt8] {
    Self.bytes(items, form: ClusterForm.first)
  }

  static func bytes(_ items: [HopItem], form: UInt8) -> [UInt8] {
    var writer = ByteWriter(form: form)
    writer.put(Self.head)
    for item in items { writer.put(item) }
    return writer.bytes
  }

  @Test func whatIsSentArrives() throws {
    let message = try HopMessage(bytes(Self.items))
    #expect(message.head == Self.head)
    #expect(message.items == Self.items)
  }

  @Test func whatIsDamagedIsRefusedAndNeverTraps() {
    let bytes = bytes(Self.items)
    for end in 0..<bytes.count {
      if let cut = try? HopMessage(Array(bytes[..<end])) {
        #expect(cut.items == Array(Self.items.prefix(cut.items.count)))
      }
    }
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= 0x41
      _ = try? HopMessage(damaged)
    }
  }

  /// What concerns a whole shard is nobody else's to say.
  @Test(arguments: [
    Event.clock(.tick), .operated(.shutDown), .journal(.persisted(through: 1)),
    .journal(.persistFailed(through: 1)),
    .alias(.allConfirmed), .journal(.partitionDropped(PartitionID(1))),
    .operated(.checkpointSaved(1)), .broadcast(.ended(Make.channel)),
    .operated(.policyChanged(.documented, at: Instant(milliseconds: 1))),
  ]) func aShardsOwnEventsAreRefused(event: Event) {
    #expect(!event.mayHop)
    #expect(throws: CodecError.self) {
      try HopMessage(
        bytes([.event(event, routingKey: 0, HopItem.Journey(since: Instant(milliseconds: 1)))]))
    }
  }

  /// Longer than whoever has asked waits for an answer, nothing looks for its shard, over however
  /// many nodes: a removal that was refused, and asked for again, must not happen once more behind
  /// the registration that followed.
  @Test func aJourneyEndsBeforeItsAnswerIsGivenUp() {
    let start = Instant(milliseconds: 1000)
    let journey = HopItem.Journey(since: start)
    #expect(!journey.isOver(at: start) && !journey.isOver(at: start + .milliseconds(1999)))
    #expect(journey.isOver(at: start + .seconds(2)))
    // The clocks of nodes are a second apart at most.
    #expect(Limits.hopAge + .seconds(1) <= Limits.hopPatience)
  }

  @Test func aShardsOwnEffectsAreRefused() {
    for effect in [Effect.forget(1), .tell(routingKey: 1, .clock(.tick))] {
      #expect(throws: CodecError.self) { try HopMessage(bytes([.effect(effect)])) }
    }
  }

  @Test func aWindowHoldsSoMuchAndNoMore() {
    let start = Instant(milliseconds: 1000)
    var window = HopWindow(limitBytes: 100)
    #expect(window.send(bytes: 500, at: start) == 1, "one message always may")
    // The number of one that may not go is missing at the other end.
    #expect(window.send(bytes: 1, at: start) == nil)
    window.arrived(through: 1)
    #expect(window.outstandingBytes == 0)
    #expect(window.send(bytes: 60, at: start) == 3 && window.send(bytes: 40, at: start) == 4)
    #expect(window.send(bytes: 1, at: start) == nil)
    window.arrived(through: 3)
    #expect(window.outstandingBytes == 40 && window.send(bytes: 60, at: start) == 6)
    // Nothing is heard any more: what was on its way is given up.
    let later = start + HopWindow.patience
    #expect(window.send(bytes: 1, at: later + .milliseconds(-1)) == nil)
    #expect(window.send(bytes: 1, at: later) == 8 && window.outstandingBytes == 1)
    #expect(window.lostCount == 2)
    window.arrived(through: 6)
    #expect(window.outstandingBytes == 1)
  }

  /// Each start of a peer has a number of its own: however often it starts, one window is kept.
  @Test func windowsOfStartsThatAreOverAreLetGo() {
    var state = HopPort.State()
    var window = HopWindow(limitBytes: 100)
    _ = window.send(bytes: 60, at: Instant(milliseconds: 0))
    window.expire(at: Instant(milliseconds: 0) + HopWindow.patience)
    #expect(window.lostCount == 1)
    for start in UInt16(1)...1000 {
      for loop in UInt16(0)..<2 {
        state.windows[HopPort.Link(node: start, loop: loop, from: 0)] = window
      }
      state.keep([start])
      #expect(state.windows.count == 2)
    }
    #expect(state.statistics.lost == 999 * 2)
  }
}
