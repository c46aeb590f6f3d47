import NIOPosix
import Testing

@testable import RelayClient

struct PushPlanTests {
  private func plan(
    _ count: Int, openLimit: Int = 100,
    due: @escaping @Sendable (Int) -> ContinuousClock.Instant = { _ in .now },
    onAnswer: @escaping @Sendable (Int, PushAnswer, ContinuousClock.Instant) -> Void
  ) -> PushPlan {
    PushPlan(
      count: count, openLimit: openLimit, due: due,
      request: { PushRequest(token: "\($0)", payload: [123, 125]) }, onAnswer: onAnswer)
  }

  @Test func eachIsSentOnceInOrderAndNotBeforeItIsDue() async throws {
    let paths = Shared<[String]>([])
    let server = try await TestServer(
      TestServer.Script(onRequest: { exchange, _ in
        let path = exchange.path
        paths.change { $0.append(path) }
        exchange.answer(path.hasSuffix("/7") ? 410 : 200)
      }))
    let client = try await connect(server)
    let (statuses, early) = (Shared<[Int: Int]>([:]), Shared(0))
    let begin = ContinuousClock.now
    let due: @Sendable (Int) -> ContinuousClock.Instant = { begin + .microseconds(700 * $0) }
    let plan = plan(60, due: due) { index, answer, moment in
      statuses.change { $0[index] = answer.status }
      if moment < due(index) { early.change { $0 += 1 } }
    }
    try await client.push(plan, providerToken: "jwt")
    #expect(paths.value == (0..<60).map { "/3/device/\($0)" })
    #expect(statuses.value.count == 60 && early.value == 0)
    #expect(statuses.value.filter { $0.value != 200 } == [7: 410])
    await client.close()
    await server.stop()
  }

  @Test(arguments: [1, 3])
  func noMoreAreOpenThanTheLimit(limit: Int) async throws {
    let most = Shared(0)
    let server = try await TestServer(
      TestServer.Script(onRequest: { exchange, _ in
        let open = exchange.connection.mostStreams
        most.change { $0 = max($0, open) }
        exchange.answer(200)
      }))
    let client = try await connect(server)
    let count = Shared(0)
    try await client.push(
      plan(50, openLimit: limit) { _, _, _ in count.change { $0 += 1 } }, providerToken: nil)
    #expect(count.value == 50 && (1...limit).contains(most.value))
    await client.close()
    await server.stop()
  }

  @Test func aLostConnectionEndsIt() async throws {
    let seen = Shared(0)
    let server = try await TestServer(
      TestServer.Script(onRequest: { exchange, _ in
        seen.change { $0 += 1 }
        if seen.value == 3 { exchange.connection.closeSocket() } else { exchange.answer(200) }
      }))
    let client = try await connect(server)
    let answered = Shared(0)
    await #expect(throws: ClientError.self) {
      try await client.push(
        plan(50, openLimit: 1) { _, _, _ in answered.change { $0 += 1 } }, providerToken: nil)
    }
    #expect(seen.value == 3 && answered.value == 2)
    // One that is closed already fails at once.
    await #expect(throws: ClientError.self) {
      try await client.push(plan(1) { _, _, _ in }, providerToken: nil)
    }
    await server.stop()
  }

  @Test func nothingToSendIsDone() async throws {
    let server = try await TestServer(TestServer.Script())
    let client = try await connect(server)
    try await client.push(plan(0) { _, _, _ in }, providerToken: nil)
    await client.close()
    await server.stop()
  }
}
