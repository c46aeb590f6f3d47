import Primitives

/// Carries out transfers; outlives the apps that queued them, and reboots (WWDC 2013 session 204).
/// `Phone` decides which may run; here are their states and progress.
package struct TransferService: Codable, Equatable, Sendable {
  /// In order of queueing.
  package internal(set) var transfers: [Transfer] = []
  private var numbering = Numbering()
  /// Progress is accounted up to here.
  var accountedUntil = Instant(milliseconds: .min)
  /// Bytes per second times milliseconds, less than a byte so far.
  private var remainder: Int64 = 0

  /// Survives a power loss.
  private enum CodingKeys: CodingKey {
    case transfers, numbering
  }

  var isSound: Bool {
    let numbers = transfers.map(\.id.number)
    return numbering.isSound(after: numbers) && Set(numbers).count == numbers.count
  }

  /// Nothing advances without power; the restart sets `accountedUntil`.
  mutating func powerFailed() {
    accountedUntil = Instant(milliseconds: .min)
    remainder = 0
  }

  /// Forgets when servers ask again: they do at once.
  mutating func forgetPauses() {
    for index in transfers.indices { transfers[index].asksAgainAt = nil }
  }

  mutating func add(
    _ request: TransferRequest, of app: AppID, isDiscretionary: Bool, _ mode: TransferMode
  ) -> TransferID {
    let id = TransferID(number: numbering.next())
    transfers.append(
      Transfer(
        id: id, app: app, request: request, isDiscretionary: isDiscretionary,
        isPerformed: mode == .performed && request.url != nil))
    return id
  }

  package subscript(id: TransferID) -> Transfer? { index(of: id).map { transfers[$0] } }

  func index(of id: TransferID) -> Int? { transfers.firstIndex { $0.id == id } }

  /// Active modelled transfers share the network equally.
  mutating func advance(to now: Instant, bytesPerSecond: Int64) {
    let elapsed = (now - accountedUntil).milliseconds
    accountedUntil = now
    let count = Int64(transfers.count { $0.isModelledAndActive })
    guard count > 0, elapsed > 0 else {
      remainder = 0
      return
    }
    let units = saturatingSum(saturatingProduct(elapsed, bytesPerSecond), remainder)
    let each = units / (1000 * count)
    remainder = units == .max ? 0 : units % (1000 * count)
    for index in transfers.indices where transfers[index].isModelledAndActive {
      let done = saturatingSum(transfers[index].done, each)
      transfers[index].done = min(transfers[index].nextStop, done)
    }
  }

  func nextEnd(bytesPerSecond: Int64) -> Instant? {
    let left = transfers.filter(\.isModelledAndActive).map { $0.nextStop - $0.done }
    guard let least = left.min(), bytesPerSecond > 0 else { return nil }
    let units = saturatingProduct(saturatingProduct(least, 1000), Int64(left.count)) - remainder
    return accountedUntil + .milliseconds(max(0, units - 1) / bytesPerSecond + 1)
  }

  /// Sessions whose transfers have all ended, and which the app is not being told about.
  func endedSessions(of app: AppID) -> [String] {
    var sessions: [String] = []
    for transfer in transfers
    where transfer.app == app && !transfer.isForDocumentOnly && transfer.toldBy == nil {
      let name = transfer.request.session
      guard !sessions.contains(name) else { continue }
      let isOpen = transfers.contains {
        $0.app == app && $0.request.session == name && !$0.phase.hasEnded
      }
      if !isOpen { sessions.append(name) }
    }
    return sessions
  }

  /// A call tells the app that the transfers of a session have ended.
  mutating func tell(session: String, of app: AppID, by call: CallbackID) {
    for index in transfers.indices
    where transfers[index].app == app && transfers[index].request.session == session {
      let isMeant = transfers[index].phase.hasEnded && transfers[index].toldBy == nil
      if isMeant { transfers[index].toldBy = call }
    }
  }

  /// The call has ended: what it told of is forgotten with the next review, or is told again.
  mutating func told(by call: CallbackID, hasHeard: Bool) {
    for index in transfers.indices where transfers[index].toldBy == call {
      if hasHeard { transfers[index].hasBeenTold = true } else { transfers[index].toldBy = nil }
    }
  }

  /// Forgets what nobody waits for any more; for callers that hold no index.
  mutating func forgetTold() {
    transfers.removeAll {
      $0.hasBeenTold == true || $0.isForDocumentOnly && $0.phase.hasEnded
    }
  }
}

/// A background transfer and its progress.
package struct Transfer: Hashable, Codable, Sendable {
  package let id: TransferID
  package let app: AppID
  package let request: TransferRequest
  /// Waits for Wi-Fi and enough power.
  package let isDiscretionary: Bool
  /// The driver moves its bytes, not the model.
  package let isPerformed: Bool
  package internal(set) var phase = TransferPhase.waiting(.queue)
  /// Bytes that need not be transferred again.
  package internal(set) var done: Int64 = 0
  package internal(set) var hasCredentials = false
  /// Queued by the system for a document; no app waits for it.
  package internal(set) var isForDocumentOnly = false
  /// The scripted break has happened; nil means no.
  var hasBrokenOff: Bool?
  /// The call by which its app hears of its end.
  var toldBy: CallbackID?
  /// Its app has heard of its end; nil means no.
  var hasBeenTold: Bool?
  /// How often its app ended before it had answered the server; nil means never.
  var unansweredCount: Int?
  /// Until then the server does not ask again, unless the user opens the app.
  var asksAgainAt: Instant?

  var revision: Int?

  var nextStop: Int64 {
    guard let place = request.breaksAt, hasBrokenOff == nil else { return request.bytes }
    return min(request.bytes, max(0, place))
  }

  var hasReachedBreak: Bool {
    isModelledAndActive && nextStop < request.bytes && done >= nextStop
  }

  var isModelledAndActive: Bool { !isPerformed && phase == .active }

  /// Resumes after an interruption. An HTTP upload cannot.
  package var keepsProgress: Bool {
    request.resumes && !(isPerformed && request.direction == .upload)
  }
}

extension TransferRequest {
  var isLargerThanSaid: Bool { actualBytes.map { $0 > bytes } ?? false }
}

/// The state of a transfer.
package enum TransferPhase: Hashable, Codable, Sendable {
  case waiting(TransferHold)
  case active
  case awaitingCredentials
  case ended(TransferResult)

  var hasEnded: Bool {
    if case .ended = self { true } else { false }
  }
}

/// Why a transfer waits.
package enum TransferHold: String, CaseIterable, Hashable, Codable, Sendable {
  case queue
  case noNetwork
  /// For discretionary transfers, as the two below.
  case needsWiFi
  case lowPower
  case energyBudget
}

/// A step of a transfer.
package enum TransferStep: Hashable, Sendable {
  case queued(TransferRequest, isDiscretionary: Bool)
  case started(offset: Int64)
  case brokeOff(offset: Int64)
  case held(TransferHold)
  case credentialsDemanded
  case ended(TransferResult)
}

/// The side that moves the bytes of transfers.
package enum TransferMode: Hashable, Sendable {
  /// At the speeds of `PhoneLimits`, in virtual time.
  case modelled
  /// For transfers with a `url` the driver does, from each `TransferStep.started` until the next
  /// step of that transfer. It reports `transferProgressed`, `transferChallenged` and
  /// `transferEnded`. Transfers without a `url` are modelled.
  case performed
}
