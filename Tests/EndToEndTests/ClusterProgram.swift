import Foundation
import Subprocess
import Synchronization

/// A program beside a test that is ended and started again.
final class ClusterProgram: Sendable {
  private struct Running {
    let number: Int
    let send: @Sendable (Signal) throws -> Void
    let end: Task<Void, Never>
  }

  private struct State {
    var starts = 0
    /// The start whose process has ended already.
    var ended = 0
    var running: Running?
    /// What it said last on standard error, if it ended by itself.
    var lastWords = ""
  }

  let name: String
  private let program: String
  private let arguments: [String]
  private let environment: [String: String]
  /// How the line begins that says that it works.
  private let readyLine: String?
  private let state = Mutex(State())

  init(
    _ name: String, _ program: String, _ arguments: [String], environment: [String: String] = [:],
    ready: String?
  ) {
    (self.name, self.program, self.arguments) = (name, program, arguments)
    (self.environment, readyLine) = (environment, ready)
  }

  var isRunning: Bool { state.withLock { $0.running != nil } }
  var lastWords: String { state.withLock { $0.lastWords } }

  /// Starts it and waits until it says that it works.
  ///
  /// - Parameter more: of its environment, this time.
  func start(adding more: [String: String] = [:]) async throws {
    let environment = environment.merging(more) { $1 }
    let number = state.withLock { state in
      state.starts += 1
      return state.starts
    }
    let (news, teller) = AsyncThrowingStream<Void, any Error>.makeStream()
    let (senders, senderTeller) = AsyncStream<@Sendable (Signal) throws -> Void>.makeStream()
    let end = Task { [program, arguments, readyLine] in
      do {
        let ended = try await Background.run(program, arguments, environment: environment) {
          lines, process in
          senderTeller.yield(process.send)
          if let readyLine {
            while try await !lines.next(readyLine).contains(readyLine) {}
          }
          teller.yield()
          while try await lines.nextOrEnd() != nil {}
        }
        self.ended(number, ended.log)
      } catch {
        self.ended(number, "\(error)")
        teller.finish(throwing: error)
      }
      senderTeller.finish()
      teller.finish()
    }
    guard let send = await senders.first(where: { _ in true }) else {
      throw EndToEndProblem.failed(program: name, outcome: lastWords)
    }
    state.withLock { state in
      guard state.ended < number else { return }
      state.running = Running(number: number, send: send, end: end)
    }
    for try await _ in news { return }
    throw EndToEndProblem.failed(program: name, outcome: "ended: \(lastWords)")
  }

  func send(_ signal: Signal) throws {
    let send = state.withLock { $0.running?.send }
    guard let send else { throw EndToEndProblem.failed(program: name, outcome: "is not there") }
    try send(signal)
  }

  /// Ends it at once, if it runs.
  func kill() async {
    guard let running = state.withLock({ $0.running }) else { return }
    try? running.send(.kill)
    await running.end.value
  }

  private func ended(_ number: Int, _ log: String) {
    state.withLock { state in
      state.ended = number
      if state.running?.number == number { state.running = nil }
      state.lastWords = String(log.suffix(6000))
    }
  }
}
