package import Primitives

/// Why a policy cannot be read, for people.
package struct SilentPolicyError: Error, Equatable, CustomStringConvertible {
  package let description: String

  /// All that a policy can be.
  package static let forms =
    SilentPolicy.named.map(\.name).joined(separator: ", ")
    + #", or numbers: {"app":{"count":2,"per":"1d"},"device":{"count":12,"per":"1h"}}"#
}

/// Policies as people write them: a name, or an object with the limits `app` and `device`. One that
/// is missing or null is none; its `burst` is its `count` unless it says another.
extension SilentPolicy {
  private static let counts = Int64(1)...1_000_000

  /// Its name tells the numbers: `2 a day per app, 12 an hour per phone`.
  package init(perApp: RateLimit?, perDevice: RateLimit?) {
    let parts = [(perApp, "app"), (perDevice, "phone")].compactMap { limit, owner in
      limit.map { "\($0.words) per \(owner)" }
    }
    self.init(
      name: parts.isEmpty ? Self.unlimited.name : parts.joined(separator: ", "), perApp: perApp,
      perDevice: perDevice)
  }

  /// A name, or that object.
  package init(json tree: JSONTree) throws(SilentPolicyError) {
    switch tree.value {
    case .text(let name): try self.init(named: name)
    case .object(let members):
      if let stranger = members.first(where: { $0.key != "app" && $0.key != "device" }) {
        throw SilentPolicyError(description: "\(stranger.key) is neither app nor device")
      }
      if let twice = members.map(\.key).repeated {
        throw SilentPolicyError(description: "\(twice) stands there twice")
      }
      self.init(
        perApp: try Self.limit("app", in: tree), perDevice: try Self.limit("device", in: tree))
    case .list, .number, .flag, .null:
      throw SilentPolicyError(description: "a policy is one of \(SilentPolicyError.forms)")
    }
  }

  /// The same as text: a name stands there without quotes.
  package init(text: String) throws(SilentPolicyError) {
    guard text.hasPrefix("{") else {
      try self.init(named: text)
      return
    }
    let tree: JSONTree
    do throws(JSONTreeError) {
      tree = try JSONTree.read(Array(text.utf8))
    } catch {
      throw SilentPolicyError(description: "\(text): \(error.text)")
    }
    try self.init(json: tree)
  }

  private init(named name: String) throws(SilentPolicyError) {
    guard let named = Self.named.first(where: { $0.name == name }) else {
      throw SilentPolicyError(description: "\"\(name)\" is none of \(SilentPolicyError.forms)")
    }
    self = named
  }

  /// As `init(text:)` reads it: no number is lost where only a text is kept.
  package var text: String {
    guard !Self.named.contains(self) else { return name }
    func object(_ limit: RateLimit?) -> String {
      limit.map { #"{"count":1,"per":"\#($0.interval.text)","burst":\#($0.burst)}"# } ?? "null"
    }
    return #"{"app":\#(object(perApp)),"device":\#(object(perDevice))}"#
  }

  private static func limit(
    _ key: String, in tree: JSONTree
  ) throws(SilentPolicyError) -> RateLimit? {
    guard let limit = tree[key] else { return nil }
    if case .null = limit.value { return nil }
    func number(_ key: String) -> Int64? {
      guard case .number(let number)? = limit[key]?.value else { return nil }
      return Int64(exactly: number).flatMap { counts.contains($0) ? $0 : nil }
    }
    guard case .object(let members) = limit.value,
      members.allSatisfy({ ["count", "per", "burst"].contains($0.key) }),
      members.map(\.key).repeated == nil,
      let count = number("count"), let burst = limit["burst"] == nil ? count : number("burst"),
      let per = limit["per"]?.text.flatMap({ Interval($0) }), per.milliseconds >= count
    else {
      throw SilentPolicyError(
        description: "\(key) is count and per, such as {\"count\":2,\"per\":\"1d\"}, and perhaps "
          + "burst, each once; numbers are from 1 to \(counts.upperBound), and at most one a "
          + "millisecond comes back")
    }
    return RateLimit(count, per: per, burst: burst)
  }
}

extension RateLimit {
  /// `2 a day`, `1 every 25m`; with `(3 at once)` if that is another number.
  fileprivate var words: String {
    var (count, per) = (Int64(1), "every \(interval.text)")
    let units = [("a minute", Interval.minutes(1)), ("an hour", .hours(1)), ("a day", .days(1))]
    for (name, unit) in units {
      // Rounded, as the interval of 7 an hour is.
      let fitting = (unit.milliseconds + interval.milliseconds / 2) / interval.milliseconds
      guard fitting > 0, RateLimit(fitting, per: unit, burst: 1).interval == interval else {
        continue
      }
      (count, per) = (fitting, name)
      break
    }
    return "\(count) \(per)" + (burst == count ? "" : " (\(burst) at once)")
  }
}
