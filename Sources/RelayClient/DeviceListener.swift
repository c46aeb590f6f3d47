package import DeviceLink
package import RelayCore

/// Reads a device's stream line by line and sends the standard answers. Those to lines that arrived
/// together are written together, before more is read.
package struct DeviceListener {
  /// Which lines are answered.
  package struct Habits: Sendable {
    /// Joins a virtual clock: reports all work as done.
    package var followsClock: Bool
    package var acknowledges: Bool
    package var outcome: DeliveryOutcome?

    package init(
      followsClock: Bool = false, acknowledges: Bool = true, outcome: DeliveryOutcome? = nil
    ) {
      self.followsClock = followsClock
      self.acknowledges = acknowledges
      self.outcome = outcome
    }
  }

  package let stream: ClientStream
  /// The bytes of the last line that `next` returned.
  package private(set) var bytes: [UInt8] = []
  private var lines: ClientStream.Lines.AsyncIterator
  private let habits: Habits?
  private var answers: [UInt8] = []

  /// Without habits nothing is answered, not even a keep-alive.
  package init(_ stream: ClientStream, _ habits: Habits?) {
    self.stream = stream
    lines = stream.lines.makeAsyncIterator()
    self.habits = habits
  }

  /// True if another line has arrived with the last one.
  package var hasMore: Bool { lines.hasMore }

  /// The next line, of an empty unknown type when unreadable; nil at the end.
  package mutating func next(
    isolation actor: isolated (any Actor)? = #isolation
  ) async throws(ClientError) -> DownLine? {
    if !lines.hasMore { await writeAnswers(isolation: actor) }
    guard let bytes = try await lines.next(isolation: actor) else { return nil }
    self.bytes = bytes
    let line = DownLine(bytes.span) ?? .unknown(type: "")
    answer(line)?.write(to: &answers)
    return line
  }

  /// Writes the pending answers, for a caller that does not read on.
  package mutating func writeAnswers(isolation actor: isolated (any Actor)? = #isolation) async {
    guard !answers.isEmpty else { return }
    let bytes = answers
    answers.removeAll(keepingCapacity: true)
    // Reading reports what broke the stream, after the lines before it.
    try? await stream.write(bytes)
  }

  private func answer(_ line: DownLine) -> UpLine? {
    guard let habits else { return nil }
    return switch line {
    case .keepAlive: .keepAlive
    case .notification(let delivery) where habits.acknowledges:
      .ack(id: delivery.notification.uniqueID, outcome: habits.outcome)
    case .hello(_, _, _, isVirtual: true, _, _) where habits.followsClock:
      .barrier(number: 0, next: nil)
    case .barrier(let number, _) where habits.followsClock: .barrier(number: number, next: nil)
    case .hello, .notification, .broadcast, .empty, .barrier, .checkpoint, .bye, .error, .unknown:
      nil
    }
  }
}

extension ClientStream {
  package func write(_ line: UpLine) async throws(ClientError) {
    var bytes: [UInt8] = []
    line.write(to: &bytes)
    try await write(bytes)
  }
}
