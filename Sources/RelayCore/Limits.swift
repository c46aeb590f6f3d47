/// Every bound of the relay in one place. Nothing a peer sends decides how much memory is used;
/// these numbers do. Reaching one is an answer to the peer, never a crash.
package enum Limits {
  /// Bytes of a device token (facts/apns.md, section 6.5: no fixed length; up to 100 announced).
  package static let deviceTokenBytes = 2...100
  /// Bytes of a topic. Apple's bundle identifiers end at 155 characters; suffixes come on top.
  package static let topicBytes = 1...255
  /// Bytes of an `apns-collapse-id` (Apple: "Sending notification requests to APNs").
  package static let collapseIDBytes = 64
  /// Bytes of a payload; `voip` has its own (same page).
  package static let payloadBytes = 4096
  package static let voipPayloadBytes = 5120
  /// Nesting of a payload's arrays and objects.
  package static let payloadDepth = 64
  /// How long anything may be stored (facts/apns.md, section 2.1).
  package static let storage = Interval.days(30)

  /// Apps on one device. Their slots bound what is stored for it: two per app.
  package static let appsPerDevice = 256
  /// Frames of one device that wait for an acknowledgement.
  package static let inFlightPerDevice = 32
  /// Frames of one notification on one connection, the first one included, before the connection
  /// ends because the device acknowledges none of them.
  package static let framesPerConnection: UInt8 = 4
  /// Outcomes that the devices of one shard promised for later; the oldest are forgotten first.
  package static let awaitedOutcomes = 65_536
  /// Submissions and device requests of one shard that wait for the journal; one more is answered
  /// `ServiceUnavailable`.
  package static let pendingPersists = 262_144
  /// Apps of one shard whose held silent pushes are looked at in one step after the policy changed.
  package static let reviewedApps = 1024
  /// Devices of one shard; one more registration is answered with an error.
  package static let devicesPerShard = 16_000_000
  /// Unregistered tokens that one shard remembers for 410; the oldest are forgotten first and then
  /// answered `BadDeviceToken`.
  package static let unregisteredTokens = 100_000

  /// Bytes of request headers, as HTTP/2 counts them (facts/apns.md, section 1.3).
  package static let headerListBytes = 8000
  /// Concurrent streams: before and after the first valid provider token (section 1.3).
  package static let unauthenticatedStreams: UInt32 = 1
  package static let providerStreams: UInt32 = 1000
  /// Questions (`ProviderQuery`) of one connection that are being looked into; one more is answered
  /// `ServiceUnavailable`.
  package static let questionsPerConnection = 16
  /// Device streams on one shared connection.
  package static let deviceStreams: UInt32 = 100_000
  /// Bytes of one line of the device link in either direction, payload included.
  package static let lineBytes = 16_384
  /// Unusable lines on one stream before it ends with a `bye`.
  package static let unusableLines = 10
  /// Bytes of the body of a device API request.
  package static let deviceBodyBytes = 4096
  /// Bytes a peer may send beyond a body limit before its stream is reset.
  package static let discardedBytes = 1_048_576
  /// Bytes of a provider token (a JWT).
  package static let providerTokenBytes = 4096
  /// Provider tokens that one event loop remembers as verified.
  package static let verifiedProviderTokens = 1000
  /// Connections on one event loop; more are closed at once.
  package static let connectionsPerLoop = 100_000
  /// Bytes handed to a socket and not yet taken before a connection stops producing more.
  package static let unsentBytes = 262_144

  /// Relations between the numbers above, asserted by a test: a change that breaks one is noticed.
  package static var relationsHold: Bool {
    payloadBytes <= voipPayloadBytes
      // A line holds the largest payload and its envelope.
      && lineBytes >= voipPayloadBytes * 2
      // A whole window of lines fits what a connection may hold back.
      && unsentBytes >= lineBytes
      && discardedBytes > voipPayloadBytes
      && unauthenticatedStreams <= providerStreams
      && deviceTokenBytes.upperBound <= Int(UInt8.max)
      && inFlightPerDevice >= 1
  }
}
