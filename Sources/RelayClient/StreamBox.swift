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

  private typealias Waiter = CheckedContinuation<Void, Never>

  private struct State {
    var head: Result<Head, ClientError>?
    var received: [UInt8] = []
    var unsentBytes = 0
    /// The response is complete: nil while it is not.
    var ending: Result<Void, ClientError>?
    var canWrite = true
    var reader: Waiter?
    /// Everybody else who waits for anything; they look again and may wait again.
    var others: [Waiter] = []
  }

  private let state = Mutex(State())
  let readLimitBytes: Int
  /// Written bytes that may wait before `write` waits itself; below what a session queues.
  static let writeLimitBytes = 262_144

  init(readLimitBytes: Int) {
    self.readLimitBytes = readLimitBytes
  }

  // MARK: The event loop's side

  func opened(_ head: Head) {
    let waiters = state.withLock { state in
      state.head = .success(head)
      return Self.take(&state.others)
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Adds bytes; true when the reader has fallen behind.
  func received(_ bytes: ArraySlice<UInt8>) -> Bool {
    let (reader, isOverfull) = state.withLock { state in
      state.received.append(contentsOf: bytes)
      return (Self.take(&state.reader), state.received.count > readLimitBytes)
    }
    reader?.resume()
    return isOverfull
  }

  /// `count` bytes that were written have left.
  func sent(_ count: Int) {
    let waiters = state.withLock { state in
      state.unsentBytes -= count
      return Self.take(&state.others)
    }
    for waiter in waiters { waiter.resume() }
  }

  /// The response is complete, or the stream broke. What was received before stays readable.
  func ended(_ ending: Result<Void, ClientError>) {
    let waiters = state.withLock { state in
      if state.ending == nil { state.ending = ending }
      if state.head == nil {
        state.head =
          switch ending {
          case .success: .failure(.unexpectedAnswer(what: "the stream ended without an answer"))
          case .failure(let error): .failure(error)
          }
      }
      if case .failure = ending { state.canWrite = false }
      return Self.takeAll(&state)
    }
    for waiter in waiters { waiter.resume() }
  }

  /// The stream is gone in both directions.
  func closed() {
    let waiters = state.withLock { state in
      state.canWrite = false
      return Self.takeAll(&state)
    }
    for waiter in waiters { waiter.resume() }
  }

  // MARK: The caller's side

  /// Lets a cancelled task look up.
  func wakeAll() {
    let waiters = state.withLock { Self.takeAll(&$0) }
    for waiter in waiters { waiter.resume() }
  }

  var head: Result<Head, ClientError>? { state.withLock { $0.head } }

  /// Waits once for the head; it may still be missing afterwards when the task was cancelled.
  func waitForHead() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          guard state.head == nil, !Task.isCancelled else { return true }
          state.others.append(continuation)
          return false
        }
        if isReady { continuation.resume() }
      }
    } onCancel: {
      wakeAll()
    }
  }

  /// Takes everything that has come.
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
  func waitForBytes() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          guard state.received.isEmpty, state.ending == nil, !Task.isCancelled else { return true }
          if state.reader == nil {
            state.reader = continuation
          } else {
            state.others.append(continuation)
          }
          return false
        }
        if isReady { continuation.resume() }
      }
    } onCancel: {
      wakeAll()
    }
  }

  /// Reserves room for `count` bytes; nil when there is none now. Throws when no more can be
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
  func waitForRoom() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          guard state.unsentBytes > 0, state.canWrite, !Task.isCancelled else { return true }
          state.others.append(continuation)
          return false
        }
        if isReady { continuation.resume() }
      }
    } onCancel: {
      wakeAll()
    }
  }

  /// No more writes from now on.
  func finishWriting() {
    state.withLock { $0.canWrite = false }
  }

  // MARK: Details

  private static func take(_ waiter: inout Waiter?) -> Waiter? {
    defer { waiter = nil }
    return waiter
  }

  private static func take(_ waiters: inout [Waiter]) -> [Waiter] {
    defer { waiters = [] }
    return waiters
  }

  private static func takeAll(_ state: inout State) -> [Waiter] {
    var all = take(&state.others)
    if let reader = take(&state.reader) { all.append(reader) }
    return all
  }
}
