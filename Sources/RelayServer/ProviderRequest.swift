import HTTP2
import Primitives
import RelayCore

/// One provider's request under way.
struct ProviderRequest {
  var head = ProviderRequestHead()
  /// The topic, when the head has passed all checks; else the first one it failed.
  private var outcome = Result<Topic, LastHead.ReadingError>.failure(
    .request(.internalServerError))
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
    with head: inout ProviderRequestHead, _ generation: UInt64,
    _ outcome: Result<Topic, LastHead.ReadingError>, at now: Instant
  ) {
    if generation == self.generation {
      self.head.takeOwn(from: &head)
    } else {
      self.head = head
      self.generation = generation
    }
    self.outcome = outcome
    since = now
    body = []
    bodyIsTooLarge = false
  }

  /// Nobody will look at the body of a request whose head is refused.
  mutating func take(_ bytes: ArraySlice<UInt8>) {
    guard case .success = outcome, !bodyIsTooLarge, !bytes.isEmpty else { return }
    body.append(contentsOf: bytes)
  }

  mutating func dropBody() {
    bodyIsTooLarge = true
    body = []
  }

  /// What is asked, when it is no push and may be asked.
  var acceptedQuery: ProviderQuery? {
    mutating get {
      guard let query = head.query, case .success = outcome else { return nil }
      return query
    }
  }

  /// The last checks, on the body, which is moved out, not copied.
  mutating func finish(
    _ uniqueID: UniqueID, isStrict: Bool, at now: Instant, warnings: inout CaseSet<PayloadWarning>
  ) -> Result<Notification, LastHead.ReadingError> {
    var payload: [UInt8] = []
    swap(&payload, &body)
    let topic: Topic
    switch outcome {
    case .success(let known): topic = known
    case .failure(let problem): return .failure(problem)
    }
    do throws(Rejection) {
      guard !bodyIsTooLarge, payload.count <= head.payloadLimitBytes else {
        throw .payloadTooLarge
      }
      return .success(
        try head.notification(
          topic: topic, body: payload, uniqueID: uniqueID, isStrict: isStrict, at: now,
          warnings: &warnings))
    } catch {
      return .failure(.request(error))
    }
  }
}

/// What must be known of a request until it is answered: how it is called.
struct WaitingRequest {
  var uniqueID: UniqueID
  /// Echoed as `apns-id`.
  var providerID: UniqueID
  /// How the provider spelled it, when that was not the canonical way.
  var spelling: [UInt8]?
  /// By the machine's time.
  var completedAt: Instant
  /// Answered before it was complete; the next sweep ends the stream.
  var isAnsweredEarly: Bool

  init(
    _ head: inout ProviderRequestHead, _ uniqueID: UniqueID, completedAt: Instant,
    isAnsweredEarly: Bool = false
  ) {
    self.completedAt = completedAt
    self.uniqueID = uniqueID
    self.providerID = head.providerID ?? uniqueID
    self.spelling = head.apnsIDSpelling
    self.isAnsweredEarly = isAnsweredEarly
  }

  /// No request at all: what lies in a free place.
  static let vacant = WaitingRequest(uniqueID: UniqueID(high: 0, low: 0))

  /// A request of which nothing is known, not even a name; answered when its head came.
  static let unnamed = WaitingRequest(uniqueID: UniqueID(high: 0, low: 0), isAnsweredEarly: true)

  private init(uniqueID: UniqueID, isAnsweredEarly: Bool = false) {
    self.uniqueID = uniqueID
    providerID = uniqueID
    completedAt = Instant(milliseconds: 0)
    self.isAnsweredEarly = isAnsweredEarly
  }
}
