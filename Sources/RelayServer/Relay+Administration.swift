import AdminAPI
import NIOCore
package import Primitives
package import ProviderCredentials
package import RelayCore
import RelaySetup
import ServiceLifecycle

/// What the admin API asks of a running relay. It comes to the loops as events and questions, like
/// everything else.
extension Relay {
  /// A notification's life with whose it is.
  package struct Life: Sendable {
    package let steps: [DeliveryEvent]
    package let uniqueID: UniqueID
    package let apnsID: UniqueID
    package let kind: NotificationClass
    package let topic: Topic
    package let device: DeviceID
    /// What else is known, where that was asked for.
    package var note = PushNote()

    /// nil when the beginning is not known any more.
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

    /// The step that says where it is.
    package var last: DeliveryEvent { steps.last { !$0.step.isAside } ?? steps[0] }
  }

  /// Which lives are wanted.
  package struct LifeFilter: Sendable {
    package var device: DeviceID?
    package var topic: String?
    package var kind: NotificationClass?
    package var since: Instant?

    package init() {}

    func matches(_ head: DeliveryEvent) -> Bool {
      guard case .received(let kind, _, let device, let topic) = head.step else { return false }
      return (self.device ?? device) == device && (self.kind ?? kind) == kind
        && (self.topic ?? topic.description) == topic.description
        && head.at >= (since ?? head.at)
    }
  }

  /// How far a list of devices was read: a loop, and a place on it.
  package struct DevicePosition: Hashable, Sendable {
    package var loop: Int
    package var place: Int32

    package init(loop: Int, place: Int32) {
      self.loop = loop
      self.place = place
    }
  }

  /// Some devices of one node, and where to go on.
  package struct DevicePage: Sendable {
    package var reports: [DeviceReport]
    package var next: DevicePosition?
  }

  /// The relay's time.
  package var now: Instant { settings.clock.now() }

  /// How often it was taken back to a checkpoint.
  package var rewindCount: UInt32 {
    switch settings.clock {
    case .system: 0
    case .virtual(let time): time.rewindCount
    }
  }

  /// Whether it runs.
  package var isRunning: Bool { inbox.loops != nil }

  /// How many phones go by the relay's virtual clock by now: a phone says so a moment after it has
  /// connected.
  package func followerCount() async -> Int {
    await inbox.loops?.onEach { $0.timers.followers.streams.count }.reduce(0, +) ?? 0
  }

  /// What all shards have done.
  package func counters() async -> ShardCounters {
    await inbox.loops?.counters() ?? ShardCounters()
  }

  /// The silent policy in force.
  package func policy() async -> SilentPolicy {
    await inbox.loops?.onEach { $0.core.shard.policy }.first ?? configuration.policy
  }

  /// Whether everything that was accepted can be written; true with memory for storage.
  package var isJournalHealthy: Bool {
    !inbox.journalFails
  }

  /// Puts a well-formed notification in, by the door of providers: what is refused is remembered,
  /// and faults act on it. nil when a fault sees to it that there is never an answer.
  package func submit(
    _ notification: Notification, _ note: PushNote
  ) async -> ProviderAnswer? {
    guard let loops = inbox.loops else { return .rejected(.serviceUnavailable) }
    return await withGracefulShutdownHandler {
      await withCheckedContinuation { continuation in
        loops.onLoop(0) { $0.submit(notification, note, continuation) }
      }
    } onGracefulShutdown: {
      // What a fault holds back is answered who knows when, and the listener waits for that.
      loops.onLoop(0) { $0.adminPeers.end() }
    }
  }

  /// A push by the admin API was refused before it was a notification.
  package func refused(_ rejection: Rejection, _ uniqueID: UniqueID) {
    inbox.loops?.onLoop(0) { runner in
      runner.answers.answered(.rejected(rejection), after: .zero)
      runner.history.refused(rejection, uniqueID, at: runner.now)
    }
  }

  /// A fresh name for a notification.
  package func makeUniqueID() async -> UniqueID? {
    await inbox.loops?.ask(0) { $0.ids.makeUniqueID() }
  }

  /// What is wrong with a provider token (a JWT); nil when pushes with it would be authorized now.
  package func problem(ofProviderToken token: String) async -> CredentialError? {
    await inbox.loops?.ask(0) { runner -> CredentialError? in
      let value = Array("bearer \(token)".utf8)
      do throws(CredentialError) {
        _ = try runner.verifier.verify(
          value.span, now: runner.clock.tokenTime(runner.now).milliseconds)
        return nil
      } catch {
        return error
      }
    } ?? nil
  }
}

extension LoopSet {
  /// Asks one loop's runner; nil when the loop is gone.
  func ask<Answer: Sendable>(
    _ index: Int, _ body: @escaping @Sendable (ShardRunner) -> Answer
  ) async -> Answer? {
    let (promise, continuation) = AsyncStream.makeStream(of: Answer.self)
    onLoop(index) { runner in
      continuation.yield(body(runner))
      continuation.finish()
    }
    return await promise.first { _ in true }
  }
}

extension Relay {
  /// `dev` or `production`.
  package var profile: String { configuration.profile.rawValue }

  /// Whether it refuses what Apple calls an error but seems to accept.
  package var isStrict: Bool { configuration.strict }
}

extension ShardRunner {
  /// A push by the admin API; nil when it is never answered.
  fileprivate func submit(
    _ notification: Notification, _ note: PushNote,
    _ answered: CheckedContinuation<ProviderAnswer?, Never>
  ) {
    guard !adminPeers.isEnding else { return answered.resume(returning: .rejected(.shutdown)) }
    let began = RelayClock.steady
    func finish(_ answer: ProviderAnswer?) {
      if let answer { answers.answered(answer, after: RelayClock.steady - began) }
      answered.resume(returning: answer)
    }
    let stream = adminPeers.ask { (answer: ProviderAnswer) in
      if let rejection = answer.rejection {
        self.history.refused(rejection, notification.uniqueID, at: self.now)
      }
      finish(answer)
    }
    let request = RequestID(loop: index, connection: 0, stream: stream, node: node)
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
