import Primitives

/// The part of the system that carries out transfers: it outlives the apps that queued them, and
/// the start of the phone (WWDC 2013 session 204). Which of them may go on is decided by the phone;
/// here is what they are and how far they have come.
package struct TransferService: Codable, Equatable, Sendable {
  /// In the order in which they were queued.
  package internal(set) var transfers: [Transfer] = []
  private var numbering = Numbering()
  /// Until when the progress of the active ones is accounted for.
  var accountedUntil = Instant(milliseconds: .min)
  /// Bytes per second times milliseconds that did not make a byte yet.
  private var remainder: Int64 = 0

  /// What lasts when the power goes.
  private enum CodingKeys: CodingKey {
    case transfers, numbering
  }

  /// Whether its numbers are such as it gives itself: what was decoded may be anything.
  var isSound: Bool {
    let numbers = transfers.map(\.id.number)
    return numbering.isSound(after: numbers) && Set(numbers).count == numbers.count
  }

  /// Nothing goes on without power: from a moment on that is named when it is back.
  mutating func powerFailed() {
    accountedUntil = Instant(milliseconds: .min)
    remainder = 0
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

  var activeCount: Int { transfers.count { $0.phase == .active } }

  /// Moves the modelled ones of the active transfers forward: they share the network equally.
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

  /// When the first of them will be done.
  func nextEnd(bytesPerSecond: Int64) -> Instant? {
    let left = transfers.filter(\.isModelledAndActive).map { $0.nextStop - $0.done }
    guard let least = left.min(), bytesPerSecond > 0 else { return nil }
    let units = saturatingProduct(saturatingProduct(least, 1000), Int64(left.count)) - remainder
    return accountedUntil + .milliseconds(max(0, units - 1) / bytesPerSecond + 1)
  }

  /// The sessions of an app whose transfers have all ended and that nobody has told it about.
  func endedSessions(of app: AppID) -> [String] {
    var sessions: [String] = []
    for transfer in transfers where transfer.app == app && !transfer.isForDocumentOnly {
      let name = transfer.request.session
      guard !sessions.contains(name) else { continue }
      let isOpen = transfers.contains {
        $0.app == app && $0.request.session == name && !$0.phase.hasEnded
      }
      if !isOpen { sessions.append(name) }
    }
    return sessions
  }

  /// Forgets the transfers of a session that its app has been told about.
  mutating func forget(session: String, of app: AppID) {
    transfers.removeAll {
      $0.app == app && $0.request.session == session && $0.phase.hasEnded && !$0.isForDocumentOnly
    }
  }
}

/// One transfer.
package struct Transfer: Hashable, Codable, Sendable {
  package let id: TransferID
  package let app: AppID
  package let request: TransferRequest
  /// Waits for Wi-Fi and for the phone's power.
  package let isDiscretionary: Bool
  /// Whether the driver moves its bytes, else the model does.
  package let isPerformed: Bool
  package internal(set) var phase = TransferPhase.waiting(.queue)
  /// Bytes that need not be transferred again.
  package internal(set) var done: Int64 = 0
  /// Its app has answered its server.
  package internal(set) var hasCredentials = false
  /// Queued by the system to fetch a document's content; no app waits for it.
  package internal(set) var isForDocumentOnly = false
  /// Its connection has broken, as it was to; nil for no.
  var hasBrokenOff: Bool?
  /// Of a document that goes up: which revision that is.
  var revision: Int?

  /// Where it ends, or breaks off.
  var nextStop: Int64 {
    guard let place = request.breaksAt, hasBrokenOff == nil else { return request.bytes }
    return min(request.bytes, max(0, place))
  }

  /// Whether it is at the place where its connection breaks.
  var hasReachedBreak: Bool {
    isModelledAndActive && nextStop < request.bytes && done >= nextStop
  }

  var isModelledAndActive: Bool { !isPerformed && phase == .active }

  /// Whether it goes on where it was interrupted. HTTP has no way to do so with an upload.
  package var keepsProgress: Bool {
    request.resumes && !(isPerformed && request.direction == .upload)
  }
}

extension TransferRequest {
  /// Its server has more than was said.
  var isLargerThanSaid: Bool { actualBytes.map { $0 > bytes } ?? false }
}

/// Where a transfer stands.
package enum TransferPhase: Hashable, Codable, Sendable {
  case waiting(TransferHold)
  case active
  /// The server asked, the app is to answer.
  case awaitingCredentials
  case ended(TransferResult)

  var hasEnded: Bool {
    if case .ended = self { true } else { false }
  }
}

/// Why a transfer does not go on now.
package enum TransferHold: String, CaseIterable, Hashable, Codable, Sendable {
  case queue
  case noNetwork
  /// Discretionary ones only use Wi-Fi, and respect the phone's energy.
  case needsWiFi
  case lowPower
  case energyBudget
}

/// Steps of a transfer.
package enum TransferStep: Hashable, Sendable {
  case queued(TransferRequest, isDiscretionary: Bool)
  /// Goes on from that byte.
  case started(offset: Int64)
  /// The connection broke after so many bytes; it is tried again.
  case brokeOff(offset: Int64)
  case held(TransferHold)
  case credentialsDemanded
  case ended(TransferResult)
}

/// Who moves the bytes.
package enum TransferMode: Hashable, Sendable {
  /// The model: a network of `PhoneLimits`' speeds, for virtual time.
  case modelled
  /// Of transfers with a `url` the driver, from each `TransferStep.started` on until any other step
  /// of that transfer or the next start. It reports `transferProgressed`, `transferChallenged` and
  /// `transferEnded`. Those without a `url` are modelled.
  case performed
}
