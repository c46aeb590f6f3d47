import DeviceLink
import DeviceSimulator
import RelayClient
import RelayCore

/// What sessions say.
extension PhoneDriver {
  /// Whether the phone still wants this session.
  func isWanted(_ session: PhoneSession) -> Bool {
    phones[session.phone].session == session.number && ending == nil
  }

  /// A stream is open; false if nobody wants it any more.
  func opened(
    _ session: PhoneSession, _ lines: AsyncStream<PhoneSession.SentLine>.Continuation
  ) -> Bool {
    guard isWanted(session) else { return false }
    if phones[session.phone].hasConnected { counts.reconnects += 1 }
    phones[session.phone].hasConnected = true
    hasConnected = true
    phones[session.phone].lines = lines
    phones[session.phone].abandoned?.cancel()
    phones[session.phone].abandoned = nil
    counts.listening += 1
    simulation.handle(.connected, of: session.phone, at: now)
    settle()
    return true
  }

  func heard(_ said: [PhoneSession.Said], by session: PhoneSession) {
    guard isWanted(session) else { return }
    for word in said {
      switch word {
      case .event(let event): simulation.handle(event, of: session.phone, at: now)
      case .time(let time): greeted(session, at: time)
      case .takesDecisions(let isWanted): phones[session.phone].tellsDecisions = isWanted
      case .barrier(let number, let time): barrier(session, number, at: time)
      case .checkpoint(let line): take(line)
      }
    }
    settle()
  }

  /// The stream is gone; false if the phone does not want another.
  func lost(_ session: PhoneSession, _ reason: String) -> Bool {
    guard isWanted(session) else { return false }
    if phones[session.phone].lines != nil { counts.listening -= 1 }
    phones[session.phone].lines = nil
    simulation.handle(.lost(reason: reason), of: session.phone, at: now)
    settle()
    if reason == CloseReason.superseded.name {
      end(.failure(PhoneDriverError.superseded(phone: simulation.phones[session.phone])))
      return false
    }
    return true
  }

  /// Whether another attempt makes sense. What fails the first time ends it all, for it is likely a
  /// mistake in the command.
  func mayTryAgain(_ session: PhoneSession, after error: any Error) -> Bool {
    guard isWanted(session) else { return false }
    var isFinal = !hasConnected
    if case .refused(let refusal)? = error as? DeviceAPIError { isFinal = refusal.status < 500 }
    if isFinal { end(.failure(error)) }
    return !isFinal
  }
}
