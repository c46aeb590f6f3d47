import RelayCore

/// What one loop tells another at the end of a batch: one hop, whatever it holds.
struct LoopMessage: Sendable {
  var events: [Event] = []
  var effects: [Effect] = []
  var changes: [TokenDirectory.Change] = []
  var claims: [TokenClaim] = []

  var isEmpty: Bool {
    events.isEmpty && effects.isEmpty && changes.isEmpty && claims.isEmpty
  }
}

/// A device's wish to use a token that the relay has not minted, on its way through the loops.
struct TokenClaim: Sendable {
  enum Step: Sendable {
    /// Loop 0 asks the directory, and reserves.
    case directory
    /// The shard that would have minted this token looks whether it has.
    case minter
    /// The device's own shard registers.
    case owner
  }

  var token: DeviceToken
  var owner: Int
  var event: Event
  var request: RequestID
  var step: Step
}

/// Which shard has the tokens that devices brought along. Tokens of the relay's own say it
/// themselves.
///
/// Every loop has a copy; registrations are rare and pushes are many.
struct TokenDirectory: Sendable {
  struct Change: Sendable {
    var token: DeviceToken
    var owner: Int
    var isHere: Bool
  }

  private var owners: [DeviceToken: Int] = [:]

  /// The shard that knows the token, if any does.
  func shard(of token: DeviceToken, count: Int) -> Int {
    if count == 1 { return 0 }
    if !owners.isEmpty, let owner = owners[token] { return owner }
    return shardIndex(forRoutingKey: token.routingKey, count: count)
  }

  /// Notes that a token goes to a shard; false when another shard has it.
  mutating func reserve(_ token: DeviceToken, for owner: Int) -> Bool {
    if let present = owners[token] { return present == owner }
    owners[token] = owner
    return true
  }

  mutating func apply(_ change: Change) {
    if change.isHere {
      owners[change.token] = change.owner
    } else if owners[change.token] == change.owner {
      owners[change.token] = nil
    }
  }
}
