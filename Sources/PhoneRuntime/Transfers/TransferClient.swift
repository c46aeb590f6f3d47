import DeviceModel
import FoundationEssentials
import Synchronization
import TLS

/// Performs HTTP transfers for the phones of a process, whatever their apps are doing
/// (WWDC 2013 session 204). The HTTP is `HTTPExchange`'s; here is what makes a
/// transfer of it: files, resuming, trying again, reports.
///
/// * A download goes to `<file>.part` and, once all of it is there, to `<file>`. It resumes by
///   `Range` and `If-Range`, as `PartFile` has noted; what a server does not continue starts over.
/// * An upload is one `PUT`, which may be repeated without harm, as `POST` may not. HTTP has no way
///   to resume it: it starts over.
/// * A lost connection, a silent server, and the statuses 408, 429 and 5xx are tried again, a
///   bounded number of times and after longer and longer waits.
///
/// Memory is bounded per transfer: a block or two, whatever the size of the file.
package final class TransferClient: Sendable {
  let options: TransferOptions
  private let tls: TLSContext
  private let turnstile: Turnstile
  /// Those under way; nil after the shutdown.
  private let exchanges = Mutex<[ObjectIdentifier: HTTPExchange]?>([:])

  /// Connections are made when they are needed. `shutdown` must be called at the end.
  package init(
    _ options: TransferOptions = TransferOptions()
  ) throws(TransferClientProblem) {
    self.options = options
    turnstile = Turnstile(options.transfersAtOnce)
    var trust = TLSTrust.system
    if let path = options.trustRoots {
      guard let pem = FileManager.default.contents(atPath: path) else {
        throw .trustRoots(path, "it cannot be read")
      }
      trust = .systemAnd(pem: Array(pem))
    }
    do {
      tls = try TLSContext.client(
        trust: trust, identity: nil, applicationProtocols: ["http/1.1"])
    } catch {
      throw .trustRoots(options.trustRoots ?? "the system's list", "\(error)")
    }
  }

  /// Closes all connections. Transfers under way end without a report.
  package func shutdown() async {
    let open = exchanges.withLock { exchanges in
      defer { exchanges = nil }
      return exchanges ?? [:]
    }
    for exchange in open.values { exchange.close() }
  }

  /// One request and its answer, unless everything was shut down.
  func exchange<Outcome: Sendable>(
    _ request: HTTPRequest, _ body: UploadBody?,
    receive: (inout HTTPAnswer) async throws(TransferProblem) -> Outcome
  ) async throws(TransferProblem) -> Outcome {
    let exchange = HTTPExchange(options, tls)
    let isOpen = exchanges.withLock { exchanges in
      exchanges?[ObjectIdentifier(exchange)] = exchange
      return exchanges != nil
    }
    guard isOpen else { throw .failed("the transfers were shut down") }
    defer { exchanges.withLock { _ = $0?.removeValue(forKey: ObjectIdentifier(exchange)) } }
    return try await exchange.perform(request, body: body, receive: receive)
  }

  /// Performs a transfer and reports, one report after the other. Returns after the last one, or
  /// without it, soon, when the task is cancelled; what has come of a download then stays.
  package func perform(
    _ order: TransferOrder, report: @Sendable (TransferReport) async -> Void
  ) async {
    let (reports, channel) = AsyncStream.makeStream(
      of: TransferReport.self, bufferingPolicy: .bufferingNewest(ProgressReporter.most))
    let progress = ProgressReporter(to: channel, every: options.progressInterval)
    async let end: Void = carryOut(order, progress)
    for await one in reports { await report(one) }
    await end
  }

  private func carryOut(_ order: TransferOrder, _ progress: ProgressReporter) async {
    guard await turnstile.enter() else { return progress.end(nil) }
    let report = await attempts(order, progress)
    turnstile.leave()
    progress.end(report)
  }

  /// Tries until there is something to report; nil when the task was cancelled.
  private func attempts(
    _ order: TransferOrder, _ progress: ProgressReporter
  ) async -> TransferReport? {
    let backoff = Backoff(first: options.firstDelay, longest: options.longestDelay)
    var random = SystemRandomNumberGenerator()
    var retry = 0
    while true {
      do throws(TransferProblem) {
        return .finished(bytes: try await attempt(order, progress))
      } catch {
        switch error {
        case .cancelled: return nil
        case .challenged: return .challenged
        case .failed(let why): return failed(order, why)
        case .interrupted(let why):
          guard retry < options.retries else {
            return failed(order, "\(why), and so \(retry + 1) times")
          }
          guard await sleep(backoff.delay(before: retry, using: &random)) else { return nil }
          retry += 1
        }
      }
    }
  }

  private func attempt(
    _ order: TransferOrder, _ progress: ProgressReporter
  ) async throws(TransferProblem) -> Int64 {
    switch order.direction {
    case .download: try await download(order, progress)
    case .upload: try await upload(order, progress)
    }
  }

  /// Nobody goes on with what has failed for good.
  private func failed(_ order: TransferOrder, _ why: String) -> TransferReport {
    if order.direction == .download { PartFile(file: order.file).discard() }
    return .failed(why)
  }

  /// False if the task was cancelled.
  private func sleep(_ duration: Duration) async -> Bool {
    (try? await Task.sleep(for: duration)) != nil
  }
}

/// Why there can be no client.
package enum TransferClientProblem: Error, Hashable, CustomStringConvertible {
  case trustRoots(String, String)

  package var description: String {
    switch self {
    case .trustRoots(let path, let why):
      "\(path) cannot be used: it must hold certificates in PEM that this user may read (\(why))"
    }
  }
}
