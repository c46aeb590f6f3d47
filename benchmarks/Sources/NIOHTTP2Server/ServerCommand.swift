import ArgumentParser
import Foundation
import NIOCore
import NIOHTTP2
import NIOPosix
import NIOSSL

/// The server that `scripts/bench` measures the relay against: swift-nio-http2 as its documentation
/// shows it, TLS by swift-nio-ssl, and no application at all.
@main
struct ServerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "nio-http2-server",
    abstract: "Answers 200 to every HTTP/2 POST, with swift-nio-http2, one Channel a stream.",
    discussion: "Example: nio-http2-server --port 8443 --cert server.pem --key server.key"
  )

  @Option(help: "Address to listen on.")
  var host = "127.0.0.1"

  @Option(help: "Port to listen on; 0 picks a free one.")
  var port = 0

  @Option(help: "Certificate chain, a PEM file. Needed unless --plaintext.")
  var cert: String?

  @Option(help: "Private key, a PEM file. Needed unless --plaintext.")
  var key: String?

  @Flag(help: "HTTP/2 without TLS (prior knowledge).")
  var plaintext = false

  @Option(help: "Event loop threads.")
  var threads = 1

  func validate() throws {
    guard (1...1_024).contains(threads) else {
      throw ValidationError("--threads must be from 1 to 1024.")
    }
    guard (0...65_535).contains(port) else {
      throw ValidationError("--port must be from 0 to 65535.")
    }
    if !plaintext && (cert == nil || key == nil) {
      throw ValidationError("Give --cert FILE and --key FILE, or --plaintext.")
    }
  }

  func run() async throws {
    let tls = try tlsContext()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: threads)
    let server = try await ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 256)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try ServerCommand.configure(channel, tls: tls)
        }
      }
      .bind(host: host, port: port).get()
    // Not print(): into a pipe or a file it would sit in a buffer while the caller waits for it.
    let ready = "ready \(host):\(server.localAddress?.port ?? port)\n"
    try FileHandle.standardOutput.write(contentsOf: Data(ready.utf8))
    try await server.closeFuture.get()
    try await group.shutdownGracefully()
  }

  /// The TLS settings, or nil for plaintext.
  private func tlsContext() throws -> NIOSSLContext? {
    guard !plaintext, let cert, let key else { return nil }
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMFile(cert).map { .certificate($0) },
      privateKey: .privateKey(try NIOSSLPrivateKey(file: key, format: .pem))
    )
    configuration.applicationProtocols = ["h2"]
    return try NIOSSLContext(configuration: configuration)
  }

  private static func configure(_ channel: any Channel, tls: NIOSSLContext?) throws {
    let pipeline = channel.pipeline.syncOperations
    if let tls {
      try pipeline.addHandler(NIOSSLServerHandler(context: tls))
    }
    _ = try pipeline.configureHTTP2Pipeline(
      mode: .server,
      connectionConfiguration: .init(),
      streamConfiguration: .init()
    ) { stream in
      stream.eventLoop.makeCompletedFuture {
        try stream.pipeline.syncOperations.addHandler(AnswerHandler())
      }
    }
  }
}
