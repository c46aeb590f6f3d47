import DequeModule
import DeviceModel
import FoundationEssentials
import NIOCore
import NIOHTTP1
import Primitives
import Synchronization
import TLS

/// HTTP transfers for the phones of a process, whatever their apps are doing (WWDC 2013 session
/// 204): files, resuming, retries, reports. `HTTPExchange` does the HTTP.
///
/// * A download goes to `<file>.part`, and to `<file>` when complete. It resumes by `Range` and
///   `If-Range` if the server can, and otherwise starts over.
/// * An upload is one `PUT`, which unlike `POST` may be repeated. HTTP cannot resume it.
/// * A lost connection, a silent server, and status 408, 429 or 5xx are retried a bounded number
///   of times, after growing pauses.
///
/// Memory per transfer is a block or two, whatever the file's size.
package final class TransferClient: Sendable {
  let options: TransferOptions
  let tls: TLSContext
  private let turnstile: AsyncSemaphore

  /// Connects on demand. A cancelled transfer closes its connection.
  package init(_ options: TransferOptions = TransferOptions()) throws(TransferClientError) {
    self.options = options
    turnstile = AsyncSemaphore(options.transfersAtOnce)
    var trust = TLSTrust.system
    if let path = options.trustRoots {
      guard let pem = FileManager.default.contents(atPath: path) else {
        throw TransferClientError(path: path, reason: "it cannot be read")
      }
      trust = .systemAnd(pem: Array(pem))
    }
    do {
      tls = try TLSContext.client(trust: trust, identity: nil, applicationProtocols: ["http/1.1"])
    } catch {
      throw TransferClientError(
        path: options.trustRoots ?? "the system's list", reason: "\(error)")
    }
  }

  /// Performs a transfer and reports in sequence. Returns after the last report; when cancelled,
  /// without it, soon or when its turn would have come, and a partial download stays.
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
    await turnstile.enter()
    let report = Task.isCancelled ? nil : await attempts(order, progress)
    await turnstile.leave()
    progress.end(report)
  }

  /// Retries until there is a report; nil when cancelled.
  private func attempts(
    _ order: TransferOrder, _ progress: ProgressReporter
  ) async -> TransferReport? {
    let backoff = Backoff(first: options.firstDelay, longest: options.longestDelay)
    var random = SystemRandomNumberGenerator()
    var retry = 0
    while true {
      do throws(TransferError) {
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
  ) async throws(TransferError) -> Int64 {
    switch order.direction {
    case .download: try await download(order, progress)
    case .upload: try await upload(order, progress)
    }
  }

  /// A failed download cannot be resumed.
  private func failed(_ order: TransferOrder, _ why: String) -> TransferReport {
    if order.direction == .download { PartFile(file: order.file).discard() }
    return .failed(why)
  }

  private func sleep(_ duration: Duration) async -> Bool {
    (try? await Task.sleep(for: duration)) != nil
  }
}

extension TransferClient {
  // MARK: Downloads

  /// Completes the file; returns its size.
  func download(
    _ order: TransferOrder, _ progress: ProgressReporter
  ) async throws(TransferError) -> Int64 {
    let part = PartFile(file: order.file)
    var rest = order.resumes ? part.rest(for: order.url) : nil
    while true {
      let before = rest?.bytes ?? 0
      let (bytes, whole) = try await fetch(order, part, rest, progress)
      if bytes >= whole {
        try part.complete()
        return bytes
      }
      // Some servers send a file in parts, which have to be worth a request each.
      guard bytes - before >= TransferOptions.leastPart else {
        throw .interrupted("the server did not send all that was asked for")
      }
      rest = part.rest(for: order.url)
    }
  }

  /// One request. Returns the bytes present and the full size.
  private func fetch(
    _ order: TransferOrder, _ part: PartFile, _ rest: (note: PartFile.Note, bytes: Int64)?,
    _ progress: ProgressReporter
  ) async throws(TransferError) -> (bytes: Int64, whole: Int64) {
    var request = try request(for: order, .GET)
    // The file as the server stores it, so that byte ranges match.
    request.headers.add(name: "Accept-Encoding", value: "identity")
    if let rest {
      request.headers.add(name: "Range", value: "bytes=\(rest.bytes)-")
      request.headers.add(name: "If-Range", value: rest.note.validator)
    }
    return try await send(request) { answer throws(TransferError) in
      try await receive(&answer, order, part, rest, progress)
    }
  }

  private func receive(
    _ answer: inout HTTPAnswer, _ order: TransferOrder, _ part: PartFile,
    _ rest: (note: PartFile.Note, bytes: Int64)?, _ progress: ProgressReporter
  ) async throws(TransferError) -> (bytes: Int64, whole: Int64) {
    let (status, headers) = (answer.head.status, answer.head.headers)
    let range = headers.first(name: "Content-Range").flatMap { ContentRange($0) }
    if status == .rangeNotSatisfiable, let rest {
      // Everything had arrived but the rename was missing; or the file is another by now.
      if range == ContentRange.none(of: rest.bytes), rest.note.allows(headers) {
        return (rest.bytes, rest.bytes)
      }
      part.discard()
      throw .interrupted("the server has less of the file than there is")
    }
    if let problem = TransferError(status) { throw problem }
    guard status == .partialContent else {
      let whole = headers.first(name: "Content-Length").flatMap { Int64($0) }
      try check(whole ?? 0)
      part.save(PartFile.Note(order.url, headers, bytes: whole))
      let bytes = try await receive(&answer, into: part, behind: 0, progress)
      return (bytes, whole ?? bytes)
    }
    guard let rest, rest.note.allows(headers), case .part(let place, let whole)? = range,
      place.lowerBound == rest.bytes, whole == nil || whole == rest.note.bytes ?? whole
    else {
      part.discard()
      throw .interrupted("the server's answer does not continue what is there")
    }
    try check(whole ?? place.upperBound)
    let bytes = try await receive(&answer, into: part, behind: rest.bytes, progress)
    return (bytes, whole ?? rest.note.bytes ?? bytes)
  }

  /// Received bytes stay in the file, whatever happens.
  private func receive(
    _ answer: inout HTTPAnswer, into part: PartFile, behind bytes: Int64,
    _ progress: ProgressReporter
  ) async throws(TransferError) -> Int64 {
    var writer = try PartWriter(part.path, behind: bytes)
    progress.began(at: bytes)
    do throws(TransferError) {
      while let chunk = try await answer.nextChunk() {
        try check(writer.bytes + Int64(chunk.readableBytes))
        try await writer.append(chunk)
        progress.moved(to: writer.bytes)
      }
    } catch {
      try writer.finish()
      throw error
    }
    try writer.finish()
    return writer.bytes
  }

  private func check(_ bytes: Int64) throws(TransferError) {
    guard bytes <= options.maximumBytes else {
      throw .failed("the file is larger than \(options.maximumBytes) bytes, the most there may be")
    }
  }

  // MARK: Uploads

  /// Returns the file's size.
  func upload(
    _ order: TransferOrder, _ progress: ProgressReporter
  ) async throws(TransferError) -> Int64 {
    let body = try UploadBody(order, progress)
    try check(body.bytes)
    var request = try request(for: order, .PUT)
    request.headers.add(name: "Content-Type", value: "application/octet-stream")
    return try await send(request, body, progress) { answer throws(TransferError) in
      let status = answer.head.status
      // 303 points to information about an accepted upload.
      if status != .seeOther, let problem = TransferError(status) { throw problem }
      return body.bytes
    }
  }

  // MARK: Requests

  /// Posts JSON once: neither repeated nor redirected.
  func post(_ json: [UInt8], to url: String) async throws(TransferError) {
    var request = try request(to: url, .POST)
    request.headers.add(name: "Content-Type", value: "application/json")
    request.content = json
    try await HTTPExchange(options, tls).perform(request, body: nil) {
      answer throws(TransferError) in
      if let problem = TransferError(answer.head.status) { throw problem }
    }
  }

  private func request(to url: String, _ method: HTTPMethod) throws(TransferError) -> HTTPRequest {
    let address: WebAddress
    do {
      address = try WebAddress(url)
    } catch {
      throw .failed("\(error)")
    }
    var request = HTTPRequest(address: address, method: method)
    request.headers.add(name: "User-Agent", value: "pushrelay")
    return request
  }

  private func request(
    for order: TransferOrder, _ method: HTTPMethod
  ) throws(TransferError) -> HTTPRequest {
    var request = try request(to: order.url, method)
    if let authorization = order.authorization {
      request.headers.add(name: "Authorization", value: authorization)
    }
    guard request.isSendable else {
      throw .failed("the authorization has characters that HTTP cannot send, such as line ends")
    }
    return request
  }

  /// Follows redirects, sending the body from its start each time.
  private func send<Outcome: Sendable>(
    _ request: HTTPRequest, _ body: UploadBody? = nil, _ progress: ProgressReporter? = nil,
    receive: (inout HTTPAnswer) async throws(TransferError) -> Outcome
  ) async throws(TransferError) -> Outcome {
    var request = request
    for _ in 0...max(0, options.redirects) {
      let current = request
      progress?.began(at: 0)
      var next: HTTPRequest?
      let outcome = try await HTTPExchange(options, tls).perform(current, body: body) {
        answer throws(TransferError) -> Outcome? in
        next = try current.redirected(by: answer.head)
        return next == nil ? try await receive(&answer) : nil
      }
      if let outcome { return outcome }
      if let next { request = next }
    }
    throw .failed("the server sends the request on and on, more than \(options.redirects) times")
  }
}

/// Why a client cannot be created: its trust roots.
package struct TransferClientError: Error, Hashable, CustomStringConvertible {
  let path: String
  let reason: String

  package var description: String {
    "\(path) cannot be used: it must hold certificates in PEM that this user may read (\(reason))"
  }
}

/// A counting semaphore; waiters are served in order.
package actor AsyncSemaphore {
  private var free: Int
  private(set) var waiting = Deque<CheckedContinuation<Void, Never>>()

  package init(_ count: Int) { free = max(1, count) }

  /// Waits for a place, to be returned by `leave`. A cancelled task waits for its turn, too.
  package func enter() async {
    guard free == 0 else {
      free -= 1
      return
    }
    await withCheckedContinuation { waiting.append($0) }
  }

  package func leave() {
    if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
  }
}

/// Collects reports and passes them on one at a time, progress at most once per `interval`.
final class ProgressReporter: Sendable {
  private let channel: AsyncStream<TransferReport>.Continuation
  private let interval: Duration
  private let last: Mutex<ContinuousClock.Instant?> = Mutex(nil)

  /// The maximum of unread reports; the oldest are dropped, as the newest says it all.
  static let most = 16

  init(to channel: AsyncStream<TransferReport>.Continuation, every interval: Duration) {
    self.channel = channel
    self.interval = interval
  }

  /// Total bytes at a start or restart; always reported.
  func began(at bytes: Int64) {
    last.withLock { $0 = ContinuousClock.now }
    channel.yield(.progressed(bytes: bytes))
  }

  func moved(to bytes: Int64) {
    let now = ContinuousClock.now
    let isDue = last.withLock { last in
      if let last, now - last < interval { return false }
      last = now
      return true
    }
    if isDue { channel.yield(.progressed(bytes: bytes)) }
  }

  /// The last report; nil for a cancelled transfer.
  func end(_ report: TransferReport?) {
    if let report { channel.yield(report) }
    channel.finish()
  }
}
