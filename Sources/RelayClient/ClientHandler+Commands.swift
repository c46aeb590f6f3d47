import HTTP2
import Transport

extension ClientHandler {
  func perform(_ commands: [ClientCommand]) {
    for command in commands {
      switch command {
      case .open(let head, let body, let box): open(head, body, box)
      case .write(let bytes, let box): write(bytes, box)
      case .finish(let box):
        if let id = streamIDs[ObjectIdentifier(box)] { transport.http2.finish(id) }
      case .abandon(let box):
        if let id = streamIDs[ObjectIdentifier(box)] { giveUp(id, .cancelled) }
      case .resumeReading: resumeReading()
      case .close(let waiter):
        close()
        waiter?.resume()
      }
    }
    flush()
  }

  private var refusal: ClientError? {
    if case .closed(let error) = phase { return error }
    return goAway
  }

  private func open(_ head: RequestHead, _ body: [UInt8]?, _ box: StreamBox) {
    var problem = refusal
    if problem == nil {
      fill(head)
      do {
        let id = try transport.http2.request(self.head, body: body, endStream: body != nil)
        streams[id] = OpenStream(box: box, isRequest: body != nil, startedTick: tick)
        streamIDs[ObjectIdentifier(box)] = id
      } catch {
        problem = Self.problem(error)
      }
    }
    guard let problem else { return }
    box.ended(.failure(problem))
    box.closed()
  }

  private func write(_ bytes: [UInt8], _ box: StreamBox) {
    guard let id = streamIDs[ObjectIdentifier(box)] else { return }
    do {
      try transport.http2.write(bytes.span, to: id)
      streams[id]?.unsentBytes += bytes.count
    } catch {
      // The stream is about to be reported closed; the writer hears of it then.
      box.finishWriting()
    }
  }

  private func close() {
    if case .closed = phase { return }
    // Earlier writes leave first; the GOAWAY with the socket's last bytes.
    flush()
    transport.http2.goAway(errorCode: HTTP2ErrorCode.noError, debugData: [])
    fail(.closed)
  }

  /// HPACK indexing as advised (Apple, "Sending notification requests to APNs").
  private func fill(_ request: RequestHead) {
    head.removeAll()
    if request.method == "POST" {
      head.append(":method", literal: "POST")
    } else {
      head.append(":method", request.method)
    }
    head.append(":scheme", isSecure ? "https" : "http")
    head.append(":path", request.path, indexing: .withoutIndexing)
    head.append(":authority", address)
    for (name, value) in request.headers {
      switch name {
      case "authorization": head.append("authorization", value, indexing: .withoutIndexing)
      case "apns-id": head.append("apns-id", value, indexing: .nameOnly)
      case "apns-expiration": head.append("apns-expiration", value, indexing: .nameOnly)
      case "apns-collapse-id": head.append("apns-collapse-id", value, indexing: .nameOnly)
      default: head.append(name: name, value: value)
      }
    }
  }

  private static func problem(_ error: HTTP2Error) -> ClientError {
    switch error {
    case .queueFull: .requestTooLarge
    case .noNewStreams: .goAway(reason: nil, errorCode: HTTP2ErrorCode.noError)
    case .badPreface, .flooded, .arenaFull, .tooManyQueuedFrames, .connection,
      .library, .streamClosed, .headersAlreadySent, .headersTooLarge, .notWritable, .wrongRole:
      .connectionLost(problem: ConnectErrorText.text(error))
    }
  }
}
