import RelayCore

/// Tokens that devices bring along.
extension ShardRunner {
  /// Registers an app with a token that the device brought along. Whether it is free is decided by
  /// loop 0, which sees all such claims in one order, and by the shard that would have minted it.
  func claim(_ token: DeviceToken, for device: DeviceID, event: Event, request: RequestID) {
    let owner = shardIndex(forRoutingKey: device.routingKey, count: peers.count)
    let claim = TokenClaim(
      token: token, owner: owner, event: event, request: request, step: .directory)
    deliver(claim, to: 0)
  }

  private func deliver(_ claim: TokenClaim, to loop: Int) {
    if loop == Int(index) { handle(claim) } else { outboxes[loop].claims.append(claim) }
  }

  func handle(_ claim: TokenClaim) {
    var claim = claim
    let minter = shardIndex(forRoutingKey: claim.token.routingKey, count: peers.count)
    switch claim.step {
    case .directory:
      guard directory.reserve(claim.token, for: claim.owner) else { return refuse(claim) }
      claim.step = .minter
      deliver(claim, to: minter)
    case .minter:
      guard minter == claim.owner || !shard.holds(claim.token) else { return refuse(claim) }
      claim.step = .owner
      deliver(claim, to: claim.owner)
    case .owner:
      raise(claim.event, on: claim.owner, at: now)
    }
  }

  private func refuse(_ claim: TokenClaim) {
    effects.append(.answer(claim.request, .refused(.tokenTaken)))
  }
}
