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
  /// Of a success; only its ids change.
  private var success = Self.success.head
  private var text: [UInt8] = []

  private static let success: (head: HeaderBlock, id: Int, uniqueID: Int) = {
    var head = HeaderBlock()
    let id = [UInt8](repeating: UInt8(ascii: "-"), count: UniqueID.characterCount)
    head.append(":status", literal: "200")
    let place = head.append("apns-id", bytes: id.span)
    let uniquePlace = head.append("apns-unique-id", bytes: id.span)
    return (head, place, uniquePlace)
  }()

  mutating func respond(
    _ stream: StreamID, _ answer: ProviderAnswer, to request: borrowing WaitingRequest,
    on handler: ConnectionHandler
  ) {
    // Taken out for a moment: a span of a stored array would lock the whole writer.
    var text: [UInt8] = []
    swap(&text, &self.text)
    defer { swap(&text, &self.text) }
    text.removeAll(keepingCapacity: true)
    request.providerID.write(to: &text, capitals: request.capitals)
    // The first push's id when this one repeats it.
    if case .accepted(let id) = answer {
      id.write(to: &text)
    } else {
      request.uniqueID.write(to: &text)
    }
    let id = text.span.extracting(first: UniqueID.characterCount)
    let uniqueID = text.span.extracting(last: UniqueID.characterCount)
    if case .accepted = answer {
      success.replace(Self.success.id, by: id)
      success.replace(Self.success.uniqueID, by: uniqueID)
      return handler.respond(to: stream, success, body: [])
    }
    head.removeAll()
    let body = appendRefusal(answer, at: handler.runner.now)
    head.append("apns-id", bytes: id)
    head.append("apns-unique-id", bytes: uniqueID)
    handler.respond(to: stream, head, body: body)
  }

  /// Returns the body.
  private mutating func appendRefusal(_ answer: ProviderAnswer, at now: Instant) -> [UInt8] {
    switch answer {
    case .accepted: return []
    case .rejected(.expiredToken): return gone(.expiredToken, since: now)
    case .rejected(let rejection):
      appendStatus(rejection)
      return Array(#"{"reason":"\#(rejection.reason)"}"#.utf8)
    case .gone(let since): return gone(.unregistered, since: since)
    }
  }

  /// The header list exceeds the limit: not even an id is known.
  mutating func respondHeadersTooLarge(_ stream: StreamID, on handler: ConnectionHandler) {
    head.removeAll()
    head.append(":status", literal: "431")
    handler.respond(to: stream, head, body: [])
  }

  mutating func respond(
    _ stream: StreamID, _ status: Int, _ json: [UInt8], on handler: ConnectionHandler
  ) {
    head.removeAll()
    head.append(":status", status)
    head.append("content-type", literal: "application/json")
    handler.respond(to: stream, head, body: json)
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
}
