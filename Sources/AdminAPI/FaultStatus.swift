import Primitives
package import RelayCore
package import RelayFaults

/// A fault in force.
package struct FaultStatus: Codable, Sendable {
  package struct Match: Codable, Sendable {
    package var topic: String?
    package var device: String?
    package var token: String?
    package var kind: String?

    package init(topic: String?, device: String?, token: String?, kind: String?) {
      (self.topic, self.device, self.token, self.kind) = (topic, device, token, kind)
    }
  }

  /// Hits only those beyond so many in so long.
  package struct Rate: Codable, Sendable {
    package var over: Int64
    package var per: String
  }

  /// The detail of an action: a text, or only `true`.
  package enum Detail: Codable, Sendable {
    case text(String)
    case flag

    package init(from decoder: any Decoder) throws {
      let text = try? decoder.singleValueContainer().decode(String.self)
      self = text.map(Detail.text) ?? .flag
    }

    package func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .text(let text): try container.encode(text)
      case .flag: try container.encode(true)
      }
    }
  }

  package var name: String
  package var at: String
  package var `do`: [String: Detail]
  package var match: Match
  package var skip: Int
  package var times: Int?
  package var probability: Double
  package var rate: Rate?
  package var seed: UInt64
  package var until: Int64?
  package var seen: Int
  package var hit: Int

  package init(_ rule: FaultRule) {
    let fault = rule.fault
    name = rule.name
    at = fault.place.rawValue
    `do` = [fault.action.name: Self.detail(fault.action).map(Detail.text) ?? .flag]
    match = Match(
      topic: fault.match.topic, device: fault.match.device?.description,
      token: fault.match.token?.hexadecimal, kind: fault.match.kind?.name)
    skip = fault.when.skip
    times = fault.when.times
    probability = fault.when.probability
    rate = fault.when.over.map { Rate(over: $0.burst, per: ($0.interval * $0.burst).text) }
    seed = fault.seed
    until = rule.until?.milliseconds
    let tally = rule.tally
    seen = tally.seen
    hit = tally.hit
  }

  private static func detail(_ action: Fault.Action) -> String? {
    switch action {
    case .answer(let rejection): rejection.reason
    case .answerChannels(let refusal): refusal.row.reason
    case .delay(let length), .stall(let length): length.text
    case .goAway(let goAway): goAway.rawValue
    case .drop, .reset, .duplicate, .halfClose, .blackhole, .failWrite: nil
    }
  }
}

/// A device token that always answers this reason.
package struct ReservedTokenStatus: Codable, Sendable {
  package var token: String
  package var status: Int
  package var reason: String

  package init(_ rejection: Rejection) {
    token = ReservedToken.token(answering: rejection)
    status = Int(rejection.status)
    reason = rejection.reason
  }
}
