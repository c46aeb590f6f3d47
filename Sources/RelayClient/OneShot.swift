import Synchronization

/// Where a task waits for one outcome: settled once, by the event loop, the time limit or a
/// cancelled task, whichever is first.
final class OneShot<Value: Sendable>: Sendable {
  typealias Outcome = Result<Value, ClientError>

  private enum State {
    case unasked
    case waiting(CheckedContinuation<Outcome, Never>)
    case settled(Outcome)
  }

  private let state = Mutex(State.unasked)

  /// Whether nobody waits any more.
  var isSettled: Bool {
    state.withLock { if case .settled = $0 { true } else { false } }
  }

  /// Settles; what comes later is dropped.
  func settle(_ outcome: Outcome) {
    let waiting: CheckedContinuation<Outcome, Never>? = state.withLock { state in
      switch state {
      case .settled:
        return nil
      case .unasked:
        state = .settled(outcome)
        return nil
      case .waiting(let continuation):
        state = .settled(outcome)
        return continuation
      }
    }
    waiting?.resume(returning: outcome)
  }

  /// The outcome, once there is one. One task may ask, and only once. When it is cancelled the
  /// outcome is `cancelled`, and `abandon` tells the event loop.
  func value(abandon: @Sendable () -> Void) async throws(ClientError) -> Value {
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let settled: Outcome? = state.withLock { state in
          if case .settled(let outcome) = state { return outcome }
          state = .waiting(continuation)
          return nil
        }
        if let settled { continuation.resume(returning: settled) }
      }
    } onCancel: {
      settle(.failure(.cancelled))
      abandon()
    }
    return try outcome.get()
  }
}
