package import Primitives

/// A token that a device brought along, and the app that it is for.
package struct OwnToken: Hashable, Sendable {
  package var token: DeviceToken
  package var device: DeviceID
  package var topic: Topic

  package init(token: DeviceToken, device: DeviceID, topic: Topic) {
    self.token = token
    self.device = device
    self.topic = topic
  }
}

/// What shards tell each other about tokens that devices bring along. Facts, like all events; the
/// shard that a fact is for may be the one that tells it.
package enum AliasEvent: Hashable, Sendable {
  // To the token's shard.
  /// A device proved who it is and wants the token. `decided` answers.
  case claimed(OwnToken)
  /// The device uses the token no longer: since then, or it never did. `released` answers.
  case left(OwnToken, since: Instant?)
  /// After a restart: the device's shard has an app with this token.
  case confirmed(OwnToken)
  /// After a restart: every shard has said which tokens its apps have. What nobody has confirmed by
  /// now is released.
  case allConfirmed

  // To the device's shard.
  case decided(OwnToken, ClaimDecision)
  case released(OwnToken)
  /// After a restart: another app has the token.
  case denied(OwnToken)
  /// A provider pushed to the alias.
  case forwarded(Notification, to: DeviceID, from: RequestID)
  /// After a restart: a notification for the alias was stored.
  case restored(Notification, to: DeviceID, sequence: UInt64, acceptedAt: Instant)
  /// Somebody else wants the token: whether the app that it was granted to still has it.
  case questioned(OwnToken)
}

/// What a token's shard makes of a claim.
package enum ClaimDecision: Hashable, Sendable {
  /// The journal has the grant.
  case granted
  case refused(DeviceRefusal)
}

/// Where a push to a token of a device's own goes: kept by the token's shard, granted to one app.
package struct Alias: Hashable, Sendable {
  package var own: OwnToken
  /// The journal's number of the grant. Pushes find the alias when the journal has it.
  package var grant: UInt64
  /// When the token went from an earlier owner: says 410 again if nobody gets it this time.
  package var goneBefore: Instant?
  /// False when it has come back and no registration has confirmed it yet.
  package var isConfirmed = true

  package init(
    own: OwnToken, grant: UInt64, goneBefore: Instant? = nil, isConfirmed: Bool = true
  ) {
    self.own = own
    self.grant = grant
    self.goneBefore = goneBefore
    self.isConfirmed = isConfirmed
  }

  /// What lies in a free place of a slab.
  static let vacant = Alias(
    own: OwnToken(
      token: .vacant, device: DeviceID(UniqueID(high: 0, low: 0)), topic: .vacant), grant: 0)
}

/// What waits for the journal's word on the way of a token to a device and back.
package enum AliasStep: Hashable, Sendable {
  /// At the token's shard: tell the device's.
  case grant(OwnToken)
  /// At the device's shard: the app gets the token; give back the one it replaces, then answer.
  case registration(OwnToken)
  /// At the device's shard: the app goes; give its token back, then answer. Minted ones, too. When
  /// that was asked for: the journal and the 410 say the same moment.
  case removal(OwnToken, at: Instant)
}
