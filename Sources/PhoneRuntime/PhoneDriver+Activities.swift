import DeviceSimulator
import RelayClient
import RelayCore

/// Tokens of Live Activities: registered while their activities last (docs/PROTOCOL.md, "Live
/// Activities").
extension PhoneDriver {
  /// The phone's relay identity, before a stream. What came or ended while it had none is told now.
  func identity(of phone: Int, _ api: DeviceAPI) async throws -> DeviceIdentity {
    let identity = try await configuration.identify(phone, uninstalled(on: phone), api)
    guard simulation.hasActivities(phone) else { return identity }
    let wanted = simulation.activityTopics(of: phone)
    for topic in wanted { _ = try await api.register(topic: topic, of: identity) }
    for name in try await api.topics(of: identity) where !wanted.contains(name) {
      guard let topic = Topic(name), topic.whole != topic else { continue }
      try await api.unregister(topic: name, of: identity)
    }
    return identity
  }

  /// A token has come or ended. In sequence, so that one that was renewed is registered last.
  func tellRelay(of topic: String, isValid: Bool, _ phone: Int) {
    // Before the first stream `identity` tells of all.
    guard phones[phone].hasConnected else { return }
    let (pool, configuration, before) = (pool, configuration, registrations[phone])
    registrations[phone] = Task {
      await before?.value
      do {
        let api = DeviceAPI(try await pool.client(for: phone))
        let identity = try await configuration.identify(phone, uninstalled(on: phone), api)
        if isValid {
          _ = try await api.register(topic: topic, of: identity)
        } else {
          try await api.unregister(topic: topic, of: identity)
        }
      } catch ClientError.refused(let refusal)
        where refusal.reason == RelayCore.DeviceRefusal.unknownApp.row.reason
      {
        // It was told before.
      } catch {
        configuration.warn("\(topic): the relay could not be told: \(error)")
      }
    }
  }
}
