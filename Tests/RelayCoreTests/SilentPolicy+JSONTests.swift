import Primitives
import Testing

@testable import RelayCore

/// Policies as people write them, and the names that come of it.
@Suite struct SilentPolicyJSONTests {
  private static let read: [(text: String, name: String, app: RateLimit?, device: RateLimit?)] = [
    ("strict", "strict", SilentPolicy.strict.perApp, SilentPolicy.strict.perDevice),
    ("{}", "unlimited", nil, nil), (#"{"app":null,"device":null}"#, "unlimited", nil, nil),
    (
      #"{"app":{"count":2,"per":"1d"},"device":{"count":12,"per":"1h"}}"#,
      "2 a day per app, 12 an hour per phone", RateLimit(2, per: .days(1), burst: 2),
      RateLimit(12, per: .hours(1), burst: 12)
    ),
    (
      #"{"device":{"count":7,"per":"1h","burst":1}}"#, "7 an hour (1 at once) per phone", nil,
      RateLimit(7, per: .hours(1), burst: 1)
    ),
    // As often as once an hour, but all at once after a day.
    (
      #"{"app":{"count":24,"per":"1d"}}"#, "1 an hour (24 at once) per app",
      RateLimit(24, per: .days(1), burst: 24), nil
    ),
    (
      #"{"app":{"count":1,"per":"25m"}}"#, "1 every 25m per app",
      RateLimit(1, per: .minutes(25), burst: 1), nil
    ),
    (
      #"{"app":{"count":90,"per":"1m"}}"#, "90 a minute per app",
      RateLimit(90, per: .minutes(1), burst: 90), nil
    ),
  ]

  @Test(arguments: read) func policiesAreReadAndNamed(
    text: String, name: String, app: RateLimit?, device: RateLimit?
  ) throws {
    let policy = try SilentPolicy(text: text)
    #expect(policy == SilentPolicy(name: name, perApp: app, perDevice: device))
    #expect(try SilentPolicy(text: policy.text) == policy, "\(policy.text)")
  }

  /// Whatever the numbers, the text keeps them.
  @Test func aTextLosesNothing() throws {
    var random = SeededRandom(seed: 7)
    for _ in 0..<500 {
      func limit() -> RateLimit? {
        guard random.chance(80) else { return nil }
        return RateLimit(
          1 + random.below(1000), per: .milliseconds(1 + random.below(86_400_000)),
          burst: 1 + random.below(1000))
      }
      let policy = SilentPolicy(perApp: limit(), perDevice: limit())
      #expect(try SilentPolicy(text: policy.text) == policy, "\(policy.text)")
    }
  }

  private static let refused: [(text: String, why: String)] = [
    ("lax", #""lax" is none of documented, strict, unlimited, or numbers: {"app":"#),
    ("", "\"\" is none of"), ("{", "{: this is not JSON"), (#"{"app":3}"#, "app is count and per"),
    (#"{"perApp":{}}"#, "perApp is neither app nor device"),
    (#"{"app":{"per":"1h"}}"#, "app is count and per"),
    (#"{"device":{"count":2}}"#, "device is count and per"),
    (#"{"app":{"count":0,"per":"1h"}}"#, "app is"),
    (#"{"app":{"count":1.5,"per":"1h"}}"#, "app is"),
    (#"{"app":{"count":1000001,"per":"1h"}}"#, "app is"),
    (#"{"app":{"count":1,"per":"0s"}}"#, "app is"),
    (#"{"app":{"count":1001,"per":"1s"}}"#, "app is"),
    (#"{"app":{"count":1,"count":2,"per":"1h"}}"#, "app is"),
    (#"{"app":null,"app":{"count":1,"per":"1h"}}"#, "app stands there twice"),
    (#"{"app":{"count":1,"per":3600}}"#, "app is"),
    (#"{"app":{"count":1,"per":"1h","burst":0}}"#, "app is"),
    (#"{"app":{"count":1,"per":"1h","brust":2}}"#, "app is"),
  ]

  @Test(arguments: refused) func whatIsNoPolicyIsSaid(text: String, why: String) {
    let error = #expect(throws: SilentPolicyError.self) { try SilentPolicy(text: text) }
    #expect(error?.description.hasPrefix(why) == true, "\(String(describing: error))")
  }
}
