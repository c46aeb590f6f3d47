import DeviceLink
import DeviceSimulator
import Primitives
import RelayClient
import RelayCore

extension PhoneDriver {
  func isWanted(_ session: PhoneSession) -> Bool {
    phones[session.phone].session == session.number && ending == nil
  }

  /// Returns false if the session is no longer wanted.
  func opened(
    _ session: PhoneSession, as identity: DeviceIdentity,
    _ lines: AsyncStream<PhoneSession.SentLine>.Continuation
  ) -> Bool {
    guard isWanted(session) else { return false }
    if phones[session.phone].hasConnected { counts.reconnects += 1 }
    phones[session.phone].hasConnected = true
    phones[session.phone].openings += 1
    hasConnected = true
    isOutageTold = false
    phones[session.phone].lines = lines
    phones[session.phone].abandoned?.cancel()
    phones[session.phone].abandoned = nil
    phones[session.phone].unheard = nil
    phones[session.phone].orders.identity = identity
    counts.listening += 1
    simulation.handle(.connected, of: session.phone, at: now)
    settle()
    return true
  }

  func heard(_ lines: [DownLine], by session: PhoneSession) {
    guard isWanted(session) else { return lines.forEach { heardUnwanted($0, by: session) } }
    for line in lines {
      switch line {
      case .hello(_, _, let time, let isVirtual, let takesDecisions, _):
        phones[session.phone].tellsDecisions = takesDecisions
        if isVirtual { greeted(session, at: time.milliseconds) }
        opens(session.phone, false)
        simulation.handle(.heard(isKeepAlive: false), of: session.phone, at: now)
        linkDecided(session.phone)
        // Behind the barrier: who takes orders goes by the relay's clock.
        takeOrders(session.phone)
      case .notification(let delivery):
        pass(to: delivery.sentAt)
        simulation.handle(.received(delivery), of: session.phone, at: now)
      case .broadcast(let broadcast, let sentAt):
        pass(to: sentAt)
        simulation.handle(.broadcast(broadcast), of: session.phone, at: now)
      case .empty(let time):
        if let time { pass(to: time) }
        simulation.handle(.heard(isKeepAlive: false), of: session.phone, at: now)
      case .keepAlive(let time):
        if let time { pass(to: time) }
        simulation.handle(.heard(isKeepAlive: true), of: session.phone, at: now)
      case .barrier(let number, let time): barrier(session, number, at: time.milliseconds)
      case .checkpoint(let line): follow(line)
      case .bye, .error, .unknown: break
      }
    }
    settle()
  }

  /// Returns false if no other stream is wanted.
  func lost(_ session: PhoneSession, _ reason: String) -> Bool {
    guard isWanted(session) else { return false }
    opens(session.phone, false)
    linkDecided(session.phone)
    if phones[session.phone].lines != nil { counts.listening -= 1 }
    phones[session.phone].lines = nil
    clock?.told = .max
    let comesBack = reason == CloseReason.rewound.name
    // The relay waits for it: no barrier is answered until it is on its way.
    if comesBack { untold += 1 }
    simulation.handle(.lost(reason: reason), of: session.phone, at: now)
    settle()
    if reason == CloseReason.superseded.name {
      end(.failure(SupersededPhone(phone: simulation.phones[session.phone])))
      return false
    }
    guard comesBack else { return true }
    if isWanted(session) { comeBack(session.phone) }
    told()
    return false
  }

  /// A failure before any connection ends the run: it is likely a mistake in the command.
  func mayTryAgain(_ session: PhoneSession, after error: any Error) -> Bool {
    guard isWanted(session) else { return false }
    opens(session.phone, false)
    var isFinal = !hasConnected
    if case .refused(let refusal)? = error as? ClientError { isFinal = refusal.status < 500 }
    if isFinal {
      end(.failure(error))
    } else if !isOutageTold {
      isOutageTold = true
      configuration.warn("\(error); trying again")
    }
    return !isFinal
  }
}
