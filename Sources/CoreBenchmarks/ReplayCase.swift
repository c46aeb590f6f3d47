import Primitives
import RelayCore
import RelayRecording

/// Mixed traffic, recorded without payloads and replayed, about `count` events in all. Half of the
/// devices connect, disconnect, report their state, and acknowledge most pushes; a quarter of the
/// pushes is silent.
func measureReplay(_ payload: [UInt8], _ count: Int) throws(CommandError) -> Measurement {
  let (bytes, events) = try recordedTraffic(payload, pushes: min(count, 50_000))
  var measured = try measure(max(1, count / events)) { _ throws(CommandError) in
    guard let summary = replay(bytes), summary.differences.isEmpty else {
      throw .refused("what was recorded")
    }
    return UInt64(summary.events)
  }
  // For each event, not for each round; the caller divides by `count`.
  measured.nanoseconds = measured.nanoseconds * Int64(count) / Int64(max(1, measured.sum))
  return measured
}

private func replay(_ bytes: [UInt8]) -> Replay.Summary? {
  do throws(RecordingReader.ReadingError) {
    var replay = Replay(try RecordingReader(bytes))
    try replay.run()
    return replay.summary
  } catch {
    return nil
  }
}

private func recordedTraffic(
  _ payload: [UInt8], pushes count: Int
) throws(CommandError) -> (bytes: [UInt8], events: Int) {
  var relay = try Relay()
  let writer = RecordingWriter(shard: 0, redactor: Redactor(key: (1, 2), payloads: .none))
  let header = RecordingHeader(
    build: "core-benchmarks", payloads: .none, shardCount: 1, began: relay.now
  ).fileHead
  let state = RecordedState(0, relay.shard)
    .frame(Redactor(key: (1, 2), payloads: .none))
  relay.recorder = writer
  relay.isKept = true
  let pushes = [try Pushes(payload), try Pushes(payload, .silent)]
  var random = SeededRandom(seed: 1)
  for index in 0..<count {
    relay.handle(
      .submitted(
        pushes[random.below(4) == 0 ? 1 : 0].push(index, at: relay.now),
        from: Pushes.request(index)))
    if index % 7 == 0 { change(Int(random.below(Int64(deviceCount / 2))), &relay, &random) }
    guard index % batch == batch - 1 else { continue }
    relay.perform()
    relay.now.milliseconds += 1 + random.below(200)
    relay.acknowledge(most: &random)
    relay.tick()
  }
  relay.perform()
  relay.collectChunk()
  let bytes = header + state + relay.frames + RecordingEnd.stopped.frame
  return (bytes, relay.events)
}

private func change(_ device: Int, _ relay: inout Relay, _ random: inout SeededRandom) {
  let connection = ConnectionID(loop: 0, connection: 2, stream: Int32(device * 2 + 1))
  switch random.below(4) {
  case 0: relay.handle(.stream(connection, .disconnected))
  case 1: relay.handle(.asked(.connected, Relay.credential(device), from: connection))
  case 2:
    let power: Power = random.below(2) == 0 ? .battery : .charging
    relay.handle(
      .stream(connection, .reported(ConditionReport(power: power, network: .wifi, screen: .off))))
  default: relay.handle(.stream(connection, .keptAlive))
  }
}
