import COpenSSL
import Testing

@testable import TLS

@Suite struct CertificateTests {
  private static let start: Int64 = 1_700_000_000_000
  private static let day: Int64 = 86_400_000

  /// An authority, and a server's certificate by it.
  private struct Pair {
    let authority: Certificate
    let server: Certificate
    let authorityKey = P256.PrivateKey()
    let serverKey = P256.PrivateKey()

    init(hosts: [String] = ["relay.example"], addresses: [[UInt8]] = []) throws {
      authority = try CertificateTemplate(
        subject: [.commonName("CA")], publicKey: authorityKey.publicKey,
        notBeforeMilliseconds: start, notAfterMilliseconds: start + 3650 * day,
        extensions: CertificateTemplate.Extension.authority
          + [.subjectKeyIdentifier(of: authorityKey.publicKey)]
      ).signed(by: nil, key: CertificateKey(authorityKey))
      server = try CertificateTemplate(
        subject: [.commonName("relay.example"), .organization("ä")],
        publicKey: serverKey.publicKey, notBeforeMilliseconds: start,
        notAfterMilliseconds: start + day,
        extensions: CertificateTemplate.Extension.leaf(for: .server)
          + [.alternativeNames(hosts: hosts, addresses: addresses)]
          + CertificateTemplate.Extension.authorityKeyIdentifier(of: authority)
      ).signed(by: authority, key: CertificateKey(authorityKey))
    }
  }

  @Test func whatWasAskedForStandsInIt() throws {
    let pair = try Pair(hosts: ["relay.example", "*.wild.example"], addresses: [[10, 0, 0, 7]])
    let server = pair.server
    #expect(server.notBeforeMilliseconds == Self.start)
    #expect(server.notAfterMilliseconds == Self.start + Self.day)
    #expect(server.subjectTexts([2, 5, 4, 3]) == ["relay.example"])
    #expect(server.subjectTexts([2, 5, 4, 10]) == ["ä"])
    #expect(server.subjectTexts([2, 5, 4, 11]).isEmpty)
    for name in ["relay.example", "RELAY.example", "10.0.0.7"] {
      #expect(server.isFor(hostName: name), "\(name)")
    }
    // A pattern is a name as any other here: a new certificate is due for the names below it.
    for name in ["", ".example", "a.wild.example", "example", "10.0.0.8", "relay.example\0"] {
      #expect(!server.isFor(hostName: name), "\(name)")
    }
    // The common name is none that a server is reached by.
    #expect(!(try Pair(hosts: ["other.example"]).server.isFor(hostName: "relay.example")))
    #expect(server.extensionValue([2, 5, 29, 19]) == [0x30, 0])
    #expect(server.extensionValue([2, 5, 29, 15]) == [3, 2, 7, 0x80])
    #expect(pair.authority.extensionValue([2, 5, 29, 15]) == [3, 2, 1, 6])
    #expect(pair.authority.extensionValue([2, 5, 29, 19]) == [0x30, 6, 1, 1, 0xFF, 2, 1, 0])
    #expect(server.extensionValue([1, 2, 3]) == nil)
    #expect(pair.authority.subjectKeyIdentifier?.count == 20)
    #expect(ERR_peek_error() == 0)
  }

  @Test func whoIssuedItAndWhoseItIs() throws {
    let (pair, other) = (try Pair(), try Pair())
    #expect(pair.server.isIssued(by: pair.authority))
    #expect(pair.authority.isIssued(by: pair.authority))
    // The same name, another key.
    #expect(!pair.server.isIssued(by: other.authority))
    #expect(!pair.server.isIssued(by: pair.server))
    #expect(pair.server.belongs(to: CertificateKey(pair.serverKey)))
    #expect(try pair.server.belongs(to: CertificateKey(pem: pair.serverKey.pem)))
    #expect(!pair.server.belongs(to: CertificateKey(pair.authorityKey)))
    #expect(throws: TLSError.self) { try CertificateKey(pem: pair.server.pem) }
    #expect(ERR_peek_error() == 0)
  }

  @Test func itComesBackFromItsBytesAndText() throws {
    let server = try Pair().server
    #expect(try Certificate(der: server.der) == server)
    #expect(try Certificate(pem: server.pem) == server)
    #expect(server.pem.hasPrefix("-----BEGIN CERTIFICATE-----\n"))
    // The first of a chain counts, and text around it does not.
    #expect(try Certificate(pem: "mine:\n" + server.pem + (try Pair().authority.pem)) == server)
    #expect(throws: TLSError.self) { try Certificate(der: server.der + [0]) }
    // Bits that nobody reads are zero in DER (X.690, 11.2.1): else one certificate were many.
    var loose = server.der
    let signature = try #require(
      loose.indices.last { loose[$0] == 3 && Int(loose[$0 + 1]) == loose.count - $0 - 2 })
    loose[signature + 2] = 7
    loose[loose.count - 1] |= 1
    #expect(throws: TLSError.self) { try Certificate(der: loose) }
    #expect(throws: TLSError.self) { try Certificate(pem: "") }
    for length in 0..<server.der.count {
      #expect(throws: TLSError.self) { try Certificate(der: Array(server.der.prefix(length))) }
    }
    #expect(ERR_peek_error() == 0)
  }

  /// No serial number comes twice, and none is negative.
  @Test func serialNumbers() throws {
    let numbers = try (0..<20).map { _ in
      let server = try Pair().server
      let number = X509_get0_serialNumber(server.handle.pointer)
      #expect(ASN1_STRING_type(number) == V_ASN1_INTEGER)
      return Array(
        UnsafeBufferPointer(
          start: ASN1_STRING_get0_data(number), count: Int(ASN1_STRING_length(number))))
    }
    #expect(Set(numbers).count == 20 && numbers.allSatisfy { $0.count == 16 })
  }

  /// Beyond 2049 the years of certificates have four digits (RFC 5280, section 4.1.2.5).
  @Test func farDates() throws {
    let key = P256.PrivateKey()
    let end: Int64 = 32_503_680_000_000
    let certificate = try CertificateTemplate(
      subject: [.commonName("far")], publicKey: key.publicKey, notBeforeMilliseconds: 0,
      notAfterMilliseconds: end, extensions: []
    ).signed(by: nil, key: CertificateKey(key))
    #expect(certificate.notBeforeMilliseconds == 0 && certificate.notAfterMilliseconds == end)
  }
}
