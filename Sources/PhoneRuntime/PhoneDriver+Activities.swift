import DeviceModel
import DeviceSimulator
import RelayClient
import RelayCore

/// Tokens of Live Activities, registered while their activities last, and the channels that they
/// listen to (docs/PROTOCOL.md, "Live Activities").
extension PhoneDriver {
  /// The phone's relay identity, before a stream. What came or ended while it had none is told now.
  func identity(of phone: Int, _ api: DeviceAPI) async throws -> DeviceIdentity {
    // It would be enrolled twice.
    await phones[phone].orders.introduction?.value
    let identity = try await configuration.identify(phone, uninstalled(on: phone), api)
    let apps = simulation.model(of: phone).apps
    guard apps.contains(where: { $0.definition.activities != nil }) else { return identity }
    let wanted = simulation.activityAddresses(of: phone)
    for (app, address) in wanted {
      do {
        try await tell(address, of: app, isValid: true, phone, identity, api)
      } catch ClientError.refused(let refusal) where address.isChannel && refusal.status < 500 {
        // It was deleted, for example; the phone goes on.
        warn("\(address.part) of \(app): \(refusal)")
      }
    }
    let topics = wanted.map { $0.address.topic(of: $0.app) }
    for name in try await api.topics(of: identity) where !topics.contains(name) {
      guard let topic = Topic(name), topic.whole != topic else { continue }
      try await api.unregister(topic: name, of: identity)
    }
    return identity
  }

  /// Says each thing once.
  func warn(_ text: String) {
    guard warned.count < 1000, warned.insert(text).inserted else { return }
    configuration.warn(text)
  }

  private func tell(
    _ address: ActivityAddress, of app: String, isValid: Bool, _ phone: Int,
    _ identity: DeviceIdentity, _ api: DeviceAPI
  ) async throws {
    let topic = address.topic(of: app)
    let environment = simulation.model(of: phone).app(named: app)?.definition.environment
    switch (address, isValid) {
    case (.channel(let id), _): try await api.subscribe(app, to: id, isOn: isValid, of: identity)
    case (.start, true), (.update, true):
      let token = try await api.register(topic: topic, environment: environment, of: identity)
      handOver(token, of: address, app, phone, identity)
    case (.start, false), (.update, false):
      handed[phone]?[address.part + app] = nil
      try await api.unregister(topic: topic, of: identity)
    }
  }

  /// A token or a subscription has come or ended.
  func tellRelay(of address: ActivityAddress, of app: String, isValid: Bool, _ phone: Int) {
    // Before the first stream `identity` tells of all.
    guard phones[phone].hasConnected else { return }
    tellRelay(of: "\(address.part) of \(app)", isOver: !isValid, phone) {
      driver, _, api, identity in
      try await driver.tell(address, of: app, isValid: isValid, phone, identity, api)
    }
  }

  /// A change of what the relay knows of a phone's apps. In sequence, so that a token that was
  /// renewed is registered last.
  ///
  /// - Parameters:
  ///   - isOver: perhaps the relay was told before.
  ///   - app: one that is as good as gone.
  func tellRelay(
    of what: String, isOver: Bool, _ phone: Int, without app: String? = nil,
    _ deed:
      @escaping @Sendable (isolated PhoneDriver, _ gone: Set<String>, DeviceAPI, DeviceIdentity)
      async throws -> Void
  ) {
    let (pool, configuration, before) = (pool, configuration, registrations[phone])
    let unknown = [RelayCore.DeviceRefusal.unknownApp, .unknownChannel].map(\.row.reason)
    untold += 1
    registrations[phone] = Task {
      defer { told() }
      await before?.value
      do {
        let api = DeviceAPI(try await pool.client(for: phone))
        let gone = uninstalled(on: phone).union([app].compactMap(\.self))
        try await deed(self, gone, api, try await configuration.identify(phone, gone, api))
      } catch ClientError.refused(let refusal) where isOver && unknown.contains(refusal.reason) {
      } catch {
        let isRefused = if case ClientError.refused = error { true } else { false }
        warn("\(what): the relay \(isRefused ? "refuses it" : "could not be told"): \(error)")
      }
    }
  }
}

extension PhoneDriver {
  /// At a time; the newest are dropped.
  private static let waitingTokens = 1000

  /// As an app does that has got a token. Each once, one after another; all texts are plain.
  private func handOver(
    _ token: String, of address: ActivityAddress, _ app: String, _ phone: Int,
    _ identity: DeviceIdentity
  ) {
    guard let url = configuration.tokensTo,
      handed[phone, default: [:]].updateValue(token, forKey: address.part + app) != token
    else { return }
    let (kind, type, activity): (String, String?, String)
    switch address {
    case .start(let name): (kind, type, activity) = ("start", name, "null")
    case .update(let id):
      let found = simulation.model(of: phone).app(named: app)?.live[id]
      (kind, type, activity) = ("update", found?.type, "\(id.number)")
    case .channel: return
    }
    let body = """
      {"device":"\(identity.device)","app":"\(app)","activity":\(activity),\
      "attributesType":"\(type ?? "")","token":"\(token)","kind":"\(kind)"}
      """
    if handover == nil {
      let (queue, bodies) = AsyncStream.makeStream(
        of: String.self, bufferingPolicy: .bufferingOldest(Self.waitingTokens))
      handover = (bodies, Task { for await body in queue { await post(body, to: url) } })
    }
    untold += 1
    if case .dropped = handover?.bodies.yield(body) {
      untold -= 1
      warn("\(url): more than \(Self.waitingTokens) tokens wait; the newest are dropped")
    }
  }

  private func post(_ body: String, to url: String) async {
    defer { told() }
    do {
      try await client().post(Array(body.utf8), to: url)
    } catch  where !Task.isCancelled {
      warn("a token could not be handed to \(url): \(error)")
    } catch {}
  }
}
