import Foundation
import Glibc
import NIOCore
import Testing

@testable import TLS

/// The `openssl` command as an independent peer, over a real socket. Everything here waits for
/// the other side's bytes, never for time to pass; the sockets give up after 20 seconds.
@Suite(.enabled(if: OpenSSLTool.path != nil, "the openssl command is not installed"))
struct OpenSSLToolTests {
  @Test(arguments: ["-tls1_2", "-tls1_3"])
  func aServerForSClient(version: String) throws {
    let files = try TestFiles()
    let listener = try LoopbackSocket.listen()
    let tool = try OpenSSLTool(
      "s_client", "-connect", "127.0.0.1:\(listener.port)", "-servername", "localhost",
      "-verify_hostname", "localhost", "-verify_return_error", "-CAfile", files.authority, "-cert",
      files.client, "-key", files.client, "-alpn", "http/1.1,h2", "-quiet", version)
    defer { tool.stop() }
    var session = try TLSSession(
      server: Contexts.server(
        clientCertificates: .optional(
          .authorities(pem: TestCertificates.shared.authority.certificatePEM))))
    let socket = try listener.accept()
    tool.write("hello from s_client\n")
    var got = ByteBuffer()
    while got.readableBytes < 20, try socket.pump(&session, plaintext: &got) {}
    #expect(got.bytes == Array("hello from s_client\n".utf8))
    let peer = session.peer
    let name = session.applicationProtocol
    #expect(name == "h2" && peer?.verification == .trusted)
    var answer = ByteBuffer(string: "hello from the relay\n")
    var output = ByteBuffer()
    try session.send(&answer, output: &output)
    session.close(output: &output)
    try socket.write(output)
    #expect(tool.readToEnd() == "hello from the relay\n")
    #expect(tool.exitStatus() == 0)
  }

  @Test func renegotiationIsRefused() throws {
    let files = try TestFiles()
    let listener = try LoopbackSocket.listen()
    let tool = try OpenSSLTool(
      "s_client", "-connect", "127.0.0.1:\(listener.port)", "-CAfile", files.authority, "-tls1_2")
    defer { tool.stop() }
    var session = try TLSSession(server: Contexts.server())
    let socket = try listener.accept()
    tool.write("one\n")
    var got = ByteBuffer()
    while got.readableBytes < 4, try socket.pump(&session, plaintext: &got) {}
    #expect(got.bytes == Array("one\n".utf8))
    // A line that begins with R makes s_client ask for a new handshake.
    tool.write("R\n")
    var error: TLSError?
    do throws(TLSError) {
      while try socket.pump(&session, plaintext: &got) {}
    } catch let failure { error = failure }
    // s_client gives up, as it must: it says so, or just goes.
    #expect(session.phase != .established && session.phase != .handshaking)
    #expect(error != nil || session.phase == .peerClosed)
    #expect(got.bytes == Array("one\n".utf8))
  }

  @Test(arguments: ["-tls1_2", "-tls1_3"])
  func aClientForSServer(version: String) throws {
    let files = try TestFiles()
    let tool = try OpenSSLTool(
      "s_server", "-accept", "127.0.0.1:0", "-naccept", "2", "-cert", files.server, "-key",
      files.server, "-CAfile", files.authority, "-Verify", "1", "-verify_return_error", "-alpn",
      "h2", "-rev", version)
    defer { tool.stop() }
    let port = try #require(tool.acceptedPort())
    let context = try Contexts.client(certificate: TestCertificates.shared.client)
    var ticket: TLSTicket?
    for resumed in [false, true] {
      var session = try TLSSession(client: context, serverName: "localhost")
      ticket?.offer(by: session)
      let socket = try LoopbackSocket.connect(port: port)
      var output = ByteBuffer()
      try session.start(output: &output)
      try socket.write(output)
      var got = ByteBuffer()
      while session.phase == .handshaking, try socket.pump(&session, plaintext: &got) {}
      let peer = session.peer
      let (isResumed, name) = (session.resumed, session.applicationProtocol)
      #expect(isResumed == resumed && peer?.verification == .trusted)
      #expect(name == "h2")
      var line = ByteBuffer(string: "stressed\n")
      output.clear()
      try session.send(&line, output: &output)
      try socket.write(output)
      while got.readableBytes < 9, try socket.pump(&session, plaintext: &got) {}
      #expect(got.bytes == Array("desserts\n".utf8))
      ticket = TLSTicket(session)
      output.clear()
      session.close(output: &output)
      try socket.write(output)
    }
  }
}

/// Certificates where the command can read them; removed again with this object.
private final class TestFiles {
  private let folder = FileManager.default.temporaryDirectory
    .appendingPathComponent("push-relay-\(UUID().uuidString)")
  var authority: String { path("ca") }
  var client: String { path("client") }
  var server: String { path("server") }

  init() throws {
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let all = TestCertificates.shared
    for (name, bytes) in [
      (authority, all.authority.certificatePEM),
      (client, all.client.certificatePEM + all.client.keyPEM),
      (server, all.server.certificatePEM + all.server.keyPEM),
    ] { try Data(bytes).write(to: URL(fileURLWithPath: name)) }
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  private func path(_ name: String) -> String {
    folder.appendingPathComponent(name + ".pem").path
  }
}

/// A running `openssl` command.
private final class OpenSSLTool {
  static let path = ["/usr/bin/openssl", "/usr/local/bin/openssl"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  private let process = Process()
  private let input = Foundation.Pipe()
  private let output = Foundation.Pipe()

  init(_ arguments: String...) throws {
    process.executableURL = URL(fileURLWithPath: Self.path ?? "")
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  func write(_ text: String) { input.fileHandleForWriting.write(Data(text.utf8)) }

  func readToEnd() -> String {
    String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }

  func exitStatus() -> Int32 {
    process.waitUntilExit()
    return process.terminationStatus
  }

  /// The port from the line `ACCEPT 127.0.0.1:port`, which other lines may precede.
  func acceptedPort() -> UInt16? {
    var text = ""
    while true {
      for line in text.split(separator: "\n").dropLast(text.hasSuffix("\n") ? 0 : 1)
      where line.hasPrefix("ACCEPT ") {
        return line.split(separator: ":").last.flatMap { UInt16($0) }
      }
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { return nil }
      text += String(decoding: data, as: UTF8.self)
    }
  }

  func stop() {
    try? input.fileHandleForWriting.close()
    // Not SIGTERM: a child inherits the signals that the threads of a test runner block.
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
  }
}
