import NIOCore

/// Pushes that are due one after the other, whether or not earlier ones were answered. They are
/// made, sent and answered on the connection's loop: no task and no timer of a thread pool stands
/// between the moment and the socket.
package struct PushPlan: Sendable {
  package var count: Int
  /// Pushes that are open at once; what is due beyond them is sent late.
  package var openLimit: Int
  /// When a push is due, by its index; not before the one before it.
  package var due: @Sendable (Int) -> ContinuousClock.Instant
  package var request: @Sendable (Int) -> PushRequest
  /// Called on the loop with a push's index, its answer and the moment of it.
  package var onAnswer: @Sendable (Int, PushAnswer, ContinuousClock.Instant) -> Void

  package init(
    count: Int, openLimit: Int, due: @escaping @Sendable (Int) -> ContinuousClock.Instant,
    request: @escaping @Sendable (Int) -> PushRequest,
    onAnswer: @escaping @Sendable (Int, PushAnswer, ContinuousClock.Instant) -> Void
  ) {
    (self.count, self.openLimit) = (count, openLimit)
    (self.due, self.request, self.onAnswer) = (due, request, onAnswer)
  }
}

extension RelayClient {
  /// Sends all pushes of a plan and waits for their answers. Throws the first error of one; those
  /// behind it are not sent.
  package func push(_ plan: PushPlan, providerToken: String?) async throws(ClientError) {
    let end = eventLoop.makePromise(of: Void.self)
    let state = NIOLoopBoundBox<PlanState>.makeBoxSendingValue(PlanState(), eventLoop: eventLoop)
    let run = PlanRun(
      client: self, plan: plan, providerToken: providerToken, state: state, end: end)
    eventLoop.execute { run.sendWhatIsDue() }
    do {
      try await withTaskCancellationHandler {
        try await end.futureResult.get()
      } onCancel: {
        Task { await close() }
      }
    } catch {
      throw error as? ClientError ?? .closed
    }
  }
}

private struct PlanState {
  var sent = 0
  var open = 0
  var hasTimer = false
  var hasFailed = false
}

/// A plan on its way; everything happens on the loop.
private struct PlanRun: Sendable {
  let client: RelayClient
  let plan: PushPlan
  let providerToken: String?
  let state: NIOLoopBoundBox<PlanState>
  let end: EventLoopPromise<Void>

  func sendWhatIsDue() {
    while state.value.sent < plan.count, !state.value.hasFailed {
      // The next answer goes on.
      guard state.value.open < plan.openLimit else { return }
      let index = state.value.sent
      let wait = plan.due(index) - .now
      guard wait <= .zero else { return sleep(wait) }
      state.value.sent += 1
      state.value.open += 1
      client.push(plan.request(index), providerToken: providerToken) { answer in
        answered(index, answer)
      }
    }
    if state.value.open == 0, !state.value.hasFailed { end.succeed() }
  }

  private func sleep(_ wait: Duration) {
    guard !state.value.hasTimer else { return }
    state.value.hasTimer = true
    client.eventLoop.scheduleTask(in: .nanoseconds(Int64(wait / .nanoseconds(1)))) {
      state.value.hasTimer = false
      sendWhatIsDue()
    }
  }

  private func answered(_ index: Int, _ answer: Result<PushAnswer, ClientError>) {
    state.value.open -= 1
    switch answer {
    case .success(let answer):
      plan.onAnswer(index, answer, .now)
      let isFull = state.value.open + 1 == plan.openLimit
      if isFull || state.value.sent == plan.count { sendWhatIsDue() }
    case .failure(let error):
      guard !state.value.hasFailed else { return }
      state.value.hasFailed = true
      end.fail(error)
    }
  }
}
