import HTTP2
import RelayCore
import Transport

extension ClientHandler {
  func handle(_ events: [HTTP2Event]) {
    for event in events {
      switch event {
      case .headers(let id, let fields, let endStream): headers(id, fields, endStream: endStream)
      case .headersTooLarge(let id), .bodyTooLarge(let id, _):
        giveUp(id, .responseTooLarge(limitBytes: options.maximumResponseBytes))
      case .data(let id, let bytes, let endStream): data(id, bytes, endStream: endStream)
      case .drained(let id): drained(id)
      case .closed(let id, let errorCode): closed(id, errorCode)
      case .goAwayReceived(_, let errorCode, let debugData):
        goAway = .goAway(
          reason: Self.reason(transport.http2.arena[debugData]), errorCode: errorCode)
      case .settingsReceived: becomeReady()
      case .pingReceived: break
      }
    }
  }

  private func headers(_ id: StreamID, _ range: Range<Int>, endStream: Bool) {
    guard let stream = streams[id] else { return }
    if stream.box.head == nil {
      stream.box.opened(head(range), isWhole: endStream)
    } else if endStream {
      // A second block is trailers, which are ignored.
      stream.box.ended(.success(()))
    }
    if endStream || !stream.isRequest { streams[id]?.startedTick = nil }
  }

  private func head(_ range: Range<Int>) -> ClientResponse {
    var head = ClientResponse(status: 0, headers: ClientHeaders(), body: [])
    let session = transport.http2
    let arena = session.arena
    let fields = session.fields
    head.headers.fields.reserveCapacity(range.count)
    for index in range {
      let name = String(decoding: arena[fields[index].name], as: UTF8.self)
      let value = String(decoding: arena[fields[index].value], as: UTF8.self)
      if name == ":status" {
        head.status = Int(value) ?? 0
      } else {
        head.headers.fields.append((name, value))
      }
    }
    return head
  }

  private func data(_ id: StreamID, _ bytes: Range<Int>, endStream: Bool) {
    guard let stream = streams[id] else { return }
    let isMetered = meter?.take(transport.http2.arena.span.extracting(bytes)) == true
    if !isMetered, !bytes.isEmpty, stream.box.received(transport.http2.arena[bytes]) {
      guard !stream.isRequest else {
        return giveUp(id, .responseTooLarge(limitBytes: options.maximumResponseBytes))
      }
      pauseReading()
    }
    guard endStream else { return }
    streams[id]?.startedTick = nil
    stream.box.ended(.success(()))
  }

  private func drained(_ id: StreamID) {
    guard let stream = streams[id], stream.unsentBytes > 0 else { return }
    streams[id]?.unsentBytes = 0
    stream.box.sent(stream.unsentBytes)
  }

  private func closed(_ id: StreamID, _ errorCode: UInt32) {
    guard let stream = streams[id] else { return }
    let error = goAway ?? .streamReset(errorCode: errorCode)
    stream.box.ended(errorCode == 0 && !stream.isRequest ? .success(()) : .failure(error))
    drop(id, stream.box)
  }

  func giveUp(_ id: StreamID, _ error: ClientError) {
    if let stream = streams[id] {
      stream.box.ended(.failure(error))
      drop(id, stream.box)
    }
    transport.http2.reset(id, errorCode: HTTP2ErrorCode.cancel)
  }

  /// The `reason` of a GOAWAY's JSON debug data (Apple, "Handling notification responses from
  /// APNs"), else the data itself; nil when there is none.
  static func reason(_ debugData: ArraySlice<UInt8>) -> String? {
    guard !debugData.isEmpty else { return nil }
    let bytes = Array(debugData)
    return ReasonBody(bytes)?.reason ?? String(decoding: bytes.prefix(200), as: UTF8.self)
  }
}
