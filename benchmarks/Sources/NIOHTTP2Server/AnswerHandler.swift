import NIOCore
import NIOHPACK
import NIOHTTP2

/// Answers one request on one stream's channel: reads the body to its end, drops it, and answers
/// 200 to a POST, 405 to anything else, both with an empty body.
///
/// It decides nothing else on purpose. What is measured is the price of the idiomatic HTTP/2 stack,
/// one `Channel` a stream, before any application does any work on top of it.
final class AnswerHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private static let accepted: HPACKHeaders = [":status": "200"]
  private static let notAllowed: HPACKHeaders = [":status": "405"]

  private var answer = AnswerHandler.notAllowed

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let head):
      // Trailers carry no method and must not change the answer.
      if head.headers.first(name: ":method") == "POST" { answer = AnswerHandler.accepted }
      if head.endStream { respond(context: context) }
    case .data(let part):
      if part.endStream { respond(context: context) }
    default:
      break
    }
  }

  private func respond(context: ChannelHandlerContext) {
    let head = HTTP2Frame.FramePayload.Headers(headers: answer, endStream: true)
    context.writeAndFlush(wrapOutboundOut(.headers(head)), promise: nil)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}
