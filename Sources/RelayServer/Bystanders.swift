import HTTP2
import Primitives
import RelayCore
import Transport

/// With a virtual clock: the streams of one loop whose listeners do not go by it, curl's for
/// example, and when something is due on them by the machine's time.
///
/// Nobody could keep the deadlines of a time that leaps, and one that stands still would let a dead
/// stream live for ever. The shard decides what comes of a deadline, as it does of its timers; here
/// is only what it cannot know: how much of the machine's time has passed. Every time is an
/// argument.
struct Bystanders {
  private struct Frame {
    let uniqueID: UniqueID
    let apnsID: UniqueID
    let sentAt: Instant
  }

  private struct Bystander {
    let device: DeviceID
    /// When the shard is told next that a keep-alive is due, or its answer overdue.
    var dueAt: Instant
    /// It was told, and nothing was heard since.
    var isAsked = false
    /// What was sent and not acknowledged, oldest first.
    var frames: [Frame] = []
  }

  /// What the shard of a device is to be told.
  struct Due: Equatable {
    let device: DeviceID
    let event: Event
  }

  /// Besides what is in flight, what has expired there and was not acknowledged.
  static let framesPerStream = 2 * Limits.inFlightPerDevice

  private let keepAlive: Interval
  private let keepAliveTimeout: Interval
  private let ackTimeout: Interval
  private var bystanders: [StreamAddress: Bystander] = [:]

  init(_ configuration: Shard.Configuration) {
    keepAlive = configuration.keepAlive
    keepAliveTimeout = configuration.keepAliveTimeout
    ackTimeout = configuration.ackTimeout
  }

  var count: Int { bystanders.count }

  /// Notes what a stream has said, or that it is there, or gone.
  mutating func note(_ event: Event, at wall: Instant) {
    switch event {
    case .connected(let credential, let stream):
      bystanders[stream] = Bystander(device: credential.device, dueAt: wall + keepAlive)
    case .acked(let stream, let id, _):
      heard(stream, at: wall)
      acknowledged(stream, id)
    case .decided(let stream, _, _), .reported(let stream, _), .keptAlive(let stream),
      .heard(let stream):
      heard(stream, at: wall)
    case .clockFollowed(let stream), .disconnected(let stream):
      remove(stream)
    case .submitted, .persisted, .persistFailed, .enrolled, .registered, .unregistered, .inspected,
      .alias, .queueChecked, .keepAliveDue, .acknowledgementDue, .partitionRequested,
      .partitionReceived, .restored, .policyChanged, .administered, .faulted, .checkpoint,
      .shutDown, .tick, .clockStepped:
      break
    }
  }

  private mutating func heard(_ stream: StreamAddress, at wall: Instant) {
    guard bystanders[stream]?.isAsked == true else { return }
    bystanders[stream]?.isAsked = false
    bystanders[stream]?.dueAt = wall + keepAlive
  }

  /// By the unique id or by the provider's, as the shard takes it.
  private mutating func acknowledged(_ stream: StreamAddress, _ id: UniqueID) {
    guard let frames = bystanders[stream]?.frames else { return }
    let place =
      frames.firstIndex { $0.uniqueID == id } ?? frames.firstIndex { $0.apnsID == id }
    if let place { bystanders[stream]?.frames.remove(at: place) }
  }

  /// Notes a frame to a stream, which may be one of those that go by the clock.
  mutating func sent(_ notification: Notification, to stream: StreamAddress, at wall: Instant) {
    guard let count = bystanders[stream]?.frames.count else { return }
    if count >= Self.framesPerStream { bystanders[stream]?.frames.removeFirst() }
    bystanders[stream]?.frames.append(
      Frame(uniqueID: notification.uniqueID, apnsID: notification.apnsID, sentAt: wall))
  }

  mutating func remove(_ stream: StreamAddress) { bystanders[stream] = nil }

  mutating func removeAll() { bystanders.removeAll() }

  /// What is due. A frame is named once: if it goes again, `sent` is told.
  ///
  /// - Parameter hasLeft: whether everything that was sent to a stream has left the relay; what has
  ///   not cannot be overdue.
  mutating func takeDue(at wall: Instant, hasLeft: (StreamAddress) -> Bool) -> [Due] {
    var due: [Due] = []
    for (stream, bystander) in bystanders {
      if bystander.dueAt <= wall {
        due.append(Due(device: bystander.device, event: .keepAliveDue(stream)))
        bystanders[stream]?.isAsked = true
        bystanders[stream]?.dueAt = wall + keepAliveTimeout
      }
      let overdue = bystander.frames.prefix { $0.sentAt + ackTimeout <= wall }
      guard !overdue.isEmpty, hasLeft(stream) else { continue }
      bystanders[stream]?.frames.removeFirst(overdue.count)
      for frame in overdue {
        due.append(
          Due(device: bystander.device, event: .acknowledgementDue(stream, frame.uniqueID)))
      }
    }
    return due
  }
}

extension ShardRunner {
  /// Tells the shards what is due by the machine's time; called about once a second.
  func raiseDue(at wall: Instant) {
    guard let due = bystanders?.takeDue(at: wall, hasLeft: hasLeft), !due.isEmpty else { return }
    let now = now
    for item in due { raise(item.event, for: item.device, at: now) }
  }

  private func hasLeft(_ stream: StreamAddress) -> Bool {
    guard stream.connection != 0 else { return adminPeers.isEmpty(stream.stream) }
    return connection(stream.connection)?.transport.http2.queuedBytes(of: stream.stream) == 0
  }
}
