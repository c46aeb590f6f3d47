import DeviceModel
import FoundationEssentials
import NIOCore
import NIOHTTP1
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
  private let turnstile: AsyncSemaphore
  /// Those under way; nil after the shutdown.
  private let exchanges = Mutex<[ObjectIdentifier: HTTPExchange]?>([:])

  /// Connections are made when they are needed. `shutdown` must be called at the end.
  package init(
    _ options: TransferOptions = TransferOptions()
  ) throws(TransferClientError) {
    self.options = options
    turnstile = AsyncSemaphore(options.transfersAtOnce)
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
    receive: (inout HTTPAnswer) async throws(TransferError) -> Outcome
  ) async throws(TransferError) -> Outcome {
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

/// One attempt each.
extension TransferClient {
  // MARK: Downloads

  /// Fetches what is missing of a file, and puts it in its place. Its size.
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
      // Some servers give a file in parts. They have to be worth a request.
      guard bytes - before >= TransferOptions.leastPart else {
        throw .interrupted("the server did not send all that was asked for")
      }
      rest = part.rest(for: order.url)
    }
  }

  /// One request, and what it brings. How many bytes there are, and how many there should be.
  private func fetch(
    _ order: TransferOrder, _ part: PartFile, _ rest: (note: PartFile.Note, bytes: Int64)?,
    _ progress: ProgressReporter
  ) async throws(TransferError) -> (bytes: Int64, whole: Int64) {
    var request = try request(for: order, .GET)
    // What is stored is what the server has, so that a range of it means the same.
    request.headers.add(name: "Accept-Encoding", value: "identity")
    if let rest {
      request.headers.add(name: "Range", value: "bytes=\(rest.bytes)-")
      request.headers.add(name: "If-Range", value: rest.note.validator)
    }
    return try await send(request) { answer throws(TransferError) in
      try await receive(&answer, order, part, rest, progress)
    }
  }

  /// What an answer brings. How many bytes there are, and how many there should be.
  private func receive(
    _ answer: inout HTTPAnswer, _ order: TransferOrder, _ part: PartFile,
    _ rest: (note: PartFile.Note, bytes: Int64)?, _ progress: ProgressReporter
  ) async throws(TransferError) -> (bytes: Int64, whole: Int64) {
    let (status, headers) = (answer.head.status, answer.head.headers)
    let range = headers.first(name: "Content-Range").flatMap { ContentRange($0) }
    if status == .rangeNotSatisfiable, let rest {
      // All of it had come, and only its new name was missing; or it is another file by now.
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
      part.note(PartFile.Note(order.url, headers, bytes: whole))
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

  /// Writes what comes. What has come stays there, whatever happens.
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

  /// Sends a file. Its size.
  func upload(
    _ order: TransferOrder, _ progress: ProgressReporter
  ) async throws(TransferError) -> Int64 {
    let body = try UploadBody(order, progress)
    try check(body.bytes)
    var request = try request(for: order, .PUT)
    request.headers.add(name: "Content-Type", value: "application/octet-stream")
    return try await send(request, body, progress) { answer throws(TransferError) in
      let status = answer.head.status
      // 303 tells where to read about an upload that was taken.
      if status != .seeOther, let problem = TransferError(status) { throw problem }
      return body.bytes
    }
  }

  // MARK: Requests

  private func request(
    for order: TransferOrder, _ method: HTTPMethod
  ) throws(TransferError) -> HTTPRequest {
    let address: WebAddress
    do {
      address = try WebAddress(order.url)
    } catch {
      throw .failed("\(error)")
    }
    var request = HTTPRequest(address: address, method: method)
    request.headers.add(name: "User-Agent", value: "pushrelay")
    if let authorization = order.authorization {
      request.headers.add(name: "Authorization", value: authorization)
    }
    guard request.isSendable else {
      throw .failed("the authorization has characters that HTTP cannot send, such as line ends")
    }
    return request
  }

  /// Sends a request where redirects lead it, with its body from the beginning each time.
  private func send<Outcome: Sendable>(
    _ request: HTTPRequest, _ body: UploadBody? = nil, _ progress: ProgressReporter? = nil,
    receive: (inout HTTPAnswer) async throws(TransferError) -> Outcome
  ) async throws(TransferError) -> Outcome {
    var request = request
    for _ in 0...max(0, options.redirects) {
      let current = request
      progress?.began(at: 0)
      var next: HTTPRequest?
      let outcome = try await exchange(current, body) {
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

/// Why there can be no client.
package enum TransferClientError: Error, Hashable, CustomStringConvertible {
  case trustRoots(String, String)

  package var description: String {
    switch self {
    case .trustRoots(let path, let why):
      "\(path) cannot be used: it must hold certificates in PEM that this user may read (\(why))"
    }
  }
}
