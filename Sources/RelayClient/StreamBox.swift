import Synchronization

/// What a stream's reader and writer share with the event loop: bytes that came and were not read,
/// bytes that were written and have not left.
///
/// Both sides are bounded. The reader's bytes: above `readLimitBytes` the whole connection stops
/// reading (`isOverfull`) until the reader has taken them. The writer's: `write` waits.
final class StreamBox: Sendable {
  struct Head: Sendable {
    var status: Int
    var headers: ClientHeaders
  }

  /// What the reader gets next.
  enum Reading: Sendable {
    case bytes([UInt8], wasOverfull: Bool)
    case end
    case failure(ClientError)
    /// Nothing yet; the task was cancelled or woken in vain.
    case nothing
  }

  private struct State {
    var head: Result<Head, ClientError>?
    var received: [UInt8] = []
    var unsentBytes = 0
    /// The response is complete: nil while it is not.
    var ending: Result<Void, ClientError>?
    var canWrite = true
    /// Everybody who waits for anything; they look again and may wait again.
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())
  let readLimitBytes: Int
  /// Written bytes that may wait before `write` waits itself; below what a session queues.
  static let writeLimitBytes = 262_144

  init(readLimitBytes: Int) {
    self.readLimitBytes = readLimitBytes
  }

  /// Changes the state, and lets everybody look again.
  private func update<Answer: Sendable>(_ change: (inout sending State) -> Answer) -> Answer {
    let (answer, waiters) = state.withLock { state in
      let answer = change(&state)
      defer { state.waiters = [] }
      return (answer, state.waiters)
    }
    for waiter in waiters { waiter.resume() }
    return answer
  }

  /// Waits until something may be so, once: it may still not be, as when the task was cancelled.
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
      wakeAll()
    }
  }

  // MARK: The event loop's side

  func opened(_ head: Head) { update { $0.head = .success(head) } }

  /// Adds bytes; true when the reader has fallen behind.
  func received(_ bytes: ArraySlice<UInt8>) -> Bool {
    update { state in
      state.received.append(contentsOf: bytes)
      return state.received.count > readLimitBytes
    }
  }

  /// `count` bytes that were written have left.
  func sent(_ count: Int) { update { $0.unsentBytes -= count } }

  /// The response is complete, or the stream broke. What was received before stays readable.
  func ended(_ ending: Result<Void, ClientError>) {
    update { state in
      if state.ending == nil { state.ending = ending }
      if state.head == nil {
        state.head =
          switch ending {
          case .success: .failure(.unexpectedAnswer(what: "the stream ended without an answer"))
          case .failure(let error): .failure(error)
          }
      }
      if case .failure = ending { state.canWrite = false }
    }
  }

  /// The stream is gone in both directions.
  func closed() { update { $0.canWrite = false } }

  // MARK: The caller's side

  /// Lets a cancelled task look up.
  func wakeAll() { update { _ in } }

  var head: Result<Head, ClientError>? { state.withLock { $0.head } }

  func waitForHead() async { await wait { $0.head != nil } }

  /// Everything that has come.
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

  /// Waits until `read` may have more to say.
  func waitForBytes() async { await wait { !$0.received.isEmpty || $0.ending != nil } }

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

  /// Waits until something has left, or the stream is gone.
  func waitForRoom() async { await wait { $0.unsentBytes == 0 || !$0.canWrite } }

  /// No more writes from now on.
  func finishWriting() {
    state.withLock { $0.canWrite = false }
  }
}
