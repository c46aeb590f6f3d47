import NIOCore
import RelayCore

/// A partition on its way from the loop that holds it to another.
struct PartitionMove: Hashable, Sendable {
  var partition: PartitionID
  var destination: Int
}

/// What loops tell each other about a move, behind everything that they told before.
enum PartitionNotice: Sendable {
  /// To the holder: this loop sends nothing more for the partition.
  case parked(PartitionMove)
  /// From the new holder: it has the partition.
  case moved(PartitionMove)
}

/// What a loop keeps of a move that is under way.
struct Parking {
  /// Nothing is sent for this partition.
  var partition: PartitionID?
  /// What came for it meanwhile, in order, and whose it is.
  var events: [(event: Event, routingKey: UInt64)] = []
  /// Told when these events are on their way.
  var done: EventLoopPromise<Void>?
  /// Loops that have parked; counted by the holder.
  var parkedLoops = 0
  /// Where the partition goes that this loop's shard was asked for.
  var request: PartitionMove?
  /// What the shard has let go, until everything else of the batch is sent.
  var departure: PartitionState?
}

/// Partitions move between loops, without a loss and without anything overtaking anything.
///
/// ```
///   every loop            holder                      new holder            every loop
///   1 park ── parked ──▶  all have: 2 request
///                         (journal answers) handOver ──▶ 3 received
///                                                        moved ───────────▶ replay
/// ```
///
/// Messages between two loops arrive in order. So when all loops have parked, the holder has heard
/// everything that was sent to it for the partition; and what is replayed comes behind what the
/// state holds. One partition moves at a time (`LoopSet.move`).
extension ShardRunner {
  /// The first phase, on every loop.
  func park(_ move: PartitionMove, done: EventLoopPromise<Void>) {
    parking.partition = move.partition
    parking.done = done
    let holder = table[move.partition]
    if holder == Int(index) {
      countParked(move)
    } else {
      outboxes[holder].notice = .parked(move)
    }
    finishBatch()
  }

  func take(_ notice: PartitionNotice) {
    switch notice {
    case .parked(let move): countParked(move)
    case .moved(let move): replay(move)
    }
  }

  /// The second phase, on the holder: the shard lets go when the journal has nothing of it.
  private func countParked(_ move: PartitionMove) {
    parking.parkedLoops += 1
    guard parking.parkedLoops == peers.count else { return }
    parking.parkedLoops = 0
    parking.request = move
    decide(.partitionRequested(move.partition), at: now)
  }

  /// Sends what the shard has let go. After all other messages of the batch: what the new holder
  /// sends to a third loop must not come there before what this one sent.
  func sendDeparture() {
    guard let state = parking.departure, let move = parking.request else { return }
    parking.departure = nil
    parking.request = nil
    guard move.destination != PartitionTable.elsewhere else {
      let runner = peers[Int(index)].runner
      return eventLoop.execute { runner.value.discard(state, move) }
    }
    let runner = peers[move.destination].runner
    peers[move.destination].eventLoop.execute { runner.value.receive(state, move) }
  }

  /// The third phase: on the new holder, then on every loop.
  private func receive(_ state: PartitionState, _ move: PartitionMove) {
    decide(.partitionReceived(state), at: now)
    tellMoved(move)
  }

  private func tellMoved(_ move: PartitionMove) {
    for loop in outboxes.indices where loop != Int(index) { outboxes[loop].notice = .moved(move) }
    replay(move)
    finishBatch()
  }

  /// The third phase of a partition that leaves this node: whoever has it next reads it from the
  /// journal, and its phones connect anew.
  private func discard(_ state: PartitionState, _ move: PartitionMove) {
    for device in state.devices {
      if let connection = device.connection { queue.effects.append(.close(connection, .moved)) }
    }
    tellMoved(move)
  }

  private func replay(_ move: PartitionMove) {
    table[move.partition] = move.destination
    parking.partition = nil
    let events = parking.events
    parking.events = []
    let now = now
    for (event, key) in events { raise(event, forKey: key, at: now) }
    parking.done?.succeed()
    parking.done = nil
  }

  /// Keeps an event back. Peers may send as long as the disk takes: beyond the limit they hear that
  /// it cannot be now, and what a device says again, or need not, is left out.
  func keepBack(_ event: Event, forKey routingKey: UInt64) {
    guard parking.events.count >= Limits.parkedEvents else {
      return parking.events.append((event, routingKey))
    }
    switch event {
    case .alias(.forwarded): refuse(event)
    case .alias, .disconnected, .clockFollowed, .keepAliveDue, .acknowledgementDue, .administered:
      // As many as there are changes of tokens, connections and what is in flight over those, which
      // have limits of their own.
      parking.events.append((event, routingKey))
    case .submitted, .persisted, .persistFailed, .enrolled, .registered, .unregistered, .inspected,
      .connected, .acked, .decided, .reported, .keptAlive, .heard, .queueChecked,
      .partitionRequested, .partitionReceived, .restored, .policyChanged, .faulted, .checkpoint,
      .shutDown, .tick, .clockStepped:
      refuse(event)
    }
  }

  /// Answers whoever waits for what comes of an event that no shard is told.
  func refuse(_ event: Event) {
    switch event {
    case .submitted(_, let request), .alias(.forwarded(_, _, let request)):
      queue.effects.append(.respond(request, .rejected(.serviceUnavailable)))
    case .enrolled(_, _, let request), .registered(_, _, _, _, let request),
      .unregistered(_, _, let request), .inspected(_, let request), .connected(_, let request):
      queue.effects.append(.answer(request, .refused(.unavailable)))
    case .acked, .decided, .reported, .keptAlive, .heard, .queueChecked, .alias, .disconnected,
      .clockFollowed, .keepAliveDue, .acknowledgementDue, .administered:
      break
    case .persisted, .persistFailed, .partitionRequested, .partitionReceived, .restored,
      .policyChanged, .faulted, .checkpoint, .shutDown, .tick, .clockStepped:
      preconditionFailure("no key names a shard for this event")
    }
  }
}
