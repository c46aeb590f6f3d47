import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TLS

@testable import PhoneRuntime

/// A server on loopback that answers as a test tells it to, also wrongly.
final class TestServer: Sendable {
  struct Request: Sendable {
    var method = ""
    var path = ""
    var fields = HTTPHeaders()
    var body: [UInt8] = []

    /// Where the range that it asks for begins.
    var offset: Int? {
      fields.first(name: "Range").flatMap { range in
        range.hasPrefix("bytes=") && range.hasSuffix("-")
          ? Int(range.dropFirst(6).dropLast()) : nil
      }
    }
  }

  struct Answer: Sendable {
    enum Framing { case length, chunked, untilClosed }
    enum End { case keep, close, hold }

    var status = "200 OK"
    var fields: [(String, String)] = []
    var body: [UInt8] = []
    var framing = Framing.length
    /// After so many bytes of the body the connection ends, or nothing more comes.
    var cut: Int?
    var end = End.keep

    /// As it goes over the wire, and whether it is complete.
    var bytes: [UInt8] {
      var head = "HTTP/1.1 \(status)\r\n"
      for (name, value) in fields { head += "\(name): \(value)\r\n" }
      switch framing {
      case .length: head += "Content-Length: \(body.count)\r\n"
      case .chunked: head += "Transfer-Encoding: chunked\r\n"
      case .untilClosed: head += "Connection: close\r\n"
      }
      let piece = body.prefix(cut ?? body.count)
      var bytes = Array((head + "\r\n").utf8)
      guard framing == .chunked else { return bytes + piece }
      for start in stride(from: 0, to: piece.count, by: 50_000) {
        let chunk = piece[start..<min(start + 50_000, piece.count)]
        bytes += Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + Array("\r\n".utf8)
      }
      return bytes + (cut == nil ? Array("0\r\n\r\n".utf8) : [])
    }
  }

  /// What to answer to the n-th request, from 0 on.
  typealias Script = @Sendable (Request, Int) -> Answer

  private struct State {
    var requests: [Request] = []
    var open = 0
    var mostOpen = 0
  }

  private let state = Mutex(State())
  private let script: Script
  /// Whether it answers as soon as it has seen the head of a request.
  private let isHasty: Bool
  private let channels = Mutex<[any Channel]>([])

  var requests: [Request] { state.withLock { $0.requests } }
  /// The most requests that it had to answer at a time.
  var mostOpen: Int { state.withLock { $0.mostOpen } }
  var port: Int { channels.withLock { $0.first?.localAddress?.port ?? 0 } }
  var url: String { "http://127.0.0.1:\(port)" }

  init(isHasty: Bool = false, _ script: @escaping Script) {
    self.isHasty = isHasty
    self.script = script
  }

  func start(_ tls: TLSContext? = nil) async throws {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          self.channels.withLock { $0.append(channel) }
          let pipeline = channel.pipeline.syncOperations
          if let tls {
            let session = try TLSSession(server: tls)
            let ready = channel.eventLoop.makePromise(of: Void.self)
            try pipeline.addHandler(TLSHandler(session, ready: ready, within: .seconds(20)))
          }
          try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
          try pipeline.addHandler(Handler(self))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    channels.withLock { $0.insert(channel, at: 0) }
  }

  func stop() async {
    for channel in channels.withLock({ $0 }) { try? await channel.close() }
  }

  private func answer(to request: Request) -> Answer {
    let number = state.withLock { state in
      state.requests.append(request)
      state.open += 1
      state.mostOpen = max(state.mostOpen, state.open)
      return state.requests.count - 1
    }
    return script(request, number)
  }

  private func answered() { state.withLock { $0.open -= 1 } }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private let server: TestServer
    private var request = Request()

    init(_ server: TestServer) { self.server = server }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head):
        request = Request(method: head.method.rawValue, path: head.uri, fields: head.headers)
        if server.isHasty { answer(context) }
      case .body(let chunk): request.body += chunk.readableBytesView
      case .end: if !server.isHasty { answer(context) }
      }
    }

    private func answer(_ context: ChannelHandlerContext) {
      let answer = server.answer(to: request)
      let server = server
      let channel = context.channel
      let bytes = wrapOutboundOut(ByteBuffer(bytes: answer.bytes))
      context.writeAndFlush(bytes).whenComplete { _ in
        server.answered()
        let isCut = answer.cut != nil || answer.framing == .untilClosed
        if answer.end == .close || isCut && answer.end != .hold { channel.close(promise: nil) }
      }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      context.close(promise: nil)
    }
  }
}
