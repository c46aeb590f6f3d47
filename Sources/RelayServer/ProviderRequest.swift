import HTTP2
import Primitives
import RelayCore
import RelayRequests

/// An open request of a provider whose head has passed all checks.
struct ProviderRequest {
  var head = ProviderRequestHead()
  private var topic = Topic.vacant
  private(set) var since: Instant
  /// While requests are kept.
  var sentHead: RequestHead?
  /// The connection's head that this one equals but for path and id; 0 is none.
  private var generation: UInt64 = 0
  private var body: [UInt8] = []
  private var bodyIsTooLarge = false

  private init(since: Instant) {
    self.since = since
  }

  /// The content of a free place.
  static let vacant = ProviderRequest(since: Instant(milliseconds: 0))

  /// Reuses the place of an earlier request. Mostly its head is the same but for path and id, and
  /// only those are copied. Returns whether all of it is: then so is `sentHead`, by the caller.
  mutating func begin(
    with head: inout ProviderRequestHead, _ generation: UInt64, _ topic: Topic, at now: Instant
  ) -> Bool {
    self.topic = topic
    since = now
    body = []
    bodyIsTooLarge = false
    guard generation != self.generation else {
      self.head.copyRequestValues(from: &head)
      return false
    }
    self.head = head
    self.generation = generation
    return true
  }

  /// The body, which `finish` leaves here when it refuses; nil when it was too large.
  var refusedBody: [UInt8]? { bodyIsTooLarge ? nil : body }

  /// Of this request alone.
  mutating func keep(_ whole: RequestHead) {
    sentHead = whole
    generation = 0
  }

  mutating func appendBody(_ bytes: ArraySlice<UInt8>) {
    guard !bodyIsTooLarge, !bytes.isEmpty else { return }
    body.append(contentsOf: bytes)
  }

  mutating func dropBody() {
    bodyIsTooLarge = true
    body = []
  }

  /// Makes the last checks, on the body, which is moved out and not copied.
  mutating func finish(
    _ uniqueID: UniqueID, isStrict: Bool, at now: Instant, warnings: inout CaseSet<PayloadWarning>
  ) throws(Rejection) -> Notification {
    var payload: [UInt8] = []
    swap(&payload, &body)
    do throws(Rejection) {
      guard !bodyIsTooLarge else { throw .payloadTooLarge }
      return try head.notification(
        topic: topic, body: payload, uniqueID: uniqueID, isStrict: isStrict, at: now,
        warnings: &warnings)
    } catch {
      body = payload
      throw error
    }
  }
}

/// The data that an answer needs of a request, and no more: strangers can have many.
struct WaitingRequest {
  enum Stage {
    case complete
    /// Its head is refused; answered when it is complete.
    case refused(LastHead.ReadingError)
    /// Answered before it was complete; the next sweep ends the stream.
    case answeredEarly
  }

  var uniqueID: UniqueID
  /// Echoed as `apns-id`, with its original capitals.
  var providerID: UniqueID
  var capitals: UInt64 = 0
  var stage = Stage.complete
  /// Its row in the journal of requests; 0 without one.
  private(set) var row: UInt64 = 0
  /// When it was complete, or when its refused head came. In the machine's time.
  var since = Instant(milliseconds: 0)

  init(
    _ head: inout ProviderRequestHead, _ uniqueID: UniqueID, _ stage: Stage, _ row: UInt64 = 0,
    since: Instant
  ) {
    self.uniqueID = uniqueID
    self.providerID = head.providerID ?? uniqueID
    self.capitals = head.apnsIDCapitals
    self.stage = stage
    self.row = row
    self.since = since
  }

  /// The content of a free place.
  static let vacant = WaitingRequest(.complete)

  /// A request whose header list was too large: not even its id is known.
  static let unnamed = WaitingRequest(.answeredEarly)

  private init(_ stage: Stage) {
    uniqueID = UniqueID(high: 0, low: 0)
    providerID = uniqueID
    self.stage = stage
  }

  /// The refusal of its head, while the request is incomplete.
  var refusal: LastHead.ReadingError? {
    if case .refused(let problem) = stage { problem } else { nil }
  }
}
