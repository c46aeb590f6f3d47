package import HTTP2
package import NIOCore
package import TLS

/// One connection's TLS and HTTP/2 without a socket: received bytes in, HTTP/2 events and bytes to
/// send out; server and client. It lives on one event loop, whose `TransportBuffers` it borrows, so
/// an idle connection holds only the two libraries' own state.
package final class Transport {
  /// After `receive`, read its events and submit to it, then `flush`.
  package let http2: HTTP2Session
  private var tls: TLSSession?
  private var isSecure: Bool
  /// TLS's own bytes to send: handshake, tickets, alerts.
  private var pending = ByteBuffer()
  private let maximumPendingBytes: Int
  /// Decrypted bytes for the next turn of `http2`.
  private var unread = ByteBuffer()
  /// The peer's proven identity; nil on plaintext and before the handshake is complete.
  package private(set) var peer: TLSPeer?

  /// A connection over TLS. A peer can make TLS itself answer (TLS 1.2: an alert per attempt to
  /// renegotiate; TLS 1.3: key updates); `maximumPendingBytes` bound the answers.
  package init(
    _ tls: consuming TLSSession, role: HTTP2Role, configuration: HTTP2Configuration,
    maximumPendingBytes: Int = 65_536
  ) throws(HTTP2Error) {
    self.http2 = try HTTP2Session(role: role, configuration: configuration)
    self.tls = consume tls
    self.isSecure = true
    self.maximumPendingBytes = maximumPendingBytes
  }

  /// A connection without TLS: HTTP/2 with prior knowledge (RFC 9113 section 3.3).
  package init(plaintext role: HTTP2Role, configuration: HTTP2Configuration) throws(HTTP2Error) {
    self.http2 = try HTTP2Session(role: role, configuration: configuration)
    self.isSecure = false
    self.maximumPendingBytes = 0
  }

  package var isEstablished: Bool {
    guard isSecure else { return true }
    return switch tls?.phase {
    case .established, .peerClosed: true
    case .handshaking, .closed, .failed, nil: false
    }
  }

  package var peerHasClosed: Bool { isSecure && tls?.phase == .peerClosed }

  /// Received bytes wait for the next turn: then `receive` again, even without input.
  package var hasUnread: Bool { unread.readableBytes > 0 }

  package func start() throws(TransportError) {
    guard isSecure else { return }
    do {
      try tls?.start(output: &pending)
    } catch {
      throw .tls(error)
    }
  }

  /// Processes input as far as the turn goes; then, even after a throw, read `http2` and `flush`.
  package func receive(
    _ input: inout ByteBuffer, buffers: inout TransportBuffers
  ) throws(TransportError) {
    guard isSecure else { return try receivePlaintext(&input) }
    buffers.plaintext.clear()
    let wasEstablished = isEstablished
    var failure: TLSError?
    do {
      try tls?.receive(&input, plaintext: &buffers.plaintext, output: &pending)
    } catch {
      failure = error
    }
    if !wasEstablished, isEstablished { peer = tls?.peer }
    if buffers.plaintext.readableBytes > 0 || hasUnread {
      try receivePlaintext(&buffers.plaintext)
    }
    if let failure { throw .tls(failure) }
    guard pending.readableBytes <= maximumPendingBytes else { throw .answersNotTaken }
  }

  /// Appends bytes to send, about `limitBytes` at most; true when there are more.
  package func flush(
    into output: inout ByteBuffer, limitBytes: Int, buffers: inout TransportBuffers
  ) throws(TransportError) -> Bool {
    if pending.readableBytes > 0 {
      output.writeBuffer(&pending)
      pending = ByteBuffer()
    }
    guard isSecure else { return http2.send(into: &output, upTo: limitBytes) }
    guard isEstablished else { return false }
    buffers.frames.clear()
    let hasMore = http2.send(into: &buffers.frames, upTo: limitBytes)
    do {
      try tls?.send(&buffers.frames, output: &output)
    } catch {
      throw .tls(error)
    }
    return hasMore
  }

  /// Appends TLS's close_notify. Nothing may be sent afterwards.
  package func close(into output: inout ByteBuffer) {
    output.writeBuffer(&pending)
    pending = ByteBuffer()
    if isSecure { tls?.close(output: &output) }
  }

  private func receivePlaintext(_ bytes: inout ByteBuffer) throws(TransportError) {
    do {
      if !hasUnread { try http2.receive(&bytes) }
      if bytes.readableBytes > 0 { unread.writeBuffer(&bytes) }
      guard hasUnread else { return }
      try http2.receive(&unread)
      if !hasUnread { unread = ByteBuffer() }
    } catch {
      unread = ByteBuffer()
      throw .http2(error)
    }
  }
}

/// Buffers shared by an event loop's connections; contents never outlive a call.
package struct TransportBuffers {
  fileprivate var plaintext: ByteBuffer
  fileprivate var frames: ByteBuffer

  package init(allocator: ByteBufferAllocator = ByteBufferAllocator()) {
    plaintext = allocator.buffer(capacity: 65_536)
    frames = allocator.buffer(capacity: 65_536)
  }
}

/// Why a connection broke: the peer or the network.
package enum TransportError: Error, Equatable {
  case tls(TLSError)
  case http2(HTTP2Error)
  /// The peer keeps asking and does not read the answers.
  case answersNotTaken
}
