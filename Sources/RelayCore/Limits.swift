package import Primitives

/// Every bound of the relay. Memory use depends on these, not on peers; excess is answered.
package enum Limits {
  /// Apple: the length is not fixed ("Registering your app with APNs").
  package static let deviceTokenBytes = 2...100
  /// Apple's bundle identifiers end at 155 characters; suffixes come on top.
  package static let topicBytes = 1...255
  /// Bytes of an `apns-collapse-id` (Apple: "Sending notification requests to APNs").
  package static let collapseIDBytes = 64
  /// Bytes of a payload; `voip` has its own (same page).
  package static let payloadBytes = 4096
  package static let voipPayloadBytes = 5120
  /// Bytes of tokens and payloads in the binary provider API; the last in commands 0 and 1 (Apple,
  /// "Binary Provider API", archived).
  package static let binaryTokenBytes = 32
  package static let binaryPayloadBytes = 2048
  package static let simplePayloadBytes = 256
  /// Bytes of a frame there, and buffered bytes after a frame without a verdict. An overlong
  /// payload fits, so that the frame's identifier is found.
  package static let binaryFrameBytes = 66_560
  /// Nesting of a payload's arrays and objects.
  package static let payloadDepth = 64
  /// The longest storage time (Apple, "Sending notification requests to APNs").
  package static let storage = Interval.days(30)

  /// Two slots per app bound what is stored for a device.
  package static let appsPerDevice = 256
  /// Frames of one device waiting for an acknowledgement.
  package static let inFlightPerDevice = 32
  /// Frames of one notification on one connection before it is closed for lack of acknowledgements.
  package static let framesPerConnection: UInt8 = 4
  /// Outcomes promised for later, per shard; the oldest are forgotten first.
  package static let awaitedOutcomes = 65_536
  /// Logged decisions of a device about one notification before its outcome.
  package static let decisionsPerPush: UInt8 = 16
  /// Pending submissions and device requests of one shard; beyond: `ServiceUnavailable`.
  package static let pendingPersists = 262_144
  /// Stripes of a cluster's journal.
  package static let stripes = 1...256
  /// Events kept on a loop while partitions move to another node; beyond: `ServiceUnavailable`.
  package static let parkedEvents = 262_144
  /// Bytes in transit from one loop to a loop of another node, and bytes of one message there.
  package static let hopWindowBytes = 8 << 20
  package static let hopMessageBytes = 512 << 10
  /// The pause behind a loop's messages to other nodes for each item in them, and at most; what
  /// waits meanwhile goes together.
  package static let hopPausePerItemMicroseconds: Int64 = 100
  package static let hopPauseMicroseconds: Int64 = 4000
  /// Bytes of another node's answer for people; a longer one is dropped.
  package static let nodeAnswerBytes = 16 << 20
  /// How long another node may take to answer.
  package static let hopPatience = Interval.seconds(3)
  /// The maximum age of a message between nodes, including its wait for a stripe's owner: below
  /// `hopPatience`, so that what was refused does not happen after all.
  package static let hopAge = Interval.seconds(2)
  /// How long a cluster lists a node that has given no sign of life.
  package static let goneNodeKept = Interval.seconds(86_400)
  /// Tolerated difference between two nodes' clocks, so that a timely hop is not too old.
  package static let clockDifference = Interval.seconds(1)
  /// Apps of one shard whose held silent pushes are reviewed in one step after a policy change.
  package static let reviewedApps = 1024
  /// Channels of an app (Apple, "Sending channel management requests to APNs"), of a relay, and of
  /// a cluster.
  package static let channelsPerApp = 10_000
  package static let channels = 50_000
  package static let channelsInCluster = 10_000
  /// Bytes of a broadcast's payload, and how long one is stored (same page).
  package static let broadcastPayloadBytes = 5120
  package static let broadcastStorage = Interval.hours(8)
  /// Channels that an app of a device subscribes to.
  package static let channelsPerSubscriber = 64
  /// Subscribers of one shard that get a broadcast in one step, and how long its loop rests after
  /// it: others on the same cores have their turn. Unfinished broadcasts of a shard (of more, the
  /// oldest ends where it is), and unsent bytes of a device's stream beyond which it is left out.
  package static let broadcastSlice = 256
  package static let broadcastPauseMicroseconds: Int64 = 300
  package static let broadcastsUnderWay = 1024
  package static let broadcastUnsentBytes = 65_536
  /// Streams of one loop for which other loops and nodes have broadcasts, 16 bytes each; of more,
  /// the oldest are left out.
  package static let broadcastStreamsWaiting = 1 << 20
  /// Conditions on headers and payload of a search among requests, each on every request kept.
  package static let requestConditions = 16
  /// Requests that such a search looks at before others have their turn.
  package static let requestsATurn = 16
  /// Unfinished requests about channels on one connection; beyond: `Service Unavailable`.
  package static let channelRequests = 100
  /// Devices of one shard with their own policy; further ones are ignored.
  package static let ownPolicies = 10_000
  /// Bytes of a device's name, and devices of a relay with one; further names are not kept.
  package static let deviceNameBytes = 1...64
  package static let deviceNames = 100_000
  /// Devices of one shard; further registrations are refused.
  package static let devicesPerShard = 16_000_000
  /// Tokens brought along by devices, in the shard of their last eight bytes; further ones are
  /// refused. A device has at most one an app (`appsPerDevice`).
  package static let aliasesPerShard = 1_000_000
  /// Pending claims and returns of such tokens; beyond: `ServiceUnavailable`.
  package static let tokenChangesPerDevice = 16
  package static let tokenChangesPerShard = 65_536
  /// Budgets of removed apps per shard; beyond, a returning app's is full.
  package static let formerBudgets = 100_000
  /// Acknowledged pushes with an `apns-id` remembered per shard, and how long.
  package static let takenPushes = 16_384
  package static let takenPushAge = Interval.minutes(1)
  /// Questions to a token's shard on another node, and the time for each answer.
  package static let tokenQuestions: UInt8 = 5
  package static let tokenQuestionInterval = Interval.seconds(1)
  /// Unregistered tokens remembered per shard for 410; older ones get `BadDeviceToken`.
  package static let unregisteredTokens = 100_000

  /// As HTTP/2 counts them (Apple, "Sending notification requests to APNs").
  package static let headerListBytes = 8000
  /// Bytes of one batch of requests: 32 times a read, as HPACK expands what is received.
  package static let batchBytes = 2_097_152
  /// Requests and bytes of a connection's turn on its loop; the rest waits for the next.
  package static let turnRequests = 1024
  package static let turnBytes = 262_144
  /// HTTP/2 frames without effect that a connection may send a second without end.
  package static let forgivenFrames = 100
  /// Before and after the first valid provider token (Apple, "Sending notification requests to
  /// APNs").
  package static let unauthenticatedStreams: UInt32 = 1
  package static let providerStreams: UInt32 = 1000
  /// Pending `ProviderQuery`s of one connection; beyond: `ServiceUnavailable`.
  package static let questionsPerConnection = 16
  /// Questions of phones about themselves in a connection's turn; beyond: `ServiceUnavailable`.
  package static let turnInspections = 128
  /// Pending requests on a provider connection without valid credentials, from clients that have
  /// not read our SETTINGS; beyond, those that fail their checks are refused unanswered.
  package static let refusedRequests = 100
  /// Before and after a device's secret was accepted on the connection.
  package static let unauthenticatedDeviceStreams: UInt32 = 16
  package static let deviceStreams: UInt32 = 100_000
  /// Bytes of a line of the device link, payload included.
  package static let lineBytes = 16_384
  /// Unusable lines on one stream before its `bye`.
  package static let unusableLines = 10
  package static let deviceBodyBytes = 4096
  /// Orders to simulated phones: bytes of one and of a phone's answer, how long that may take, and
  /// how many to one loop's phones are unanswered.
  package static let orderBytes = 8192
  package static let orderAnswerBytes = 262_144
  package static let orderPatience = Interval.seconds(10)
  package static let openOrders = 256
  /// Bytes beyond a body limit before the stream is reset.
  package static let discardedBytes = 1_048_576
  /// Bytes of a JWT.
  package static let providerTokenBytes = 4096
  /// Verified provider tokens cached per event loop.
  package static let verifiedProviderTokens = 1000
  /// Connections per event loop; further ones are closed at once.
  package static let connectionsPerLoop = 100_000
  /// Bytes handed to a socket before a connection stops producing more.
  package static let unsentBytes = 262_144
  /// Bytes of the head of a request to the proxy, and connections per event loop that have not sent
  /// all of theirs; further ones are closed at once.
  package static let proxyHeadBytes = 8192
  package static let proxyStrangers = 256
  /// The smallest step of the machine's clock that the relay follows.
  package static let clockStep = Interval.milliseconds(100)
  /// How long a peer may read none of its unsent bytes.
  package static let stalled = Interval.minutes(5)
  /// How long a relay that ends waits on a connection for each: the end of a handshake, the first
  /// request, those sent before its client knew; three times as long for a moment without requests.
  package static let farewell = Interval.seconds(1)
  /// Seconds without any output after which a connection without requests is closed with the relay
  /// at once; before, its client may still read.
  package static let quietSweeps: UInt8 = 5
  /// Bytes of TLS itself (handshake, tickets, alerts) waiting to be sent.
  package static let pendingTLSBytes = 65_536
  /// Handshakes that begin in one turn of an event loop; the others wait.
  package static let turnHandshakes = 16
  /// How long a device's ticket of TLS is good for: it shows its secret all the same.
  package static let deviceTicketSeconds = 604_800
  /// Bytes of answers and lines queued on all streams of one connection.
  package static let providerQueuedBytes = 4_194_304
  package static let deviceQueuedBytes = 67_108_864
  /// An eighth of the process's open files and sockets, within these bounds, is kept from
  /// connections.
  package static let reservedDescriptors = 16...64
  /// The admin listener opens connections until so many of all take one of these.
  package static let reservedAdminConnections = 4
  /// Queued bytes from which on no stream of a phone is opened: each may bring all that waits.
  package static let openingQueuedBytes = 8_388_608

  /// Devices that one list request examines per loop.
  package static let listedDevices = 20_000
  /// The admin API, per listener. On the Unix socket more connections wait. On TCP the oldest one
  /// without the token makes room for the next, and `adminStrangers` such have a place. Bytes per
  /// read, unsent bytes of an answer and how long a stranger may read none, bytes of a request's
  /// header, and how long half a request or none may last.
  package static let adminConnections = 1024
  package static let adminStrangers = 64
  package static let adminReadBytes = 1024
  /// Of a request's body that come behind its answer, and of requests that wait for one.
  package static let adminLateBytes = 65_536
  /// Of requests that come before an answer, without the token.
  package static let adminStrangerBytes = 4096
  package static let adminUnsentBytes = 65_536
  package static let adminUnread = Interval.seconds(5)
  package static let adminHeaderBytes = 16_384
  package static let adminIdle = Interval.seconds(30)
  /// Megabytes of one recording.
  package static let recordingMegabytes = 4096
  /// Notifications that one list request examines per loop.
  package static let listedLives = 50_000
  /// Events of all loops kept for live viewers.
  package static let feedEvents = 50_000
  /// Events that a node sends another at once; earlier ones are only counted.
  package static let nodeFeedEvents = 1000
  /// Batches of events in transit from the loops to the feed.
  package static let feedBatches = 4096
  /// Refused provider requests remembered per loop.
  package static let rememberedRefusals = 200
  /// Device changes (connect, disconnect, report) remembered per loop.
  package static let rememberedChanges = 10_000
  /// Accepted notifications whose notes and traces are remembered per loop.
  package static let rememberedNotes = 10_000
  /// Topics distinguished in metrics per loop, if configured; the rest are `other`.
  package static let namedTopics = 50
  /// Faults in force at once, and how long a muted connection may last.
  package static let faults = 100
  package static let muted = Interval.minutes(10)
  /// Checkpoints of a relay, and about how many bytes they may take together.
  package static let checkpoints = 100
  package static let checkpointBytes = 268_435_456
}
