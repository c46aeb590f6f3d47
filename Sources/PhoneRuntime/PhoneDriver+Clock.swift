import DeviceLink
import DeviceSimulator
import Primitives
import RelayCore

/// A clock of a relay that moves only when told, as the phones follow it.
struct FollowedClock {
  /// UNIX milliseconds.
  var time: Int64
  /// What the relay has been told of when the phones have something to do next.
  var told = Int64.max
  /// Barriers that wait for transfers to end, by the place of their phone.
  var barriers: [Int: UInt64] = [:]
  /// The phones as they were when the relay kept its state, by the numbers of such states.
  var checkpoints: [UInt32: LiveSimulation] = [:]
  /// The last return to one of them.
  var epoch: UInt32 = 0
}

/// A relay whose clock moves only when told.
extension PhoneDriver {
  /// It is this time, and the relay asks whether the phone has done everything until then.
  func barrier(_ session: PhoneSession, _ number: UInt64, at time: Int64) {
    guard isWanted(session), clock != nil else { return }
    clock?.barriers[session.phone] = number
    moveClock(to: time)
  }

  /// A stream is open, and the relay has said what time it is.
  func greeted(_ session: PhoneSession, at time: Int64) {
    guard isWanted(session), clock != nil else { return }
    moveClock(to: time)
    write(.barrier(number: 0, next: nextMoment), session.phone)
  }

  private func moveClock(to time: Int64) {
    guard let known = clock?.time else { return }
    clock?.time = max(known, time)
    simulation.advance(to: max(known, time))
    settle()
  }

  /// The relay keeps its state, or goes back. It says so on every stream; once is enough.
  func follow(_ line: CheckpointLine) {
    switch line {
    case .saved(let number): clock?.checkpoints[number] = simulation
    case .dropped(let number): clock?.checkpoints[number] = nil
    case .rewound(let number, let epoch, let time):
      guard let known = clock, epoch > known.epoch else { return }
      clock?.epoch = epoch
      guard let then = known.checkpoints[number] else {
        configuration.warn("the relay was taken back to a time that these phones do not remember")
        return
      }
      rewind(to: then, at: time)
    }
  }

  /// The phones are as they were then. Streams are as they are now: where the phone believes
  /// otherwise it is put right.
  private func rewind(to then: LiveSimulation, at time: Instant) {
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

  private var nextMoment: Instant? {
    simulation.nextWake == .max ? nil : Instant(milliseconds: simulation.nextWake)
  }

  /// Once nothing is being transferred, the relay hears that all is done; and at any time, when
  /// there is something to do next, if that has changed.
  func answerBarriers() {
    guard let known = clock else { return }
    if known.told != simulation.nextWake,
      let phone = phones.firstIndex(where: { $0.lines != nil })
    {
      clock?.told = simulation.nextWake
      write(.barrier(number: 0, next: nextMoment), phone)
    }
    guard transfers.isEmpty else { return }
    for (phone, number) in known.barriers {
      write(.barrier(number: number, next: nextMoment), phone)
    }
    clock?.barriers.removeAll(keepingCapacity: true)
  }
}
