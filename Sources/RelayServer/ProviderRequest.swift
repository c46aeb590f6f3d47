import HTTP2
import RelayCore

/// One provider's request under way.
struct ProviderRequest {
  var head = ProviderRequestHead()
  /// Set when the head has passed all checks.
  var topic: Topic?
  /// The first check it failed.
  var rejection: Rejection?
  var since: Instant
  private var body: [UInt8] = []
  private var bodyIsTooLarge = false

  init(since: Instant) {
    self.since = since
  }

  /// No request at all: what lies in a free place.
  static let vacant = ProviderRequest(since: Instant(milliseconds: 0))

  /// Begins anew; the head is the caller's to change.
  mutating func begin(at now: Instant) {
    topic = nil
    rejection = nil
    since = now
    body = []
    bodyIsTooLarge = false
  }

  mutating func take(_ bytes: ArraySlice<UInt8>) {
    if !bodyIsTooLarge, !bytes.isEmpty { body.append(contentsOf: bytes) }
  }

  mutating func dropBody() {
    bodyIsTooLarge = true
    body = []
  }

  /// The last checks, on the body, which is moved out, not copied.
  mutating func finish(
    _ uniqueID: UniqueID, isStrict: Bool, at now: Instant, lints: inout CaseSet<Lint>
  ) -> Result<Notification, Rejection> {
    if let rejection { return .failure(rejection) }
    guard let topic else { return .failure(.internalServerError) }
    guard !bodyIsTooLarge, body.count <= head.payloadLimitBytes else {
      return .failure(.payloadTooLarge)
    }
    var payload: [UInt8] = []
    swap(&payload, &body)
    do throws(Rejection) {
      return .success(
        try head.notification(
          topic: topic, body: payload, uniqueID: uniqueID, isStrict: isStrict, at: now,
          lints: &lints))
    } catch {
      return .failure(error)
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
  /// Answered before it was complete; the next sweep ends the stream.
  var isAnsweredEarly: Bool

  init(
    _ head: borrowing ProviderRequestHead, _ uniqueID: UniqueID, isAnsweredEarly: Bool = false
  ) {
    self.uniqueID = uniqueID
    self.providerID = head.providerID ?? uniqueID
    self.spelling = head.apnsIDSpelling
    self.isAnsweredEarly = isAnsweredEarly
  }

  /// No request at all: what lies in a free place.
  static let vacant = WaitingRequest(ProviderRequestHead(), UniqueID(high: 0, low: 0))
}
