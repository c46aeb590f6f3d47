import Synchronization

/// One outcome that a task waits for: settled once, by the event loop or by cancellation.
final class OneShot<Value: Sendable>: Sendable {
  typealias Outcome = Result<Value, ClientError>

  private enum State {
    case unasked
    case waiting(CheckedContinuation<Outcome, Never>)
    case settled(Outcome)
  }

  private let state = Mutex(State.unasked)

  var isSettled: Bool {
    state.withLock { if case .settled = $0 { true } else { false } }
  }

  /// Settles unless settled already.
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

  /// Waits for the outcome. One task may ask, once. When cancelled, the outcome is `cancelled` and
  /// `abandon` is called to tell the event loop.
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
