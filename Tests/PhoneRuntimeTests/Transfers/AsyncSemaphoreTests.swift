import Synchronization
import Testing

@testable import PhoneRuntime

@Suite struct AsyncSemaphoreTests {
  private final class Shared<Value: Sendable>: Sendable {
    let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }
  }

  @Test func inOrderAndOneAtATime() async {
    let turnstile = AsyncSemaphore(1)
    let order = Shared<[Int]>([])
    await turnstile.enter()
    var tasks: [Task<Void, Never>] = []
    for number in 0..<20 {
      tasks.append(
        Task {
          await turnstile.enter()
          order.value.withLock { $0.append(number) }
          await turnstile.leave()
        })
      while await turnstile.waiting.count <= number { await Task.yield() }
    }
    await turnstile.leave()
    for task in tasks { await task.value }
    #expect(order.value.withLock { $0 } == Array(0..<20))
    // The place is free again.
    await turnstile.enter()
    #expect(await turnstile.waiting.isEmpty)
  }

  @Test func neverMoreThanThereArePlaces() async {
    let turnstile = AsyncSemaphore(3)
    let inside = Shared((now: 0, most: 0))
    let tasks = (0..<300).map { _ in
      Task {
        await turnstile.enter()
        inside.value.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
        await Task.yield()
        inside.value.withLock { $0.now -= 1 }
        await turnstile.leave()
      }
    }
    for (number, task) in tasks.enumerated() where number % 7 == 0 { task.cancel() }
    for task in tasks { await task.value }
    #expect(inside.value.withLock { $0.most } <= 3)
    #expect(await turnstile.waiting.isEmpty)
    for _ in 0..<3 { await turnstile.enter() }
  }
}
