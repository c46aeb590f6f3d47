import Primitives
import RelayCore

/// Reports the longest turn of a checkpoint, the median of all rounds: how long a loop does nothing
/// else. Half of the devices are connected. A relay takes a turn for each of three steps: the
/// checkpoint; the first pushes after it, which copy what both share; the end of the checkpoint
/// before.
func measureCheckpoint(
  _ payload: [UInt8], devices: Int, pushes count: Int, _ rounds: Int
) throws(CommandError) -> Measurement {
  var relay = try Relay(devices: devices)
  relay.connect(devices / 2)
  let pushes = [
    try Pushes(payload, devices: devices), try Pushes(payload, .silent, devices: devices),
  ]
  for index in 0..<count {
    relay.handle(
      .submitted(
        pushes[index / devices % 2].push(index, at: relay.now), from: Pushes.request(index)))
    guard index % batch == batch - 1 else { continue }
    relay.perform()
    relay.acknowledge()
    relay.now.milliseconds += 1
  }
  relay.perform()
  relay.acknowledge()
  var longest: [Int64] = []
  func recordTurn(since start: ContinuousClock.Instant) {
    let (seconds, attoseconds) = start.duration(to: .now).components
    let nanoseconds = seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    longest[longest.count - 1] = max(longest[longest.count - 1], nanoseconds)
  }
  var lifeLog = relay.lifeLog
  var next = count
  for round in 0..<UInt32(min(rounds, 200)) {
    longest.append(0)
    var start = ContinuousClock.now
    relay.sum(UInt64(relay.shard.keptBytes))
    recordTurn(since: start)
    start = .now
    relay.handle(.operated(.checkpointSaved(round + 1)))
    lifeLog = relay.lifeLog
    for device in [0, devices - 1] {
      next += 1
      let push = pushes[next % 2].push(next / devices * devices + device, at: relay.now)
      relay.handle(.submitted(push, from: Pushes.request(next)))
      relay.perform()
    }
    relay.acknowledge()
    relay.tick()
    recordTurn(since: start)
    start = .now
    relay.handle(.operated(.checkpointDropped(round)))
    recordTurn(since: start)
    relay.now.milliseconds += 1
  }
  relay.sum(UInt64(lifeLog.keptBytes))
  let median = longest.sorted()[longest.count / 2]
  return Measurement(nanoseconds: median * Int64(rounds), sum: relay.sum)
}
