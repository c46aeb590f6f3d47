package import Primitives

/// Every bound of the relay in one place. Nothing a peer sends decides how much memory is used;
/// these numbers do. Reaching one is an answer to the peer, never a crash.
package enum Limits {
  /// Bytes of a device token (Apple: its length is not fixed, "Registering your app with APNs").
  package static let deviceTokenBytes = 2...100
  /// Bytes of a topic. Apple's bundle identifiers end at 155 characters; suffixes come on top.
  package static let topicBytes = 1...255
  /// Bytes of an `apns-collapse-id` (Apple: "Sending notification requests to APNs").
  package static let collapseIDBytes = 64
  /// Bytes of a payload; `voip` has its own (same page).
  package static let payloadBytes = 4096
  package static let voipPayloadBytes = 5120
  /// Bytes of a device token, and of a payload, in the binary provider API; the second of its
  /// commands 0 and 1 (Apple, "Binary Provider API", archived).
  package static let binaryTokenBytes = 32
  package static let binaryPayloadBytes = 2048
  package static let simplePayloadBytes = 256
  /// Bytes of a frame there, and bytes behind a frame without a verdict above which no more is
  /// read. A payload that is too long fits, so that the frame's identifier is found.
  package static let binaryFrameBytes = 66_560
  /// Nesting of a payload's arrays and objects.
  package static let payloadDepth = 64
  /// How long anything may be stored (Apple, "Sending notification requests to APNs").
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
  /// Times that a device may say what it decides about a notification before its outcome; what it
  /// says beyond is not logged.
  package static let decisionsPerPush: UInt8 = 16
  /// Submissions and device requests of one shard that wait for the journal; one more is answered
  /// `ServiceUnavailable`.
  package static let pendingPersists = 262_144
  /// Events that a loop keeps back while the partitions they are for move to another node; one more
  /// is answered `ServiceUnavailable`.
  package static let parkedEvents = 262_144
  /// Bytes on their way from one loop to a loop of another node; and of one message there.
  package static let hopWindowBytes = 8 << 20
  package static let hopMessageBytes = 512 << 10
  /// Of an answer to what another node asks for people; a longer one is none.
  package static let nodeAnswerBytes = 16 << 20
  /// How long another node may take for an answer.
  package static let hopPatience = Interval.seconds(3)
  /// How late what one node tells another may come, and how long it may wait for a stripe to come
  /// to somebody: less than that, so that what was refused does not happen after all.
  package static let hopAge = Interval.seconds(2)
  /// By which the clocks of two nodes may differ, so that a hop that is on time is not late.
  package static let clockDifference = Interval.seconds(1)
  /// Apps of one shard whose held silent pushes are looked at in one step after the policy changed.
  package static let reviewedApps = 1024
  /// Devices of one shard that have a policy of their own; for one more nothing changes.
  package static let ownPolicies = 10_000
  /// Devices of one shard; one more registration is answered with an error.
  package static let devicesPerShard = 16_000_000
  /// Tokens that devices brought along, in the shard that their last eight bytes name; one more is
  /// answered with an error. A device has one an app at most (`appsPerDevice`).
  package static let aliasesPerShard = 1_000_000
  /// Claims and returns of such tokens under way, of one device and of all devices of a shard; one
  /// more is answered `ServiceUnavailable`.
  package static let tokenChangesPerDevice = 16
  package static let tokenChangesPerShard = 65_536
  /// Budgets of removed apps that one shard remembers until they are full again; beyond it one is
  /// full when the app comes back.
  package static let formerBudgets = 100_000
  /// Acknowledged pushes that their provider gave an `apns-id`, as one shard remembers them, and
  /// how long; the oldest are forgotten first.
  package static let takenPushes = 16_384
  package static let takenPushAge = Interval.minutes(1)
  /// How often a token's shard on another node is asked, and how long an answer may take.
  package static let tokenQuestions: UInt8 = 5
  package static let tokenQuestionInterval = Interval.seconds(1)
  /// Unregistered tokens that one shard remembers for 410; the oldest are forgotten first and then
  /// answered `BadDeviceToken`.
  package static let unregisteredTokens = 100_000

  /// Bytes of request headers, as HTTP/2 counts them (Apple, "Sending notification requests to
  /// APNs").
  package static let headerListBytes = 8000
  /// Bytes that one batch of requests may become: 32 times a read. HPACK makes much of little, so
  /// the bytes received do not bound it.
  package static let batchBytes = 2_097_152
  /// Requests and bytes that a connection's turn on its loop takes in; the rest waits for the next.
  package static let turnRequests = 1024
  package static let turnBytes = 262_144
  /// Concurrent streams: before and after the first valid provider token (Apple, "Sending
  /// notification requests to APNs").
  package static let unauthenticatedStreams: UInt32 = 1
  package static let providerStreams: UInt32 = 1000
  /// Questions (`ProviderQuery`) of one connection that are being looked into; one more is answered
  /// `ServiceUnavailable`.
  package static let questionsPerConnection = 16
  /// Requests under way on one provider connection that has shown no valid credentials, of clients
  /// that have not read our SETTINGS; those that fail their checks above it are refused unanswered.
  package static let refusedRequests = 100
  /// Streams of one connection of devices: before a device's secret was accepted on it, and after.
  package static let unauthenticatedDeviceStreams: UInt32 = 16
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
  /// How far the machine's clock must have been set for the relay to follow.
  package static let clockStep = Interval.milliseconds(100)
  /// How long a peer may take none of its unsent bytes before its connection is closed.
  package static let stalled = Interval.minutes(5)
  /// Bytes that TLS itself wants to say (handshake, tickets, alerts) and cannot.
  package static let pendingTLSBytes = 65_536
  /// Bytes of answers and lines that wait on all streams of one connection for the peer to read.
  package static let providerQueuedBytes = 4_194_304
  package static let deviceQueuedBytes = 67_108_864

  /// Devices that one question for a list looks at on one loop before it goes on elsewhere.
  package static let listedDevices = 20_000
  /// Connections to each listener of the admin API. On the Unix socket others wait; on TCP the
  /// oldest that has not shown the token goes for the next, and so many of those have a place
  /// whoever else is there. Bytes that are read of one at once, and of an answer that the kernel
  /// may hold; how long a stranger may take none of it. The bytes of a request's header, and how
  /// long there may be half a request or none.
  package static let adminConnections = 1024
  package static let adminStrangers = 64
  package static let adminReadBytes = 1024
  package static let adminUnsentBytes = 65_536
  package static let adminUnread = Interval.seconds(5)
  package static let adminHeaderBytes = 16_384
  package static let adminIdle = Interval.seconds(30)
  /// Megabytes of one recording, at most.
  package static let recordingMegabytes = 4096
  /// Notifications that one question for a list looks at on one loop.
  package static let listedLives = 50_000
  /// Events of all loops that people who look on can still read.
  package static let feedEvents = 50_000
  /// Events that one node tells another at once; of those before it tells how many they are.
  package static let nodeFeedEvents = 1000
  /// Batches of events on their way from the loops to the feed.
  package static let feedBatches = 4096
  /// Refused requests of providers that one loop remembers.
  package static let rememberedRefusals = 200
  /// Changes of devices (they come, go, report) that one loop remembers.
  package static let rememberedChanges = 10_000
  /// Accepted notifications of which one loop remembers what was odd about them, and their traces.
  package static let rememberedNotes = 10_000
  /// Topics that metrics tell apart on one loop, where that is asked for; the rest are `other`.
  package static let namedTopics = 50
  /// Faults in force at once, and how long a connection may be on which one lets nothing pass.
  package static let faults = 100
  package static let muted = Interval.minutes(10)
  /// States that a relay can be taken back to, and about how many bytes they may take, all
  /// together.
  package static let checkpoints = 100
  package static let checkpointBytes = 268_435_456

  /// Relations between the numbers above, asserted by a test: a change that breaks one is noticed.
  package static var relationsHold: Bool {
    payloadBytes <= voipPayloadBytes
      // A line holds the largest payload and its envelope.
      && lineBytes >= voipPayloadBytes * 2
      // A whole window of lines fits what a connection may hold back.
      && unsentBytes >= lineBytes
      && discardedBytes > voipPayloadBytes
      && simplePayloadBytes <= binaryPayloadBytes && binaryPayloadBytes <= payloadBytes
      && deviceTokenBytes.contains(binaryTokenBytes)
      // The longest item, the four others, and what stands before each.
      && binaryFrameBytes >= Int(UInt16.max) + binaryTokenBytes + 9 + 5 * 3
      && unauthenticatedStreams <= providerStreams
      && tokenChangesPerDevice <= tokenChangesPerShard
      && refusedRequests <= Int(providerStreams)
      && unauthenticatedDeviceStreams <= deviceStreams
      // A device's whole window of frames fits, and so does a page of feedback.
      && deviceQueuedBytes >= inFlightPerDevice * lineBytes
      && providerQueuedBytes >= 1_048_576
      && deviceTokenBytes.upperBound <= Int(UInt8.max)
      && inFlightPerDevice >= 1
  }
}
