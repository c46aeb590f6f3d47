import DeviceModel
import NIOCore
import NIOHTTP1

/// One attempt each.
extension TransferClient {
  // MARK: Downloads

  /// Fetches what is missing of a file, and puts it in its place. Its size.
  func download(
    _ order: TransferOrder, _ progress: ProgressReporter
  ) async throws(TransferProblem) -> Int64 {
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
  ) async throws(TransferProblem) -> (bytes: Int64, whole: Int64) {
    var request = try request(for: order, .GET)
    // What is stored is what the server has, so that a range of it means the same.
    request.headers.add(name: "Accept-Encoding", value: "identity")
    if let rest {
      request.headers.add(name: "Range", value: "bytes=\(rest.bytes)-")
      request.headers.add(name: "If-Range", value: rest.note.validator)
    }
    return try await send(request) { answer throws(TransferProblem) in
      try await receive(&answer, order, part, rest, progress)
    }
  }

  /// What an answer brings. How many bytes there are, and how many there should be.
  private func receive(
    _ answer: inout HTTPAnswer, _ order: TransferOrder, _ part: PartFile,
    _ rest: (note: PartFile.Note, bytes: Int64)?, _ progress: ProgressReporter
  ) async throws(TransferProblem) -> (bytes: Int64, whole: Int64) {
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
    if let problem = TransferProblem(status) { throw problem }
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
  ) async throws(TransferProblem) -> Int64 {
    var writer = try PartWriter(part.path, behind: bytes)
    progress.began(at: bytes)
    do throws(TransferProblem) {
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

  private func check(_ bytes: Int64) throws(TransferProblem) {
    guard bytes <= options.maximumBytes else {
      throw .failed("the file is larger than \(options.maximumBytes) bytes, the most there may be")
    }
  }

  // MARK: Uploads

  /// Sends a file. Its size.
  func upload(
    _ order: TransferOrder, _ progress: ProgressReporter
  ) async throws(TransferProblem) -> Int64 {
    let body = try UploadBody(order, progress)
    try check(body.bytes)
    var request = try request(for: order, .PUT)
    request.headers.add(name: "Content-Type", value: "application/octet-stream")
    return try await send(request, body, progress) { answer throws(TransferProblem) in
      let status = answer.head.status
      // 303 tells where to read about an upload that was taken.
      if status != .seeOther, let problem = TransferProblem(status) { throw problem }
      return body.bytes
    }
  }

  // MARK: Requests

  private func request(
    for order: TransferOrder, _ method: HTTPMethod
  ) throws(TransferProblem) -> HTTPRequest {
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
    receive: (inout HTTPAnswer) async throws(TransferProblem) -> Outcome
  ) async throws(TransferProblem) -> Outcome {
    var request = request
    for _ in 0...max(0, options.redirects) {
      let current = request
      progress?.began(at: 0)
      var next: HTTPRequest?
      let outcome = try await exchange(current, body) {
        answer throws(TransferProblem) -> Outcome? in
        next = try current.redirected(by: answer.head)
        return next == nil ? try await receive(&answer) : nil
      }
      if let outcome { return outcome }
      if let next { request = next }
    }
    throw .failed("the server sends the request on and on, more than \(options.redirects) times")
  }
}
