import DequeModule
package import Primitives
import ProviderCredentials
package import RelayCore
import RelayRequests

/// One loop's memory for people, the latest of each kind; goes back with a checkpoint.
struct LoopHistory {
  private(set) var notes: RecentTable<UniqueID, PushNote>
  /// Oldest first, as below.
  private(set) var refusals = Deque<RefusedRequest>()
  private(set) var changes = Deque<DeviceChange>()
  /// nil when no requests are kept.
  var requests: RequestJournal?
  /// Counts for metrics, which a checkpoint does not take back.
  var answers = RelayMetrics()

  init(notes limit: Int = Limits.rememberedNotes) { notes = RecentTable(limit: limit) }

  /// An estimate.
  var keptBytes: Int {
    notes.count * (MemoryLayout<PushNote>.stride + 2 * MemoryLayout<UniqueID>.stride)
      + changes.count * MemoryLayout<DeviceChange>.stride + (requests?.bytes ?? 0)
  }

  mutating func remember(_ note: PushNote, of id: UniqueID) {
    if !note.isEmpty { _ = notes.insert(note, for: id) }
  }

  /// - Parameter cause: nil when the reason says it all.
  mutating func refused(
    _ rejection: Rejection, _ id: UniqueID, _ cause: RefusedRequest.Cause? = nil,
    from peer: @autoclosure () -> String, at now: Instant
  ) {
    let row = rejection.row
    refused(
      (row.status, row.reason, row.text), id, cause, ofChannel: false, from: peer(), at: now)
  }

  mutating func refused(
    _ row: (status: UInt16, reason: String, text: String), _ id: UniqueID,
    _ cause: RefusedRequest.Cause?, ofChannel: Bool, from peer: String, at now: Instant
  ) {
    if refusals.count >= Limits.rememberedRefusals { refusals.removeFirst() }
    refusals.append(
      RefusedRequest(
        at: now, uniqueID: id, peer: peer, isOfChannel: ofChannel, status: row.status,
        reason: row.reason, cause: cause ?? .told(row.text)))
  }

  /// Forgets requests with their refusals.
  mutating func forgetRequests(where isMeant: (SentRequest) -> Bool) {
    var refused: Set<UniqueID> = []
    requests?.forget { request in
      let isGone = isMeant(request)
      if isGone, request.answer?.refusal != nil { refused.insert(request.uniqueID) }
      return isGone
    }
    if !refused.isEmpty { refusals.removeAll { refused.contains($0.uniqueID) } }
  }

  mutating func remember(_ change: DeviceChange) {
    if changes.count >= Limits.rememberedChanges { changes.removeFirst() }
    changes.append(change)
  }
}

/// Facts about an accepted notification besides its shard's state.
package struct PushNote: Hashable, Sendable {
  package var warnings = CaseSet<PayloadWarning>()
  /// The trace that it belongs to (W3C, Trace Context, `traceparent`).
  package var traceParent: TraceParent?

  package var isEmpty: Bool { warnings.isEmpty && traceParent == nil }

  package init(_ warnings: CaseSet<PayloadWarning> = CaseSet(), traceParent: TraceParent? = nil) {
    self.warnings = warnings
    self.traceParent = traceParent
  }
}

/// A push that was refused, or a request about a channel.
package struct RefusedRequest: Sendable {
  package let at: Instant
  package let uniqueID: UniqueID
  /// The client's address and port; empty for the admin API.
  package let peer: String
  /// Whether it is about a channel, and no push.
  package let isOfChannel: Bool
  /// The HTTP status.
  package let status: UInt16
  package let reason: String
  let cause: Cause

  enum Cause: Sendable {
    case credentials(CredentialError)
    /// The fault with this name was asked for.
    case fault(String)
    /// A frame of the binary provider API is no push.
    case frame(BinaryFrameError)
    /// The device token is of this service, and the other one was asked.
    case tokenOf(ProviderEnvironment)
    /// In words, of the reason or of another node.
    case told(String)
  }

  /// The exact cause in a sentence.
  package var explanation: String {
    switch cause {
    case .credentials(let error): error.explanation
    case .fault(let name): "the fault \(name) was asked for"
    case .frame(let error): error.row.text
    case .tokenOf(let service): "the device token is of the service \(service.rawValue)"
    case .told(let text): text
    }
  }
}
