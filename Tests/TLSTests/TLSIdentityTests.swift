import COpenSSL
import Testing

@testable import TLS

@Suite struct TLSIdentityTests {
  private let certificates = TestCertificates.shared

  @Test func keysInOtherForms() throws {
    let issuer = TestIssuer(name: "forms", kind: .client, issuer: nil)
    let pem = issuer.pem()
    let forms = issuer.keyForms()
    _ = try TLSIdentity(certificateChainPEM: pem.certificatePEM, privateKeyPEM: pem.keyPEM)
    _ = try TLSIdentity(certificateChainPEM: pem.certificatePEM, privateKeyPEM: forms.traditional)
    // Text around the entries, and one file for both, as people do.
    let both = Array("my key\n".utf8) + pem.keyPEM + pem.certificatePEM + Array("end\n".utf8)
    _ = try TLSIdentity(certificateChainPEM: both, privateKeyPEM: both)
    #expect(ERR_peek_error() == 0)
  }

  @Test func anEncryptedKeyIsAnErrorAndNotAQuestionOnTheTerminal() throws {
    let issuer = TestIssuer(name: "encrypted", kind: .client, issuer: nil)
    #expect {
      try TLSIdentity(
        certificateChainPEM: issuer.pem().certificatePEM,
        privateKeyPEM: issuer.keyForms().encrypted)
    } throws: { error in
      if case .some(.invalidPrivateKey) = error as? TLSError { true } else { false }
    }
    #expect(ERR_peek_error() == 0)
  }

  @Test func aKeyOfAnotherCertificateIsRefused() throws {
    #expect(throws: TLSError.privateKeyMismatch) {
      try TLSIdentity(
        certificateChainPEM: certificates.server.certificatePEM,
        privateKeyPEM: certificates.client.keyPEM)
    }
    #expect(ERR_peek_error() == 0)
  }

  @Test func unreadablePEMIsRefusedWherverItIsCut() throws {
    let good = certificates.server
    #expect(throws: TLSError.invalidCertificate("no start line")) {
      try TLSIdentity(certificateChainPEM: [], privateKeyPEM: good.keyPEM)
    }
    #expect(throws: TLSError.invalidCertificate("no start line")) {
      try TLSIdentity(certificateChainPEM: good.keyPEM, privateKeyPEM: good.keyPEM)
    }
    for length in 0..<(good.certificatePEM.count - 1) {
      #expect(throws: TLSError.self, "\(length)") {
        try TLSIdentity(
          certificateChainPEM: Array(good.certificatePEM.prefix(length)),
          privateKeyPEM: good.keyPEM)
      }
    }
    for length in 0..<(good.keyPEM.count - 1) {
      #expect(throws: TLSError.self, "\(length)") {
        try TLSIdentity(
          certificateChainPEM: good.certificatePEM,
          privateKeyPEM: Array(good.keyPEM.prefix(length)))
      }
    }
    // A good certificate does not make up for a broken one behind it.
    #expect(throws: TLSError.self) {
      try TLSIdentity(
        certificateChainPEM: good.certificatePEM + good.certificatePEM.prefix(100),
        privateKeyPEM: good.keyPEM)
    }
    #expect(ERR_peek_error() == 0)
  }
}
