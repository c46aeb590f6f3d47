import DeviceLink
import Primitives
import RelayCore

/// What a loop keeps beside its shard, to be taken back to.
struct RunnerCheckpoint {
  let lives: DeliveryLog
  let history: LoopHistory
  let ids: IDSource
  let followers: ClockFollowers
}

/// A loop is taken back to where it was (`VirtualClock.rewind`). All of them have settled before.
extension ShardRunner {
  /// About how many bytes it takes to keep everything as it is.
  var keptBytes: Int { core.shard.keptBytes + ledger.lives.keptBytes + history.keptBytes }

  /// Keeps everything as it is.
  func saveCheckpoint(_ number: UInt32) {
    decide(.operated(.checkpointSaved(number)), at: now)
    checkpoints[number] = RunnerCheckpoint(
      lives: ledger.lives, history: history, ids: ids, followers: timers.followers)
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
    return Set(timers.followers.streams).intersection(then.followers.streams)
  }

  /// Everything is as it was then, and so is the time already.
  ///
  /// - Parameter staying: the streams of all loops that go back; those of others end.
  func rewind(to number: UInt32, epoch: UInt32, staying: Set<StreamAddress>) {
    guard let then = checkpoints[number] else { return }
    let now = now
    peers.epoch = epoch
    decide(.operated(.rewound(to: number)), at: now)
    ledger.lives = then.lives
    history = then.history
    ids = then.ids
    // What faults have put off belongs to what never was. Faults themselves stay.
    timers.putOff = PutOff()
    faults.journalHeldUntil = nil
    timers.followers = then.followers
    timers.followers.keep(staying)
    for connection in connections.http2.values {
      connection.device?.endStreams(.rewound, but: staying, on: connection)
    }
    adminPeers.closeListeners(.rewound)
    // Whoever listened then and does not now has hung up.
    for stream in core.shard.connections where !staying.contains(stream) {
      decide(.stream(stream, .disconnected), at: now)
    }
    feed.append(.rewound(at: now))
    tellFollowers(.rewound(number: number, epoch: epoch, time: now))
  }

  /// The word of a journal in memory that a fault kept back then comes now, when all loops are as
  /// they were: it may be for another one.
  func memoryAnswersAll() {
    if !core.shard.isSettled { decide(.journal(.persisted(through: .max)), at: now) }
    finishBatch()
  }

  private func tellFollowers(_ line: CheckpointLine) {
    for stream in timers.followers.streams { deliver(.checkpoint(line), to: stream) }
    timers.followers.touchAll()
    finishBatch()
  }

  /// Answers a message that was on its way when everything else was taken back: whom it concerns is
  /// not there any more. A provider hears that it cannot be now.
  func refuse(_ message: LoopMessage) {
    for event in message.events { refuse(event) }
    for effect in message.effects {
      switch effect {
      case .respond, .answer: core.effects.append(effect)
      case .hello, .send, .sendEmpty, .sendKeepAlive, .checkQueue, .close, .persist, .forget, .tell,
        .log:
        break
      }
    }
    finishBatch()
  }
}
