import Synchronization

/// Bytes between a stream's tasks and the event loop: received and unread, written and not sent.
/// Both are bounded: above `readLimitBytes` the whole connection stops reading until the reader
/// catches up, and a request fails; `write` waits.
final class StreamBox: Sendable {
  enum Reading: Sendable {
    case bytes([UInt8], wasOverfull: Bool)
    case end
    case failure(ClientError)
    /// Nothing yet; the task was cancelled or woken in vain.
    case nothing
  }

  private struct State {
    /// Without a body.
    var head: Result<ClientResponse, ClientError>?
    var received: [UInt8] = []
    var unsentBytes = 0
    /// nil while the response is incomplete.
    var ending: Result<Void, ClientError>?
    var canWrite = true
    /// All tasks that wait; each checks again and may wait again.
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())
  /// Called on the event loop with the whole answer, for a request that no task waits for.
  private let onAnswer: (@Sendable (Result<ClientResponse, ClientError>) -> Void)?
  let readLimitBytes: Int
  /// Written bytes until `write` waits; below what a session queues.
  static let writeLimitBytes = 262_144

  init(
    readLimitBytes: Int,
    onAnswer: (@Sendable (Result<ClientResponse, ClientError>) -> Void)? = nil
  ) {
    self.readLimitBytes = readLimitBytes
    self.onAnswer = onAnswer
  }

  /// Changes the state and wakes all waiting tasks.
  private func update<Answer: Sendable>(_ change: (inout sending State) -> Answer) -> Answer {
    let (answer, waiters) = state.withLock { state in
      let answer = change(&state)
      defer { state.waiters = [] }
      return (answer, state.waiters)
    }
    for waiter in waiters { waiter.resume() }
    return answer
  }

  /// Waits once until a condition may hold; the caller checks again.
  private func wait(until isSo: @Sendable (State) -> Bool) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          guard !isSo(state), !Task.isCancelled else { return true }
          state.waiters.append(continuation)
          return false
        }
        if isReady { continuation.resume() }
      }
    } onCancel: {
      update { _ in }
    }
  }

  // MARK: The event loop's side

  func opened(_ head: ClientResponse, isWhole: Bool) {
    update { state in
      state.head = .success(head)
      if isWhole { state.ending = .success(()) }
    }
    if isWhole, let onAnswer, let answer { onAnswer(answer) }
  }

  /// Adds bytes; true when there are more than the limit.
  func received(_ bytes: ArraySlice<UInt8>) -> Bool {
    update { state in
      state.received.append(contentsOf: bytes)
      return state.received.count > readLimitBytes
    }
  }

  func sent(_ count: Int) { update { $0.unsentBytes -= count } }

  /// Ends the response; what was received stays readable.
  func ended(_ ending: Result<Void, ClientError>) {
    let isFirst = update { state in
      let isFirst = state.ending == nil
      if isFirst { state.ending = ending }
      if state.head == nil {
        state.head =
          switch ending {
          case .success: .failure(.unexpectedAnswer(what: "the stream ended without an answer"))
          case .failure(let error): .failure(error)
          }
      }
      if case .failure = ending { state.canWrite = false }
      return isFirst
    }
    if isFirst, let onAnswer, let answer { onAnswer(answer) }
  }

  func closed() { update { $0.canWrite = false } }

  // MARK: The caller's side

  var head: Result<ClientResponse, ClientError>? { state.withLock { $0.head } }

  func waitForHead() async { await wait { $0.head != nil } }

  /// The whole answer; nil while it is incomplete.
  var answer: Result<ClientResponse, ClientError>? {
    state.withLock { state in
      guard let ending = state.ending, let head = state.head else { return nil }
      return ending.flatMap { _ in head }.map { head in
        ClientResponse(status: head.status, headers: head.headers, body: state.received)
      }
    }
  }

  func waitForEnd() async { await wait { $0.ending != nil } }

  func read() -> Reading {
    state.withLock { state in
      if !state.received.isEmpty {
        let wasOverfull = state.received.count > readLimitBytes
        var bytes: [UInt8] = []
        swap(&bytes, &state.received)
        return .bytes(bytes, wasOverfull: wasOverfull)
      }
      return switch state.ending {
      case nil: .nothing
      case .success: .end
      case .failure(let error): .failure(error)
      }
    }
  }

  func waitForBytes() async { await wait { !$0.received.isEmpty || $0.ending != nil } }

  /// The first line that has arrived, which stays to be read; nil while there is none.
  var firstLine: [UInt8]? {
    state.withLock { state in
      state.received.firstIndex(of: UInt8(ascii: "\n")).map { Array(state.received[..<$0]) }
    }
  }

  /// False when no whole line can come any more, or it is longer than what is read ahead.
  var awaitsLine: Bool {
    state.withLock { $0.ending == nil && $0.received.count <= readLimitBytes }
  }

  func waitForLine() async {
    await wait { [readLimitBytes] state in
      state.received.contains(UInt8(ascii: "\n")) || state.ending != nil
        || state.received.count > readLimitBytes
    }
  }

  /// Reserves room for `count` bytes; false when there is none now. Throws when no more can be
  /// written.
  func reserve(_ count: Int) throws(ClientError) -> Bool {
    let answer: Result<Bool, ClientError> = state.withLock { state in
      guard state.canWrite else {
        if case .failure(let error) = state.ending { return .failure(error) }
        return .failure(.streamEnded)
      }
      let fits = state.unsentBytes == 0 || state.unsentBytes + count <= Self.writeLimitBytes
      if fits { state.unsentBytes += count }
      return .success(fits)
    }
    return try answer.get()
  }

  func waitForRoom() async { await wait { $0.unsentBytes == 0 || !$0.canWrite } }

  func finishWriting() {
    state.withLock { $0.canWrite = false }
  }
}
