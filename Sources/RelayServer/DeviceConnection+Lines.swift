import DeviceLink
import HTTP2
import Primitives
import RelayCore
import Transport

/// The lines of listening streams, both ways.
extension DeviceConnection {
  // MARK: Lines from the device

  func take(
    _ piece: LineSplitter.Piece, from stream: StreamID, at now: Instant,
    on handler: ConnectionHandler
  ) {
    guard let device = listener(of: stream)?.device else { return }
    let address = handler.address(stream)
    do throws(UpLine.Unusable) {
      guard case .line(let line) = piece else { throw .tooLong }
      switch try UpLine(line.span) {
      case .ack(let id, let outcome):
        handler.runner.raise(.acked(address, id, outcome), for: device, at: now)
      case .keepAlive:
        handler.runner.raise(.keptAlive(address), for: device, at: now)
      case .state(let power, let network, let screen):
        let report = ConditionReport(power: power, network: network, screen: screen)
        handler.runner.raise(.reported(address, report), for: device, at: now)
      }
    } catch {
      unusable(stream, error, at: now, on: handler)
    }
  }

  func unusable(
    _ stream: StreamID, _ problem: UpLine.Unusable, at now: Instant, on handler: ConnectionHandler
  ) {
    modifyListener(stream) { $0.unusableCount += 1 }
    guard let listener = listener(of: stream) else { return }
    send(.error(problem), to: stream, on: handler)
    if listener.unusableCount >= Limits.unusableLines {
      handler.runner.raise(
        .disconnected(handler.address(stream)), for: listener.device, at: now)
      close(stream, .unusableLines, on: handler)
    }
  }

  func listener(of stream: StreamID) -> Listener? {
    switch streams[stream] {
    case .connecting(let listener), .listening(let listener): listener
    case .collecting, .asked, .ending, nil: nil
    }
  }

  func modifyListener(_ stream: StreamID, _ body: (inout Listener) -> Void) {
    guard var listener = listener(of: stream) else { return }
    body(&listener)
    put(listener, back: stream)
  }

  // MARK: Lines to the device

  func hello(_ stream: StreamID, on handler: ConnectionHandler) {
    guard case .connecting(let listener) = streams[stream] else { return }
    head.removeAll()
    head.append(":status", literal: "200")
    head.append("content-type", literal: "application/x-ndjson")
    do throws(HTTP2Error) {
      try handler.transport.http2.respond(to: stream, head, endStream: false)
    } catch {
      return
    }
    streams[stream] = .listening(listener)
    raiseStreams(handler)
    send(
      .hello(
        device: listener.device, keepAlive: handler.runner.settings.shard.keepAlive,
        time: handler.runner.now), to: stream, on: handler)
  }

  func send(_ line: DownLine, to stream: StreamID, on handler: ConnectionHandler) {
    guard case .listening = streams[stream] else { return }
    var bytes: [UInt8] = []
    swap(&bytes, &lineBytes)
    bytes.removeAll(keepingCapacity: true)
    line.write(to: &bytes)
    defer { swap(&bytes, &lineBytes) }
    do throws(HTTP2Error) {
      try handler.transport.http2.write(bytes.span, to: stream)
    } catch {
      // The window of frames in flight bounds what is queued; a peer that still lets the queue fill
      // up has stopped reading for long.
      handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.enhanceYourCalm)
      return
    }
    if case .notification(let delivery) = line {
      modifyListener(stream) { listener in
        if listener.acknowledgesItself {
          listener.unacknowledged.append(delivery.notification.uniqueID)
        }
      }
    }
  }

  /// Tells the shard whether everything written to the stream is on its way.
  func checkQueue(of stream: StreamID, on handler: ConnectionHandler) {
    guard let device = listener(of: stream)?.device else { return }
    let isEmpty = handler.transport.http2.queuedBytes(of: stream) == 0
    handler.runner.raise(
      .queueChecked(handler.address(stream), isEmpty: isEmpty), for: device, at: handler.runner.now)
  }

  /// Says `bye` and ends the stream.
  func close(_ stream: StreamID, _ reason: CloseReason, on handler: ConnectionHandler) {
    send(.bye(reason), to: stream, on: handler)
    end(stream, at: handler.runner.now, on: handler)
  }

  func end(_ stream: StreamID, at now: Instant, on handler: ConnectionHandler) {
    switch streams[stream] {
    case .listening:
      handler.transport.http2.finish(stream)
    case .connecting:
      handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.cancel)
    case .collecting, .asked, .ending, nil:
      break
    }
    streams[stream] = .ending(since: now)
    handler.runner.markDirty(handler)
  }

  /// Everything written to the stream is on its way: what acknowledges itself does so now.
  func drained(_ stream: StreamID, at now: Instant, on handler: ConnectionHandler) {
    guard case .listening(let listener) = streams[stream], listener.acknowledgesItself else {
      return
    }
    modifyListener(stream) { $0.unacknowledged.removeAll() }
    let address = handler.address(stream)
    for id in listener.unacknowledged {
      handler.runner.raise(.acked(address, id, nil), for: listener.device, at: now)
    }
    handler.runner.raise(.heard(address), for: listener.device, at: now)
  }

  func closed(_ stream: StreamID, at now: Instant, on handler: ConnectionHandler) {
    if let device = listener(of: stream)?.device {
      handler.runner.raise(.disconnected(handler.address(stream)), for: device, at: now)
    }
    streams[stream] = nil
  }
}
