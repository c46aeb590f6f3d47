import NIOCore
import NIOEmbedded
import Primitives
import RelayCore
import RelaySetup
import Testing

@testable import RelayServer

/// A client of the proxy: its end of a connection. What it leads to is without TLS here.
private final class ProxyPeer {
  let channel: EmbeddedChannel

  init(_ scene: ConnectionScene) throws {
    channel = EmbeddedChannel(loop: scene.loop)
    try channel.pipeline.syncOperations.addHandler(
      ProxyHandler(runner: scene.runner, contexts: try ServerContexts(nil)))
    channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
  }

  func send(_ text: String) throws -> String {
    try channel.writeInbound(ByteBuffer(string: text))
    var said = ""
    while let output = try channel.readOutbound(as: ByteBuffer.self) {
      said += String(buffer: output)
    }
    return said
  }

  func has<Handler: ChannelHandler>(_ type: Handler.Type) -> Bool {
    (try? channel.pipeline.syncOperations.handler(type: type)) != nil
  }
}

@Suite struct ProxyHandlerTests {
  private static let head = "CONNECT api.push.apple.com:443 HTTP/1.1\r\nHost: a\r\n\r\n"
  private static let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0"

  /// At every byte, what belongs to the head and what is for whom it leads to.
  @Test func itLeadsToTheProviderListener() throws {
    let text = Array((Self.head + Self.preface).utf8)
    for end in 1..<text.count {
      let scene = ConnectionScene()
      let peer = try ProxyPeer(scene)
      var said = try peer.send(String(decoding: text[..<end], as: UTF8.self))
      said += try peer.send(String(decoding: text[end...], as: UTF8.self))
      #expect(said.hasPrefix(ConnectHead.accepted), "\(end)")
      // The relay's SETTINGS (RFC 9113, section 6.5), and no GOAWAY.
      let frames = Array(said.utf8.dropFirst(ConnectHead.accepted.utf8.count))
      #expect(frames.count > 9 && frames[3] == 4, "\(end)")
      #expect(peer.has(ConnectionHandler.self) && !peer.has(ProxyHandler.self), "\(end)")
      #expect(peer.channel.isActive)
      #expect(scene.runner.connections.http2.count == 1, "\(end)")
      #expect(scene.runner.connections.proxied.isEmpty && scene.runner.connections.count == 1)
    }
  }

  /// The answer does not reach a client that has reset its connection.
  @Test func whoHasGoneIsNotLedOn() throws {
    final class ResetByPeer: ChannelOutboundHandler {
      typealias OutboundIn = ByteBuffer
      func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        context.close(promise: nil)
      }
    }
    let scene = ConnectionScene()
    let peer = try ProxyPeer(scene)
    try peer.channel.pipeline.syncOperations.addHandler(ResetByPeer(), position: .first)
    #expect(try peer.send(Self.head + Self.preface) == "")
    #expect(!peer.channel.isActive && scene.runner.connections.count == 0)
  }

  @Test(arguments: [false, true])
  func theBinaryAPIIsThereWhereItsListenerIs(isServed: Bool) throws {
    let scene = ConnectionScene { settings in
      guard isServed else { return }
      settings.configuration.legacy = .init(host: "127.0.0.1", port: 0)
      settings.configuration.feedback = .init(host: "127.0.0.1", port: 0)
    }
    for target in ["gateway.push.apple.com:2195", "feedback.sandbox.push.apple.com:2196"] {
      let peer = try ProxyPeer(scene)
      let said = try peer.send("CONNECT \(target) HTTP/1.1\r\n\r\n")
      #expect(said.hasPrefix("HTTP/1.1 \(isServed ? 200 : 403) "), "\(said)")
      #expect(peer.has(BinaryConnectionHandler.self) == isServed)
    }
  }

  @Test(arguments: [
    ("CONNECT example.com:443 HTTP/1.1\r\n\r\n", 403),
    ("CONNECT api.push.apple.com:22 HTTP/1.1\r\n\r\n", 403),
    ("CONNECT api-manage-broadcast.push.apple.com:2196 HTTP/1.1\r\n\r\n", 403),
    ("GET / HTTP/1.1\r\n\r\n", 405), ("\u{16}\u{3}\u{1}\u{2}", 400),
    (String(repeating: "a", count: Limits.proxyHeadBytes + 1), 431),
  ])
  func everythingElseIsRefused(text: String, status: Int) throws {
    let scene = ConnectionScene()
    let peer = try ProxyPeer(scene)
    #expect(try peer.send(text).hasPrefix("HTTP/1.1 \(status) "))
    // Nothing that follows is looked at, not even what would have been taken.
    if peer.channel.isActive { #expect(try peer.send(Self.head).isEmpty) }
    #expect(scene.runner.connections.http2.isEmpty)
  }

  /// There is a bound on those whose head is not there, and they make room for each other.
  @Test func strangersHaveABound() throws {
    let scene = ConnectionScene()
    let peers = try (0..<Limits.proxyStrangers).map { _ in try ProxyPeer(scene) }
    #expect(peers.allSatisfy { $0.channel.isActive })
    // Whoever comes has a place; the oldest has had time for its head.
    let late = try ProxyPeer(scene)
    scene.loop.run()
    #expect(late.channel.isActive && !peers[0].channel.isActive && peers[1].channel.isActive)
    #expect(try late.send(Self.head).hasPrefix(ConnectHead.accepted))
    #expect(scene.runner.connections.proxied.count == Limits.proxyStrangers - 1)
    for peer in peers.dropFirst() { peer.channel.close(promise: nil) }
    scene.loop.run()
    #expect(scene.runner.connections.proxied.isEmpty)
  }

  @Test func aHeadThatDoesNotComeIsRefused() throws {
    let scene = ConnectionScene { $0.handshakeTimeout = .milliseconds(-1) }
    let peer = try ProxyPeer(scene)
    #expect(try peer.send("CONNECT api.push").isEmpty)
    scene.sweep()
    #expect(try peer.send("").hasPrefix("HTTP/1.1 408 "))
  }

  @Test func aRelayThatEndsClosesThem() throws {
    let scene = ConnectionScene()
    let peer = try ProxyPeer(scene)
    scene.runner.drain()
    scene.loop.run()
    #expect(!peer.channel.isActive && scene.runner.connections.count == 0)
  }
}
