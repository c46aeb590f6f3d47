import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded

@testable import Cockpit

/// A connection to an admin listener with all its handlers, in bytes of HTTP/1.1 and without a
/// socket: for what ends with a connection, or with its body.
final class AdminConnection: Sendable {
  let channel = NIOAsyncTestingChannel()
  private let handling: Task<Void, Never>

  /// - Parameter connections: nil as on the Unix socket.
  init(_ ask: AdminScene, _ connections: AdminConnections? = nil) async throws {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let http = HTTP1Channel(
      responder: { request, writer, channel in
        let context = AdminContext(source: .init(channel: channel, logger: logger))
        let response = try await ask.respond(request, context)
        try await response.body.write(try await writer.writeHead(response.head))
      },
      configuration: .init(additionalChannelHandlers: [RequestTurns(connections)]))
    let admin = AdminChannel(http: http, connections: connections)
    let channel = channel
    let value = try await channel.eventLoop.flatSubmit {
      admin.setup(channel: channel, logger: logger)
    }.get()
    try await channel.connect(to: .init(unixDomainSocketPath: "/")).get()
    handling = Task { await admin.handle(value: value, logger: logger) }
  }

  /// The answer to a request on a connection of its own, if it is one of JSON.
  static func answer(
    _ ask: AdminScene, _ method: String, _ path: String, _ body: String = ""
  ) async throws -> String {
    let connection = try await AdminConnection(ask)
    try await connection.send(method, path, body)
    let answer = try await connection.answer(upTo: "}\n")
    await connection.close()
    return answer
  }

  func send(_ method: String, _ path: String, _ body: String = "") async throws {
    let length = body.isEmpty ? "" : "content-length: \(body.utf8.count)\r\n"
    let head = "\(method) \(path) HTTP/1.1\r\nhost: localhost\r\n\(length)\r\n"
    try await channel.writeInbound(ByteBuffer(string: head + body))
  }

  /// What is answered until this is in it; throws when the connection ends before.
  func answer(upTo end: String) async throws -> String {
    var text = ""
    while !text.contains(end) {
      text += String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self))
    }
    return text
  }

  /// As a peer whose buffers are full, or are not any more.
  func readNothing(_ isFull: Bool = true) async throws {
    let channel = channel
    channel.isWritable = !isFull
    try await channel.eventLoop.submit { channel.pipeline.fireChannelWritabilityChanged() }.get()
  }

  /// Bytes that have been written and wait for the peer to read.
  func holdBack(_ text: String) async throws {
    final class Socket: ChannelOutboundHandler, Sendable { typealias OutboundIn = IOData }
    let channel = channel
    try await channel.eventLoop.submit {
      let operations = channel.pipeline.syncOperations
      try operations.addHandler(Socket(), name: "socket", position: .first)
      let bytes = IOData.byteBuffer(ByteBuffer(string: text))
      try operations.context(name: "socket").write(NIOAny(bytes), promise: nil)
    }.get()
  }

  /// Closes the peer's direction.
  func hangUp() async throws {
    let channel = channel
    try await channel.eventLoop.submit {
      channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }.get()
  }

  func close() async {
    try? await channel.close().get()
    await handling.value
  }
}
