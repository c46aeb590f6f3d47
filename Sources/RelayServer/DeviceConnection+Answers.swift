import DeviceLink
import HTTP2
import RelayCore
import Transport

/// Answers to requests of the device API.
extension DeviceConnection {
  // MARK: Answers

  func answer(_ stream: StreamID, _ answer: DeviceAnswer, on handler: ConnectionHandler) {
    switch answer {
    case .enrolled(let device):
      guard case .asked(let secret?) = streams[stream] else { return }
      // Where everybody may enrol, nothing was proved by it.
      if handler.runner.settings.enrolment != .open { raiseStreams(handler) }
      let body = DeviceAnswerBody.Enrolled(device: device.description, secret: secret)
      respond(stream, 201, DeviceAnswerBody.encode(body), on: handler)
    case .registered(let token):
      raiseStreams(handler)
      let body = DeviceAnswerBody.Registered(token: token.hexadecimal)
      respond(stream, 200, DeviceAnswerBody.encode(body), on: handler)
    case .unregistered:
      raiseStreams(handler)
      respond(stream, 204, [], on: handler)
    case .inspected(let report):
      raiseStreams(handler)
      let body = DeviceAnswerBody.Report(report)
      respond(stream, 200, DeviceAnswerBody.encode(body), on: handler)
    case .refused(let refusal):
      let row = refusal.row
      let body = DeviceAnswerBody.Refused(reason: row.reason, message: row.text)
      respond(stream, row.status, DeviceAnswerBody.encode(body), on: handler)
    }
  }

  /// A secret was accepted: the peer is no stranger any more and may have its full number of
  /// streams.
  func raiseStreams(_ handler: ConnectionHandler) {
    guard !hasFullStreams else { return }
    hasFullStreams = true
    handler.transport.http2.updateMaximumConcurrentStreams(Limits.deviceStreams)
    handler.runner.markDirty(handler)
  }

  func refuse(
    _ stream: StreamID, _ problem: DeviceRequest.Problem, on handler: ConnectionHandler
  ) {
    let row = problem.row
    let body = DeviceAnswerBody.Refused(reason: row.reason, message: row.message)
    respond(stream, row.status, DeviceAnswerBody.encode(body), on: handler)
  }

  func respond(
    _ stream: StreamID, _ status: UInt16, _ body: [UInt8], on handler: ConnectionHandler
  ) {
    head.removeAll()
    head.append(":status", Int(status))
    if !body.isEmpty { head.append("content-type", literal: "application/json") }
    do throws(HTTP2Error) {
      try handler.transport.http2.respond(to: stream, head, body: body)
    } catch {
      // The stream is gone; or too many answers before this one are unread.
      if case .queueFull = error {
        handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.enhanceYourCalm)
      }
    }
    streams[stream] = .ending(since: handler.runner.now)
    handler.runner.markDirty(handler)
  }
}
