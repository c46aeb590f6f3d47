import HTTP2
import Logging
import Primitives
import RelayCore
import Transport

/// Writes answers to providers into reused buffers.
///
/// A success is only HEADERS with END_STREAM; an error is HEADERS and exactly one DATA frame
/// (Apple, "Handling notification responses from APNs", and docs/PROTOCOL.md, "What clients in the
/// field send": some clients parse each frame as a whole text).
struct ProviderAnswerWriter {
  private var head = HeaderBlock()
  private var text: [UInt8] = []

  mutating func respond(
    _ stream: StreamID, _ answer: ProviderAnswer, to request: borrowing WaitingRequest,
    on handler: ConnectionHandler
  ) {
    head.removeAll()
    var body: [UInt8] = []
    var uniqueID = request.uniqueID
    switch answer {
    case .accepted(let id):
      // The first push's id when this one repeats it.
      uniqueID = id
      head.append(":status", literal: "200")
    case .rejected(.expiredToken): body = gone(.expiredToken, since: handler.runner.now)
    case .rejected(let rejection):
      appendStatus(rejection)
      body = Array(#"{"reason":"\#(rejection.reason)"}"#.utf8)
    case .gone(let since): body = gone(.unregistered, since: since)
    }
    // Taken out for a moment: a span of a stored array would lock the whole writer.
    var text: [UInt8] = []
    swap(&text, &self.text)
    text.removeAll(keepingCapacity: true)
    request.providerID.write(to: &text, capitals: request.capitals)
    head.append("apns-id", bytes: text.span)
    text.removeAll(keepingCapacity: true)
    uniqueID.write(to: &text)
    head.append("apns-unique-id", bytes: text.span)
    swap(&text, &self.text)
    submit(stream, body, on: handler)
  }

  /// The header list exceeds the limit: not even an id is known.
  mutating func respondHeadersTooLarge(_ stream: StreamID, on handler: ConnectionHandler) {
    head.removeAll()
    head.append(":status", literal: "431")
    submit(stream, [], on: handler)
  }

  mutating func respond(
    _ stream: StreamID, _ status: Int, _ json: [UInt8], on handler: ConnectionHandler
  ) {
    head.removeAll()
    head.append(":status", status)
    head.append("content-type", literal: "application/json")
    submit(stream, json, on: handler)
  }

  /// All 410s have a time (Apple, "Handling notification responses from APNs").
  private mutating func gone(_ rejection: Rejection, since: Instant) -> [UInt8] {
    appendStatus(rejection)
    return Array(#"{"reason":"\#(rejection.reason)","timestamp":\#(since.milliseconds)}"#.utf8)
  }

  private mutating func appendStatus(_ rejection: Rejection) {
    head.append(":status", Int(rejection.status))
    head.append("content-type", literal: "application/json")
  }

  private func submit(_ stream: StreamID, _ body: [UInt8], on handler: ConnectionHandler) {
    do throws(HTTP2Error) {
      try handler.transport.http2.respond(to: stream, head, body: body)
    } catch {
      // The peer has reset the stream, so nobody waits for this answer; or it does not read earlier
      // ones, and must not wait for this one.
      if case .queueFull = error {
        handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.enhanceYourCalm)
      }
      handler.runner.logger.debug("answer dropped", metadata: ["error": "\(error)"])
    }
  }
}
