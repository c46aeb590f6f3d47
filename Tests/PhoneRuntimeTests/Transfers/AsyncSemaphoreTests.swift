import Synchronization
import Testing

@testable import PhoneRuntime

@Suite struct AsyncSemaphoreTests {
  private final class Shared<Value: Sendable>: Sendable {
    let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }
  }

  /// Waits until so many others wait.
  private func until(_ count: Int, waitAt turnstile: AsyncSemaphore) async {
    while turnstile.waitingCount < count { await Task.yield() }
  }

  @Test func inOrderAndOneAtATime() async {
    let turnstile = AsyncSemaphore(1)
    let order = Shared<[Int]>([])
    #expect(await turnstile.enter())
    var tasks: [Task<Void, Never>] = []
    for number in 0..<20 {
      tasks.append(
        Task {
          #expect(await turnstile.enter())
          order.value.withLock { $0.append(number) }
          turnstile.leave()
        })
      await until(number + 1, waitAt: turnstile)
    }
    turnstile.leave()
    for task in tasks { await task.value }
    #expect(order.value.withLock { $0 } == Array(0..<20))
    // The place is free again.
    #expect(await turnstile.enter() && turnstile.waitingCount == 0)
  }

  @Test func whoGivesUpTakesNoPlace() async {
    let turnstile = AsyncSemaphore(1)
    #expect(await turnstile.enter())
    let one = Task { await turnstile.enter() }
    await until(1, waitAt: turnstile)
    let two = Task { await turnstile.enter() }
    await until(2, waitAt: turnstile)
    one.cancel()
    #expect(await !one.value)
    turnstile.leave()
    #expect(await two.value)
    turnstile.leave()
    #expect(await turnstile.enter())
  }

  @Test func neverMoreThanThereArePlaces() async {
    let turnstile = AsyncSemaphore(3)
    let inside = Shared((now: 0, most: 0))
    let tasks = (0..<300).map { _ in
      Task {
        guard await turnstile.enter() else { return }
        inside.value.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
        await Task.yield()
        inside.value.withLock { $0.now -= 1 }
        turnstile.leave()
      }
    }
    for (number, task) in tasks.enumerated() where number % 7 == 0 { task.cancel() }
    for task in tasks { await task.value }
    #expect(inside.value.withLock { $0.most } <= 3 && turnstile.waitingCount == 0)
    for _ in 0..<3 { #expect(await turnstile.enter()) }
  }
}
