import DeviceLink
import DeviceSimulator
import Primitives
import RelayCore

/// The clock of a relay that moves only when told, as followed by the phones.
struct FollowedClock {
  var time: Int64
  /// The time of the phones' next work, as last told to the relay.
  var told = Int64.max
  /// Barriers that wait for the end of transfers, by index of their phone: on its stream, and on
  /// that of orders.
  var barriers: [Int: UInt64] = [:]
  var orderBarriers: [Int: UInt64] = [:]
  /// The phones at the relay's checkpoints and the streams that they had had, by checkpoint number.
  var checkpoints: [UInt32: (phones: LiveSimulation, openings: [Int])] = [:]
  var epoch: UInt32 = 0
  /// Runs while barriers wait for what the relay, or an app's server, is being told.
  var patience: Task<Void, Never>?
  /// They have waited for long: until all is told, none waits.
  var isOverdue = false
}

extension PhoneDriver {
  /// The relay asks whether the phone has done everything up to `time`.
  func barrier(_ session: PhoneSession, _ number: UInt64, at time: Int64) {
    guard isWanted(session), clock != nil else { return }
    clock?.barriers[session.phone] = number
    moveClock(to: time)
  }

  /// On a stream without coverage nothing is heard; but time passes there, too.
  func heardUnwanted(_ line: DownLine, by session: PhoneSession) {
    guard case .barrier(let number, let time) = line, clock != nil, ending == nil,
      session.number + 1 == phones[session.phone].session
    else { return }
    moveClock(to: time.milliseconds)
    phones[session.phone].unheard?
      .yield(.init(.barrier(number: number, next: nextMoment)))
  }

  func greeted(_ session: PhoneSession, at time: Int64) {
    guard isWanted(session), clock != nil else { return }
    moveClock(to: time)
    write(.barrier(number: 0, next: nextMoment), session.phone)
  }

  /// The relay's clock on a phone's stream of orders, which is there when the phone is off, too.
  func heardOnOrders(_ line: DownLine, _ phone: Int) {
    guard ending == nil, clock != nil else { return }
    switch line {
    case .barrier(let number, let time):
      clock?.orderBarriers[phone] = number
      moveClock(to: time.milliseconds)
    case .checkpoint(let line):
      follow(line)
      settle()
    case .hello, .notification, .broadcast, .empty, .keepAlive, .bye, .error, .unknown: break
    }
  }

  /// A line tells its time before the barrier behind it does.
  func pass(to time: Instant) {
    guard let known = clock?.time, known < time.milliseconds else { return }
    clock?.time = time.milliseconds
    simulation.advance(to: time.milliseconds)
  }

  func moveClock(to time: Int64) {
    pass(to: Instant(milliseconds: time))
    settle()
  }

  /// Every stream repeats the line; it takes effect once.
  func follow(_ line: CheckpointLine) {
    switch line {
    case .saved(let number):
      clock?.checkpoints[number] = (simulation, phones.map(\.openings))
    case .dropped(let number): clock?.checkpoints[number] = nil
    case .rewound(let number, let epoch, let time):
      guard let known = clock, epoch > known.epoch else { return }
      clock?.epoch = epoch
      guard let then = known.checkpoints[number] else {
        configuration.warn("the relay was taken back to a time that these phones do not remember")
        return
      }
      rewind(to: then.phones, with: then.openings, at: time)
    }
  }

  /// Restores the phones. Streams of then stay, the relay ends others: a phone's view of its link
  /// is corrected.
  private func rewind(to then: LiveSimulation, with openings: [Int], at time: Instant) {
    for transfer in transfers.values { transfer.cancel() }
    transfers.removeAll()
    simulation = then
    clock?.time = time.milliseconds
    clock?.told = .max
    unsaved.formUnion(phones.indices)
    saveAt = time.milliseconds
    for phone in phones.indices {
      let isOpen = phones[phone].lines != nil
      switch simulation.link(of: phone) {
      case .live where isOpen && phones[phone].openings != openings[phone]:
        simulation.handle(.lost(reason: CloseReason.rewound.name), of: phone, at: time.milliseconds)
        comeBack(phone)
      case .live where !isOpen:
        simulation.handle(.lost(reason: CloseReason.rewound.name), of: phone, at: time.milliseconds)
        if phones[phone].task == nil { perform(.init(phone, .connect)) }
      case .connecting where phones[phone].task == nil: perform(.init(phone, .connect))
      case .down where phones[phone].task != nil: disconnect(phone, saysGoodbye: true)
      case .live, .connecting, .down: break
      }
    }
    configuration.warn("the relay and these phones were taken back to \(time.iso8601)")
  }

  /// Opens another stream at once. The relay's clock waits for it.
  func comeBack(_ phone: Int) {
    untold += 1
    disconnect(phone, saysGoodbye: true)
    perform(.init(phone, .connect))
    told()
  }

  var nextMoment: Instant? {
    simulation.nextWake == .max ? nil : Instant(milliseconds: simulation.nextWake)
  }

  /// Confirms barriers once no transfer runs and the relay has been told all; reports the time of
  /// the next work when it changes.
  func answerBarriers() {
    guard let known = clock else { return }
    if known.told != simulation.nextWake, let lines = anyLines {
      clock?.told = simulation.nextWake
      lines.yield(.init(.barrier(number: 0, next: nextMoment)))
    }
    guard transfers.isEmpty, !known.barriers.isEmpty || !known.orderBarriers.isEmpty else { return }
    guard untold == 0 || known.isOverdue else {
      if known.patience == nil { clock?.patience = Task { await waitedForLong() } }
      return
    }
    for (phone, number) in known.barriers {
      // It may just have lost its coverage.
      (phones[phone].lines ?? phones[phone].unheard)?
        .yield(.init(.barrier(number: number, next: nextMoment)))
    }
    for (phone, number) in known.orderBarriers {
      phones[phone].orders.feed?.yield(.init(.barrier(number: number, next: nextMoment)))
    }
    clock?.barriers.removeAll(keepingCapacity: true)
    clock?.orderBarriers.removeAll(keepingCapacity: true)
  }

  /// The relay hears of the next work on a stream of orders where no phone listens.
  private var anyLines: AsyncStream<PhoneSession.SentLine>.Continuation? {
    for phone in phones { if let lines = phone.lines { return lines } }
    for phone in phones { if let feed = phone.orders.feed { return feed } }
    return nil
  }

  /// The relay, or an app's server, has been told something that a clock waits for.
  func told() {
    untold -= 1
    guard clock != nil, ending == nil else { return }
    if untold == 0 { endPatience(isOverdue: false) }
    answerBarriers()
  }

  /// A stream that is being opened holds the clock up, too: a phone that is back in its network
  /// hears the next push then, not when the machine has had time for it.
  func opens(_ phone: Int, _ isOpening: Bool) {
    guard clock != nil, phones[phone].isOpening != isOpening else { return }
    phones[phone].isOpening = isOpening
    if isOpening { untold += 1 } else { told() }
  }

  /// Of the machine's time: a server may never answer, and a fault may hold the relay's answer back
  /// until the clock moves.
  private func waitedForLong() async {
    try? await Task.sleep(for: .seconds(1))
    guard !Task.isCancelled, ending == nil else { return }
    endPatience(isOverdue: true)
    answerBarriers()
  }

  private func endPatience(isOverdue: Bool) {
    clock?.patience?.cancel()
    clock?.patience = nil
    clock?.isOverdue = isOverdue
  }
}
