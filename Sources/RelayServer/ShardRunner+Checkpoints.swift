import DequeModule
import DeviceLink
import Primitives
import RelayCore

/// What a loop keeps beside its shard, to be taken back to.
struct RunnerCheckpoint {
  let lifeLog: DeliveryLog
  let notes: PushNotes
  let deviceChanges: Deque<DeviceChange>
  let refusals: Deque<RefusedRequest>
  let random: SeededRandom?
  let nextUnique: UInt64
  let followers: ClockFollowers
}

/// A loop is taken back to where it was (`VirtualClock.rewind`). All of them have settled before.
extension ShardRunner {
  /// About what it takes to keep everything as it is.
  var keptBytes: Int {
    shard.keptBytes + lifeLog.keptBytes + notes.keptBytes
      + deviceChanges.count * MemoryLayout<DeviceChange>.stride
  }

  /// Keeps everything as it is.
  func saveCheckpoint(_ number: UInt32) {
    decide(.operated(.checkpointSaved(number)), at: now)
    checkpoints[number] = RunnerCheckpoint(
      lifeLog: lifeLog, notes: notes, deviceChanges: deviceChanges,
      refusals: refusals, random: random, nextUnique: nextUnique, followers: followers)
    tellFollowers(.saved(number: number))
  }

  func dropCheckpoint(_ number: UInt32) {
    guard checkpoints.removeValue(forKey: number) != nil else { return }
    decide(.operated(.checkpointDropped(number)), at: now)
    tellFollowers(.dropped(number: number))
  }

  /// The streams that can go back: open then and now, of phones that go by this clock.
  func streams(goingBackTo number: UInt32) -> Set<StreamAddress> {
    guard let then = checkpoints[number] else { return [] }
    return Set(followers.streams).intersection(then.followers.streams)
  }

  /// Everything is as it was then, and so is the time already.
  ///
  /// - Parameter staying: the streams of all loops that go back; those of others end.
  func rewind(to number: UInt32, epoch: UInt32, staying: Set<StreamAddress>) {
    guard let then = checkpoints[number] else { return }
    let now = now
    self.epoch = epoch
    decide(.operated(.rewound(to: number)), at: now)
    lifeLog = then.lifeLog
    notes = then.notes
    deviceChanges = then.deviceChanges
    refusals = then.refusals
    random = then.random
    nextUnique = then.nextUnique
    // What faults have put off belongs to what never was. Faults themselves stay.
    putOff = PutOff()
    journalHeldUntil = nil
    followers = then.followers
    followers.keep(staying)
    for connection in connections.values { connection.endStreams(.rewound, but: staying) }
    adminPeers.closeListeners(.rewound)
    // Whoever listened then and does not now has hung up.
    for stream in shard.connections where !staying.contains(stream) {
      decide(.stream(stream, .disconnected), at: now)
    }
    feed?.append(.rewound(at: now))
    tellFollowers(.rewound(number: number, epoch: epoch, time: now))
  }

  /// The word of a journal in memory that a fault kept back then comes now, when all loops are as
  /// they were: it may be for another one.
  func memoryAnswersAll() {
    if !shard.isSettled { decide(.journal(.persisted(through: .max)), at: now) }
    finishBatch()
  }

  private func tellFollowers(_ line: CheckpointLine) {
    for stream in followers.streams { deliver(.checkpoint(line), to: stream) }
    followers.touchAll()
    finishBatch()
  }

  /// What was sent on its way before everything else was taken back: whom it concerns is not there
  /// any more. A provider hears that it cannot be now.
  func refuse(_ message: LoopMessage) {
    for event in message.events { refuse(event) }
    for effect in message.effects {
      switch effect {
      case .respond, .answer: queue.effects.append(effect)
      case .hello, .send, .sendEmpty, .sendKeepAlive, .checkQueue, .close, .persist, .forget, .tell,
        .log:
        break
      }
    }
    finishBatch()
  }
}
