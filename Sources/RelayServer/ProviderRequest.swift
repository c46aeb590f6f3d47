import HTTP2
import Primitives
import RelayCore

/// One provider's request under way whose head has passed all checks.
struct ProviderRequest {
  var head = ProviderRequestHead()
  private var topic = Topic.vacant
  private(set) var since: Instant
  /// Which of the connection's heads this one is, but for path and id; 0 is none.
  private var generation: UInt64 = 0
  private var body: [UInt8] = []
  private var bodyIsTooLarge = false

  private init(since: Instant) {
    self.since = since
  }

  /// No request at all: what lies in a free place.
  static let vacant = ProviderRequest(since: Instant(milliseconds: 0))

  /// Begins anew, in the place of an earlier request of the connection: mostly its head says the
  /// same but for path and id, and then only those are copied.
  mutating func begin(
    with head: inout ProviderRequestHead, _ generation: UInt64, _ topic: Topic, at now: Instant
  ) {
    if generation == self.generation {
      self.head.copyRequestValues(from: &head)
    } else {
      self.head = head
      self.generation = generation
    }
    self.topic = topic
    since = now
    body = []
    bodyIsTooLarge = false
  }

  mutating func take(_ bytes: ArraySlice<UInt8>) {
    guard !bodyIsTooLarge, !bytes.isEmpty else { return }
    body.append(contentsOf: bytes)
  }

  mutating func dropBody() {
    bodyIsTooLarge = true
    body = []
  }

  /// The last checks, on the body, which is moved out, not copied.
  mutating func finish(
    _ uniqueID: UniqueID, isStrict: Bool, at now: Instant, warnings: inout CaseSet<PayloadWarning>
  ) -> Result<Notification, Rejection> {
    var payload: [UInt8] = []
    swap(&payload, &body)
    do throws(Rejection) {
      guard !bodyIsTooLarge, payload.count <= head.payloadLimitBytes else {
        throw .payloadTooLarge
      }
      return .success(
        try head.notification(
          topic: topic, body: payload, uniqueID: uniqueID, isStrict: isStrict, at: now,
          warnings: &warnings))
    } catch {
      return .failure(error)
    }
  }
}

/// What must be known of a request until it is answered: how it is called, and not more, for
/// strangers can have many.
struct WaitingRequest {
  enum Stage {
    case complete
    /// Its head is refused, which is said when it is complete.
    case refused(LastHead.ReadingError)
    /// Answered before it was complete; the next sweep ends the stream.
    case answeredEarly
  }

  var uniqueID: UniqueID
  /// Echoed as `apns-id`, with the capitals that it came with.
  var providerID: UniqueID
  var capitals: UInt64 = 0
  var stage = Stage.complete
  /// When it was complete; when its head came, of one that is refused. By the machine's time.
  var since = Instant(milliseconds: 0)

  init(
    _ head: inout ProviderRequestHead, _ uniqueID: UniqueID, _ stage: Stage, since: Instant
  ) {
    self.uniqueID = uniqueID
    self.providerID = head.providerID ?? uniqueID
    self.capitals = head.apnsIDCapitals
    self.stage = stage
    self.since = since
  }

  /// No request at all: what lies in a free place.
  static let vacant = WaitingRequest(.complete)

  /// A request of which nothing is known, not even a name; answered when its head came.
  static let unnamed = WaitingRequest(.answeredEarly)

  private init(_ stage: Stage) {
    uniqueID = UniqueID(high: 0, low: 0)
    providerID = uniqueID
    self.stage = stage
  }

  /// Why its head is refused, while more of it is to come.
  var refusal: LastHead.ReadingError? {
    if case .refused(let problem) = stage { problem } else { nil }
  }
}
