import Testing

@testable import TLS

@Suite struct TLSErrorTests {
  @Test func everyErrorSaysWhatHappenedInOneLine() {
    let table: [(TLSError, String)] = [
      (.invalidCertificate("no start line"), "the certificate cannot be used: no start line"),
      (.invalidPrivateKey("unsupported"), "the private key cannot be used: unsupported"),
      (.invalidPublicKey("no start line"), "the public key cannot be used: no start line"),
      (.privateKeyMismatch, "the private key does not belong to the certificate"),
      (.invalidApplicationProtocol(""), "not a protocol name for ALPN: ''"),
      (.invalidServerName("a b"), "not a server name: 'a b'"),
      (.notEstablished, "the TLS connection is not open for sending"),
      (.certificateRejected(reason: "expired"), "the server's certificate was refused: expired"),
      (.alertReceived(code: 48, text: "unknown CA"), "the peer sent TLS alert 48: unknown CA"),
      (.handshakeFailed("no shared cipher"), "the TLS handshake failed: no shared cipher"),
      (.connectionFailed("bad record mac"), "the TLS connection failed: bad record mac"),
      (.truncated, "the connection ended without a TLS close_notify"),
      (.library("malloc failure"), "OpenSSL: malloc failure"),
    ]
    for (error, text) in table { #expect("\(error)" == text) }
  }

  @Test func theQueueIsEmptyAfterTaking() {
    OpenSSLLibrary.prepare()
    #expect(ErrorQueue.drain() == nil)
    #expect(ErrorQueue.drainText() == "no reason given")
  }
}
