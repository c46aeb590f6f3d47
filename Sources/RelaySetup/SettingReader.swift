import Configuration
import FoundationEssentials
import Primitives
import RelayCore

/// Reads typed values. An unusable value is an error and never turns into the default.
struct SettingReader {
  private let config: ConfigReader

  init(_ config: ConfigReader) {
    self.config = config
  }

  func text(_ key: String, _ fallback: String) throws(RelayConfiguration.ReadingError) -> String {
    if let value = config.string(forKey: ConfigKey(key)) { return value }
    guard !isPresent(key) else { throw problem(key, "a text") }
    return fallback
  }

  func number(
    _ key: String, _ fallback: Int, _ range: ClosedRange<Int>
  ) throws(RelayConfiguration.ReadingError) -> Int {
    if let value = config.int(forKey: ConfigKey(key)), range.contains(value) { return value }
    guard !isPresent(key) else {
      throw problem(key, "a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return fallback
  }

  func optionalNumber(
    _ key: String, _ range: ClosedRange<Int>
  ) throws(RelayConfiguration.ReadingError) -> Int? {
    isPresent(key) ? try number(key, range.lowerBound, range) : nil
  }

  /// A moment in UTC, whole seconds; nil when it is absent.
  func moment(_ key: String) throws(RelayConfiguration.ReadingError) -> Instant? {
    let text = try text(key, "")
    guard !text.isEmpty else { return nil }
    let exact = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    guard let date = try? (try? exact.parse(text)) ?? Date(text, strategy: .iso8601),
      date.timeIntervalSince1970 >= 0
    else { throw problem(key, "a moment such as 2026-09-01T08:00:00Z") }
    return Instant(milliseconds: Int64((date.timeIntervalSince1970 * 1000).rounded()))
  }

  func seconds(
    _ key: String, _ fallback: Interval, mayBeZero: Bool = false
  ) throws(RelayConfiguration.ReadingError) -> Interval {
    let number =
      config.double(forKey: ConfigKey(key)) ?? config.int(forKey: ConfigKey(key)).map(Double.init)
    if let value = number, value < 1e9, value >= 0.001 || mayBeZero && value == 0 {
      return .milliseconds(Int64(value * 1000))
    }
    guard !isPresent(key) else {
      let range = "a number of seconds from 0.001 to below 1000000000"
      throw problem(key, mayBeZero ? "0, or \(range)" : range)
    }
    return fallback
  }

  /// Texts with commas between them, and blanks around them.
  func list(_ key: String) throws(RelayConfiguration.ReadingError) -> [String] {
    try text(key, "").replacing(" ", with: "").split(separator: ",").map(String.init)
  }

  func flag(_ key: String, _ fallback: Bool) throws(RelayConfiguration.ReadingError) -> Bool {
    if let value = config.bool(forKey: ConfigKey(key)) { return value }
    guard !isPresent(key) else { throw problem(key, "true or false") }
    return fallback
  }

  func choice<Choice: RawRepresentable<String> & CaseIterable>(
    _ key: String, _ fallback: Choice
  ) throws(RelayConfiguration.ReadingError) -> Choice {
    let name = try text(key, fallback.rawValue)
    guard let choice = Choice(rawValue: name) else {
      throw problem(key, Choice.allCases.map(\.rawValue).joined(separator: " or "))
    }
    return choice
  }

  func endpoint(
    _ key: String, _ fallback: RelayConfiguration.Endpoint
  ) throws(RelayConfiguration.ReadingError) -> RelayConfiguration.Endpoint {
    let value = try text(key, fallback.description)
    guard let endpoint = RelayConfiguration.Endpoint(value) else {
      throw problem(key, "HOST:PORT, for example \(fallback)")
    }
    return endpoint
  }

  /// nil when it is absent or empty.
  func optionalEndpoint(
    _ key: String
  ) throws(RelayConfiguration.ReadingError) -> RelayConfiguration.Endpoint? {
    guard try !text(key, "").isEmpty else { return nil }
    return try endpoint(key, .init(host: "127.0.0.1", port: 0))
  }

  func required(
    _ key: String, _ fallback: String
  ) throws(RelayConfiguration.ReadingError) -> String {
    let text = try text(key, fallback)
    guard !text.isEmpty else { throw problem(key, "a name") }
    return text
  }

  func policy() throws(RelayConfiguration.ReadingError) -> SilentPolicy {
    let text = try text("policy", SilentPolicy.documented.name)
    guard text == "custom" else {
      // One that is named may have been, to try it, instead of a file's custom.
      if !isPresent("policy"), let number = Self.customNumbers.first(where: isPresent) {
        throw .init(key: number, description: "\(number) goes with the policy custom: name that")
      }
      do throws(SilentPolicyError) {
        return try SilentPolicy(text: text)
      } catch {
        throw RelayConfiguration.ReadingError(key: "policy", description: "policy: \(error)")
      }
    }
    func limit(
      _ count: String, _ burst: String, _ fallback: Int
    ) throws(RelayConfiguration.ReadingError) -> RateLimit {
      RateLimit(
        Int64(try number(count, fallback, 1...3_600_000)), per: .hours(1),
        burst: Int64(try number(burst, fallback, 1...1_000_000)))
    }
    return SilentPolicy(
      perApp: try limit("appSilentsPerHour", "appSilentBurst", 3),
      perDevice: try limit("deviceSilentsPerHour", "deviceSilentBurst", 12))
  }

  private static let customNumbers = [
    "appSilentsPerHour", "appSilentBurst", "deviceSilentsPerHour", "deviceSilentBurst",
  ]

  /// Returns whether any source has a value of any type for the key.
  private func isPresent(_ key: String) -> Bool {
    let key = ConfigKey(key)
    return config.string(forKey: key) != nil || config.double(forKey: key) != nil
      || config.int(forKey: key) != nil || config.bool(forKey: key) != nil
      || config.stringArray(forKey: key) != nil
  }

  private func problem(_ key: String, _ expected: String) -> RelayConfiguration.ReadingError {
    RelayConfiguration.ReadingError(key: key, description: "\(key) must be \(expected)")
  }
}
