import Synchronization

/// A counting semaphore; waiters are served in order.
final class AsyncSemaphore: Sendable {
  private struct State {
    var free: Int
    var nextTicket: UInt64 = 0
    var waiting: [(ticket: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
  }

  private let state: Mutex<State>

  init(_ count: Int) { state = Mutex(State(free: max(1, count))) }

  /// Waits for a place, to be returned by `leave`. False if the task was cancelled instead.
  func enter() async -> Bool {
    let ticket = state.withLock { state in
      state.nextTicket += 1
      return state.nextTicket
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: Bool? = state.withLock { state in
          // Checked under the lock: a later cancellation finds the ticket in the list.
          guard !Task.isCancelled else { return false }
          guard state.free == 0 else {
            state.free -= 1
            return true
          }
          state.waiting.append((ticket, continuation))
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        state.waiting.firstIndex { $0.ticket == ticket }.map { state.waiting.remove(at: $0) }
      }
      waiter?.continuation.resume(returning: false)
    }
  }

  func leave() {
    let next = state.withLock { state in
      guard state.waiting.isEmpty else { return Optional(state.waiting.removeFirst()) }
      state.free += 1
      return nil
    }
    next?.continuation.resume(returning: true)
  }

  /// For tests.
  var waitingCount: Int { state.withLock { $0.waiting.count } }
}
