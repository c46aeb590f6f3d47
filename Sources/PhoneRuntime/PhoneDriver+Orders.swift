import DeviceLink
import DeviceModel
import DeviceSimulator
import RelayCore

/// What the simulation orders.
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
    case .transfer(_, let id, let step): perform(step, of: id, phone)
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

  // MARK: Transfers

  /// A transfer with an address is carried out from each start to the next other step.
  private func perform(_ step: TransferStep, of id: TransferID, _ phone: Int) {
    let key = TransferKey(phone: phone, id: id)
    transfers.removeValue(forKey: key)?.cancel()
    guard case .started = step, let transfer = simulation.model(of: phone).service[id],
      transfer.isPerformed
    else { return }
    attempt {
      guard let file = try keeper.file(for: transfer, of: phone) else {
        reported(.failed("there is no directory to keep it in"), key)
        return
      }
      guard let order = TransferOrder(transfer, file: file) else { return }
      let client = try client()
      transfers[key] = Task {
        await client.perform(order) { await self.reported($0, key) }
      }
    }
  }

  private func reported(_ report: TransferReport, _ key: TransferKey) {
    // What the phone has stopped meanwhile is no news.
    guard ending == nil, transfers[key] != nil || report.isFailure else { return }
    if case .failed(let why) = report {
      let transfer = simulation.model(of: key.phone).service[key.id]
      configuration.warn(
        "\(simulation.phones[key.phone].name): \(transfer?.request.name ?? "a transfer"): \(why)")
    }
    let now = configuration.now()
    for event in report.events(of: key.id) {
      simulation.handle(.phone(event), of: key.phone, at: now)
    }
    settle()
  }

  /// Made when the first transfer needs it.
  private func client() throws(TransferClientProblem) -> TransferClient {
    if let transferClient { return transferClient }
    var options = TransferOptions()
    options.trustRoots = configuration.transferTrustRoots
    let client = try TransferClient(options)
    transferClient = client
    return client
  }
}

/// A transfer of one of the phones.
struct TransferKey: Hashable, Sendable {
  let phone: Int
  let id: TransferID
}

extension TransferReport {
  fileprivate var isFailure: Bool {
    if case .failed = self { true } else { false }
  }
}
