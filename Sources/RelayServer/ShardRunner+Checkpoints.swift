import DeviceLink
import Primitives
import RelayCore

/// A checkpoint of a loop, besides its shard.
struct RunnerCheckpoint {
  let lives: DeliveryLog
  let history: LoopHistory
  let ids: IDSource
  let followers: ClockFollowers
}

/// Returns a loop to a checkpoint (`VirtualClock.rewind`), after all loops have settled.
extension ShardRunner {
  /// An estimate of a checkpoint's size.
  var keptBytes: Int { core.shard.keptBytes + ledger.lives.keptBytes + history.keptBytes }

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

  /// The streams that can go back: open then and now, of phones on this clock.
  func streams(goingBackTo number: UInt32) -> Set<StreamAddress> {
    guard let then = checkpoints[number] else { return [] }
    return Set(timers.followers.streams).intersection(then.followers.streams)
  }

  /// Restores everything but the time, which is already back.
  ///
  /// - Parameter staying: the streams of all loops that go back; others end.
  func rewind(to number: UInt32, epoch: UInt32, staying: Set<StreamAddress>) {
    guard let then = checkpoints[number] else { return }
    let now = now
    peers.epoch = epoch
    decide(.operated(.rewound(to: number)), at: now)
    ledger.lives = then.lives
    let answers = history.answers
    history = then.history
    history.answers = answers
    ids.goBack(to: then.ids)
    // The work that faults have delayed is undone. Faults themselves stay.
    timers.putOff = PutOff()
    faults.journalHeldUntil = nil
    timers.followers.goBack(to: then.followers, staying: staying)
    for connection in connections.http2.values {
      connection.device?.endStreams(.rewound, but: staying, on: connection)
    }
    adminPeers.closeListeners(.rewound)
    // Phones that listened then and do not now have hung up.
    for stream in core.shard.connections where !staying.contains(stream) {
      decide(.stream(stream, .disconnected), at: now)
    }
    feed.append(.rewound(at: now))
    tellFollowers(.rewound(number: number, epoch: epoch, time: now))
  }

  /// Delivers the answers of a journal in memory that a fault held back then. Called when all loops
  /// are restored: an answer may be for another one.
  func memoryAnswersAll() {
    if !core.shard.isSettled { decide(.journal(.persisted(through: .max)), at: now) }
    finishBatch()
  }

  private func tellFollowers(_ line: CheckpointLine) {
    for stream in timers.followers.streams { deliver(.checkpoint(line), to: stream) }
    timers.followers.touchAll()
    finishBatch()
  }

  /// Answers a message that was on its way when the relay went back: those it concerns are gone.
  /// Providers get a refusal.
  func refuse(_ message: LoopMessage) {
    for event in message.events { refuse(event) }
    for effect in message.effects {
      switch effect {
      case .respond, .answer: core.effects.append(effect)
      case .hello, .send, .sendBroadcast, .sendEmpty, .sendKeepAlive, .checkQueue, .close, .persist,
        .forget, .tell, .log:
        break
      }
    }
    finishBatch()
  }
}
