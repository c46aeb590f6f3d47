package import Primitives

/// A token that a device brought along, and its app.
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

/// Facts about tokens brought along by devices, from one shard to another or to itself.
package enum AliasEvent: Hashable, Sendable {
  // To the token's shard.
  /// An authenticated device wants the token. `decided` answers.
  case claimed(OwnToken)
  /// The device has not used the token since then, or never did. `released` answers.
  case left(OwnToken, since: Instant?)
  /// After a restart: the device's shard has an app with this token.
  case confirmed(OwnToken)
  /// After a restart: all shards have confirmed their apps' tokens; the other grants are released.
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
  /// Another device wants the token: does the app still have it?
  case questioned(OwnToken)
}

package enum ClaimDecision: Hashable, Sendable {
  /// The grant is in the journal.
  case granted
  case refused(DeviceRefusal)
}

/// The route of pushes to a device's own token, kept by the token's shard and granted to one app.
package struct Alias: Hashable, Sendable {
  package var own: OwnToken
  /// The journal's sequence of the grant, from which on pushes use the alias.
  package var grant: UInt64
  /// When the token left an earlier owner: the 410 if nobody gets it this time.
  package var goneBefore: Instant?
  /// False after a restart until a registration confirms it.
  package var isConfirmed = true

  package init(own: OwnToken, grant: UInt64, goneBefore: Instant? = nil, isConfirmed: Bool = true) {
    self.own = own
    self.grant = grant
    self.goneBefore = goneBefore
    self.isConfirmed = isConfirmed
  }

  package static let vacant = Alias(
    own: OwnToken(
      token: .vacant, device: DeviceID(UniqueID(high: 0, low: 0)), topic: .vacant), grant: 0)
}

/// A step of a token change that waits for the journal.
package enum AliasStep: Hashable, Sendable {
  /// At the token's shard: tell the device's.
  case grant(OwnToken)
  /// At the device's shard: the app gets the token; return the replaced one, then answer.
  case registration(OwnToken)
  /// At the device's shard: the app goes; return its token, minted or not, then answer. `at` is the
  /// request's moment, for both the journal and the 410.
  case removal(OwnToken, at: Instant)
}
