import DeviceLink
import DeviceSimulator
import RelayCore

/// What the world orders.
extension PhoneDriver {
  func perform(_ order: LiveOrder) {
    let phone = order.phone
    switch order {
    case .connect:
      phones[phone].session += 1
      let session = PhoneSession(
        phone: phone, number: phones[phone].session, driver: self, configuration: configuration,
        pool: pool)
      phones[phone].task = Task { await session.run() }
    case .disconnect(_, let saysGoodbye): disconnect(phone, saysGoodbye: saysGoodbye)
    case .ack(_, let id, let outcome): write(.ack(id: id, outcome: outcome), phone)
    case .state(_, let report):
      write(.state(power: report.power, network: report.network, screen: report.screen), phone)
    case .keepAlive: write(.keepAlive, phone)
    case .archive(_, let app, let step):
      attempt { try keeper.take(step, of: app, phone) }
    case .lock: keeper.lock(phone)
    case .unlock: attempt { try keeper.unlock(phone) }
    case .transfer: break
    }
  }

  /// The phone goes on without, and its owner is told.
  func attempt(_ work: () throws -> Void) {
    do {
      try work()
    } catch {
      configuration.warn("\(error)")
    }
  }

  private func write(_ line: UpLine, _ phone: Int) {
    var bytes: [UInt8] = []
    line.write(to: &bytes)
    phones[phone].lines?.yield(bytes)
  }

  private func disconnect(_ phone: Int, saysGoodbye: Bool) {
    phones[phone].session += 1
    if phones[phone].lines != nil { counts.listening -= 1 }
    if saysGoodbye {
      // What was said last still arrives; then the stream ends, and its task with it.
      phones[phone].lines?.finish()
    } else {
      // The relay is to find out by itself: the stream stays, and nobody answers.
      phones[phone].abandoned?.cancel()
      phones[phone].abandoned = phones[phone].task
    }
    phones[phone].lines = nil
    phones[phone].task = nil
  }
}
