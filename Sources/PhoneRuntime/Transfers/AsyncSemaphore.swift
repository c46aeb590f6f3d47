/// A counting semaphore; waiters are served in order.
actor AsyncSemaphore {
  private var free: Int
  private(set) var waiting: [CheckedContinuation<Void, Never>] = []

  init(_ count: Int) { free = max(1, count) }

  /// Waits for a place, to be returned by `leave`. A cancelled task waits for its turn, too.
  func enter() async {
    guard free == 0 else {
      free -= 1
      return
    }
    await withCheckedContinuation { waiting.append($0) }
  }

  func leave() {
    if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
  }
}
