import Primitives
import RelayCore
import RelayRecording

/// What this node knows, without asking any other.
extension LoopSet {
  func report(of device: DeviceID) async -> DeviceReport? {
    await onEach { $0.core.shard.report(of: device) }.compactMap(\.self).first
  }

  func reports(of devices: [DeviceID]) async -> [DeviceReport] {
    await onEach { runner in devices.compactMap { runner.core.shard.report(of: $0) } }.flatMap(
      \.self)
  }

  func credential(of device: DeviceID) async -> DeviceCredential? {
    await onEach { $0.core.shard.secret(of: device) }.compactMap(\.self).first
      .map { DeviceCredential(device: device, secret: $0) }
  }

  /// False when there is no device with this id.
  func administer(_ device: DeviceID, _ action: AdminAction) async -> Bool {
    guard await report(of: device) != nil else { return false }
    _ = await ask(0) { runner in
      runner.raise(.administered(device, action), for: device, at: runner.now)
      runner.finishBatch()
    }
    return true
  }

  func devices(
    matching text: String, after position: Relay.DevicePosition?, limit: Int
  ) async -> Relay.DevicePage {
    let wanted = text.lowercased()
    var reports: [DeviceReport] = []
    var place = position?.place ?? 0
    for loop in (position?.loop ?? 0)..<max(position?.loop ?? 0, count) {
      let (first, room) = (place, limit - reports.count)
      let page = await ask(loop) { runner in
        runner.core.shard.devices(from: first, limit: room) { id, topics in
          wanted.isEmpty || id.description.hasPrefix(wanted)
            || topics.contains { $0.description.lowercased().contains(wanted) }
        }
      }
      guard let page else { break }
      reports += page.reports
      if let next = page.next {
        return .init(reports: reports, next: .init(loop: loop, place: next))
      }
      place = 0
    }
    return .init(reports: reports, next: nil)
  }

  func app(with token: DeviceToken) async -> OwnToken? {
    await onEach { $0.core.shard.app(with: token) }.compactMap(\.self).first
      .map { OwnToken(token: token, device: $0.device, topic: $0.topic) }
  }

  func changes(of device: DeviceID) async -> [DeviceChange] {
    await onEach { $0.history.changes.filter { $0.device == device } }.flatMap(\.self)
  }

  func reset(_ topic: Topic?) async {
    _ = await onEach { runner in
      for device in runner.core.shard.deviceIDs(with: topic) {
        for action in [AdminAction.emptySlots(topic), .refillBudget(topic)] {
          runner.raise(.administered(device, action), for: device, at: runner.now)
        }
      }
      runner.finishBatch()
    }
  }

  /// The beginnings of the latest lives, newest first.
  func heads(_ filter: Relay.LifeFilter, limit: Int) async -> [DeliveryEvent] {
    let heads = await onEach { runner in
      runner.ledger.lives.latest(limit: limit) { filter.matches($0) }
    }
    return Array(heads.joined().sorted { $0.at > $1.at }.prefix(limit))
  }

  /// The steps of each of these lives.
  func steps(of ids: [UniqueID]) async -> [[DeliveryEvent]] {
    let parts = await onEach { runner in ids.map { runner.ledger.lives.steps(of: $0) } }
    return ids.indices.map { place in DeliveryLog.join(parts.map { $0[place] }) }
  }

  func note(on id: UniqueID) async -> PushNote {
    await onEach { $0.history.notes[id] }.compactMap(\.self).first ?? PushNote()
  }

  func refusals(limit: Int) async -> [RefusalReport] {
    let all = await onEach { Array($0.history.refusals) }
    return all.joined().sorted { $0.at > $1.at }.prefix(limit).map(RefusalReport.init)
  }

  /// The answer to another node's question.
  func answer(
    _ question: NodeQuestion, _ feeds: FeedHolder, _ standing: NodeStanding?
  ) async -> [UInt8] {
    var writer = ByteWriter()
    switch question {
    case .report(let device): writer.put(await report(of: device))
    case .credential(let device): writer.put(await credential(of: device))
    case .administer(let device, let action): writer.put(await administer(device, action))
    case .reports(let devices): writer.put(await reports(of: devices))
    case .devices(let text, let position, let limit):
      writer.put(await devices(matching: text, after: position, limit: limit))
    case .app(let token): writer.put(await app(with: token))
    case .changes(let device): writer.put(await changes(of: device))
    case .reset(let topic):
      await reset(topic)
      writer.put(true)
    case .heads(let filter, let limit): writer.put(await heads(filter, limit: limit))
    case .steps(let ids): writer.put(await steps(of: ids))
    case .note(let id): writer.put(await note(on: id))
    case .refusals(let limit): writer.put(await refusals(limit: limit))
    case .counters: writer.put(await counters())
    case .standing:
      guard let standing else { break }
      writer.put(standing)
    case .feed(let position):
      guard let page = await feeds.page(since: position) else { break }
      writer.put(page)
    }
    return writer.bytes
  }
}
