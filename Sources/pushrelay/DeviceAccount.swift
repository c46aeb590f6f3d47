import RelayClient
import RelayCore

/// A device of ours: enrolled once, stored in `STATE/devices/NAME.json`, its apps registered at
/// each connection.
struct DeviceAccount: Sendable {
  let name: String
  let state: String
  /// Empty for the apps of last time, or `com.example.app`.
  let topics: [String]
  /// Channels that the first of these apps subscribes to.
  var channels: [String] = []
  /// Brings its own token for the only app.
  var token: String?
  var enrolmentKey: String?
  /// The service of an app, `sandbox` or `production`; nil for both.
  var environment: @Sendable (_ topic: String) -> String? = { _ in nil }
  /// Reports apps' tokens: all at first, then new ones.
  let say: @Sendable (String) -> Void

  /// Returns the device's identity, known or new, with its apps registered except `gone`. Enrols
  /// again if the relay has forgotten the device.
  func register(
    _ api: DeviceAPI, isFirst: Bool, without gone: Set<String> = []
  ) async throws -> DeviceIdentity {
    let known = try DeviceFile.load(name, state: state)
    if let known {
      do {
        return try await registerApps(api, known, isFirst: isFirst, without: gone)
      } catch ClientError.refused(let refusal) where refusal.reason == "UnknownDevice" {
        Console.log(
          "\(name): this relay does not know the device (its store was memory?); enrolling anew")
      }
    }
    var fresh = DeviceFile(try await api.enroll(enrolmentKey: enrolmentKey, name: name))
    fresh.apps = known?.apps ?? [:]
    return try await registerApps(api, fresh, isFirst: true, without: gone)
  }

  /// The apps to register: those asked for, those of last time, or one.
  static func topics(_ wanted: [String], of name: String, state: String) throws -> [String] {
    if !wanted.isEmpty { return wanted }
    let known = try DeviceFile.load(name, state: state)?.apps.keys.sorted() ?? []
    return known.isEmpty ? ["com.example.app"] : known
  }

  private func registerApps(
    _ api: DeviceAPI, _ known: DeviceFile, isFirst: Bool, without gone: Set<String>
  ) async throws -> DeviceIdentity {
    var file = known
    for topic in try Self.topics(topics, of: name, state: state) where !gone.contains(topic) {
      let token = try await api.register(
        topic: topic, token: token, environment: environment(topic), of: file.identity)
      let isNew = file.apps.updateValue(token, forKey: topic) != token
      if isFirst || isNew { say("token of \(topic): \(token)") }
    }
    if let first = try Self.topics(topics, of: name, state: state).first, !gone.contains(first) {
      for id in channels { try await api.subscribe(first, to: id, of: file.identity) }
    }
    let saved = try DeviceFile.load(name, state: state)
    if file != saved { try file.save(name, state: state) }
    return file.identity
  }
}
