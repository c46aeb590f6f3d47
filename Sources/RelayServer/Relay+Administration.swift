import AdminAPI
import NIOCore
package import Primitives
package import ProviderCredentials
package import RelayCore
import RelayRequests
import RelaySetup
import ServiceLifecycle
import Synchronization

/// The admin API's requests to a running relay; they reach the loops as events and questions.
extension Relay {
  /// A notification's life and its owner.
  package struct Life: Sendable {
    package let steps: [DeliveryEvent]
    package let uniqueID: UniqueID
    package let apnsID: UniqueID
    package let kind: NotificationClass
    package let topic: Topic
    package let device: DeviceID
    /// Set only on request.
    package var note = PushNote()

    /// nil when the beginning is no longer known.
    package init?(_ steps: [DeliveryEvent]) {
      guard let first = steps.first(where: \.isReceived),
        case .received(let kind, let apnsID, let device, let topic) = first.step
      else { return nil }
      self.steps = steps
      self.kind = kind
      self.apnsID = apnsID
      self.topic = topic
      self.device = device
      uniqueID = first.uniqueID
    }

    /// The step that tells where it is.
    package var last: DeliveryEvent { steps.last { !$0.step.isAside } ?? steps[0] }
  }

  package struct LifeFilter: Sendable {
    package var device: DeviceID?
    package var topic: String?
    package var kind: NotificationClass?
    package var since: Instant?
    /// A step that a life has, by its name or its reason; `held` is `stored` by a limit.
    package var step: String?

    package init() {}

    /// Returns what of a push is not as it is wanted; nil when all is.
    package func contradiction(in life: Life) -> String? {
      if let kind, kind != life.kind { return "it is \(life.kind), not \(kind)" }
      let (own, whole) = (life.topic.description, life.topic.whole.description)
      if let topic, topic != own, topic != whole { return "its topic is \(own), not \(topic)" }
      if let device, device != life.device { return "it went to \(life.device), not \(device)" }
      return nil
    }

    func matches(_ head: DeliveryEvent) -> Bool {
      guard case .received(let kind, _, let device, let topic) = head.step else { return false }
      return (self.device ?? device) == device && (self.kind ?? kind) == kind
        && (self.topic.map { [topic, topic.whole].map(\.description).contains($0) } ?? true)
        && head.at >= (since ?? head.at)
    }
  }

  /// A position in a list of devices: a loop, and a place on it.
  package struct DevicePosition: Hashable, Sendable {
    package var loop: Int
    package var place: DeviceNumber

    package init(loop: Int, place: DeviceNumber) {
      self.loop = loop
      self.place = place
    }
  }

  /// Some devices of one node, and the next position.
  package struct DevicePage: Sendable {
    package var reports: [DeviceReport]
    package var next: DevicePosition?
  }

  package var now: Instant { settings.clock.now() }

  /// The number of returns to a checkpoint.
  package var rewindCount: UInt32 {
    switch settings.clock {
    case .system: 0
    case .virtual(let time): time.rewindCount
    }
  }

  package var isRunning: Bool { inbox.loops != nil }

  /// True while pushes and phones are served: not before all listeners are open.
  package var isServing: Bool { inbox.phase.load(ordering: .relaxed) == .serving }

  /// Pushes and phones are served until the relay is told to end.
  package func announceEnd() { inbox.phase.store(.ending, ordering: .relaxed) }

  /// The number of phones on the virtual clock; a phone joins a moment after it connects.
  package func followerCount() async -> Int {
    let devices = await inbox.loops?.onEach { $0.timers.followers.devices } ?? []
    return devices.reduce(into: Set()) { $0.formUnion($1) }.count
  }

  package func counters() async -> ShardCounters {
    await inbox.loops?.counters() ?? ShardCounters()
  }

  package func policy() async -> SilentPolicy {
    await inbox.loops?.onEach { $0.core.shard.policy }.first ?? configuration.policy
  }

  /// True if everything accepted can be written; true with memory for storage.
  package var isJournalHealthy: Bool {
    !inbox.journalFails
  }

  package var isMemoryFull: Bool { settings.memory?.isFull ?? false }

  /// Submits a notification like a provider's: refusals are remembered and faults act. nil when a
  /// fault prevents any answer.
  ///
  /// - Parameter fields: its header fields, a line each.
  package func submit(
    _ notification: Notification, _ note: PushNote, fields: [UInt8] = []
  ) async -> ProviderAnswer? {
    guard let loops = inbox.loops else { return .rejected(.serviceUnavailable) }
    return await withGracefulShutdownHandler {
      await loops.answer(of: 0) { $0.submit(notification, note, fields, $1) }
        ?? .rejected(.shutdown)
    } onGracefulShutdown: {
      // An answer that a fault holds back may be far off, and the listener waits for it.
      loops.onLoop(0) { $0.adminPeers.end() }
    }
  }

  /// Counts a push of the admin API that was refused before it became a notification.
  package func refused(
    _ rejection: Rejection, _ uniqueID: UniqueID, body: [UInt8], fields: [UInt8]
  ) {
    inbox.loops?.onLoop(0) { runner in
      runner.history.refused(rejection, uniqueID, from: "", at: runner.now)
      let row = runner.keep(.unusable(body: body), uniqueID, body, fields)
      runner.history.answered(.rejected(rejection), to: row, uniqueID, after: .zero)
    }
  }

  package func makeUniqueID() async -> UniqueID? {
    await inbox.loops?.ask(0) { $0.ids.makeUniqueID() }
  }

  /// The problem of a provider token (a JWT); nil when it authorizes pushes now.
  package func problem(ofProviderToken token: String) async -> CredentialError? {
    await inbox.loops?.ask(0) { runner -> CredentialError? in
      let value = Array("bearer \(token)".utf8)
      do throws(CredentialError) {
        _ = try runner.verifier.verify(
          value.span, for: runner.settings.configuration.environment,
          now: runner.clock.tokenTime(runner.now).milliseconds)
        return nil
      } catch {
        return error
      }
    } ?? nil
  }
}

extension Relay {
  /// `dev` or `production`.
  package var profile: String { configuration.profile.rawValue }

  /// True if it refuses what Apple calls an error but seems to accept.
  package var isStrict: Bool { configuration.strict }
}

extension ShardRunner {
  private static let administrator = RequestSource(
    .admin, peer: "", isEncrypted: false, .none, connection: 0)

  fileprivate func keep(
    _ content: SentRequest.Content, _ uniqueID: UniqueID, _ body: [UInt8], _ fields: [UInt8]
  ) -> UInt64 {
    history.keep(
      SentRequest(
        at: now, uniqueID, RequestHead(fields, Self.administrator), ordinal: 0, content,
        bodyBytes: body.count))
  }

  /// Tells nil when there is never an answer.
  fileprivate func submit(
    _ notification: Notification, _ note: PushNote, _ fields: [UInt8],
    _ tell: @escaping (ProviderAnswer?) -> Void
  ) {
    guard !adminPeers.isEnding else { return tell(.rejected(.shutdown)) }
    let began = RelayClock.steady
    let row = keep(
      .push(notification, warnings: note.warnings), notification.uniqueID, notification.payload,
      fields)
    func finish(_ answer: ProviderAnswer?) {
      if let answer {
        history.answered(answer, to: row, notification.uniqueID, after: RelayClock.steady - began)
      }
      tell(answer)
    }
    let stream = adminPeers.ask { (answer: ProviderAnswer) in
      if let rejection = answer.rejection {
        self.history.refused(rejection, notification.uniqueID, from: "", at: self.now)
      }
      finish(answer)
    }
    let request = operatorAddress(stream)
    let now = now
    history.remember(note, of: notification.uniqueID)
    switch mayIntervene(notification) ? intervene(notification, from: request, at: now) : .none {
    case .none: submit(notification, from: request, at: now)
    case .taken: break
    case .answer(let answer):
      adminPeers.remove(stream)
      finish(answer)
    case .dropped, .reset:
      adminPeers.remove(stream)
      finish(nil)
    }
    finishBatch()
  }
}
