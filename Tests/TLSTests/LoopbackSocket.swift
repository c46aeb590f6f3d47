import Glibc
import NIOCore

@testable import TLS

/// A blocking TCP socket on 127.0.0.1, closed with this object.
final class LoopbackSocket {
  struct Failure: Error { var what: String }

  private let descriptor: Int32

  private init(_ descriptor: Int32) throws {
    guard descriptor >= 0 else { throw Failure(what: "socket: errno \(errno)") }
    self.descriptor = descriptor
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(descriptor) }

  static func listen() throws -> LoopbackSocket {
    let made = try LoopbackSocket(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    let result = withAddress(port: 0) { bind(made.descriptor, $0, $1) }
    guard result == 0, Glibc.listen(made.descriptor, 1) == 0 else { throw Failure(what: "listen") }
    return made
  }

  static func connect(port: UInt16) throws -> LoopbackSocket {
    let made = try LoopbackSocket(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    let result = withAddress(port: port) { Glibc.connect(made.descriptor, $0, $1) }
    guard result == 0 else { throw Failure(what: "connect: errno \(errno)") }
    return made
  }

  func accept() throws -> LoopbackSocket {
    try LoopbackSocket(Glibc.accept(descriptor, nil, nil))
  }

  var port: UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, $0, &length)
      }
    }
    return UInt16(bigEndian: address.sin_port)
  }

  func write(_ buffer: ByteBuffer) throws {
    var rest = buffer
    while rest.readableBytes > 0 {
      let written = rest.withUnsafeReadableBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard written > 0 else { throw Failure(what: "send: errno \(errno)") }
      rest.moveReaderIndex(forwardBy: written)
    }
  }

  /// Reads once, gives it to the session, sends what the session answers. False at the end of the
  /// connection, when the session said so or the transport did. Failures to send do not matter:
  /// the peer may be gone already.
  func pump(_ session: inout TLSSession, plaintext: inout ByteBuffer) throws(TLSError) -> Bool {
    var input = ByteBuffer()
    var output = ByteBuffer()
    defer { try? write(output) }
    let count = input.writeWithUnsafeMutableBytes(minimumWritableBytes: 16_384) {
      max(0, recv(descriptor, $0.baseAddress, $0.count, 0))
    }
    guard count > 0 else {
      try session.receiveEndOfFile()
      return false
    }
    try session.receive(&input, plaintext: &plaintext, output: &output)
    return session.phase == .established || session.phase == .handshaking
  }

  private static func withAddress(
    port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}
