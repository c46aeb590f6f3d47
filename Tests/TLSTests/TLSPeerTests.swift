import Testing

@testable import TLS

@Suite struct TLSPeerTests {
  @Test(arguments: TLSVersion.allCases)
  func whatBothSidesKnowAboutEachOther(version: TLSVersion) throws {
    let certificates = TestCertificates.shared
    let pipe = try Pipe(
      client: Contexts.client(certificate: certificates.client, versions: version...version),
      server: Contexts.server(
        clientCertificates: .optional(.authorities(pem: certificates.authority.certificatePEM))))
    pipe.advance()
    let client = try #require(pipe.clientPeer)
    let server = try #require(pipe.serverPeer)
    let cipher =
      version == .tls13 ? "TLS_AES_128_GCM_SHA256" : "ECDHE-ECDSA-AES128-GCM-SHA256"
    #expect(pipe.clientVersion == version && pipe.serverVersion == version)
    #expect(pipe.clientCipher == cipher && pipe.serverCipher == cipher)
    #expect(pipe.clientProtocol == "h2" && pipe.serverProtocol == "h2")
    #expect(!pipe.clientResumed && !pipe.serverResumed)
    #expect(client.verification == .trusted && server.verification == .trusted)
    #expect(client.certificate == Self.der(certificates.server.certificatePEM))
    #expect(server.certificate == Self.der(certificates.client.certificatePEM))
    pipe.client.close(output: &pipe.toServer)
    #expect(pipe.client.peer == client)
  }

  /// PEM is base64 of DER between two lines (RFC 7468).
  private static func der(_ pem: [UInt8]) -> [UInt8] {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    var bits: UInt32 = 0
    var count = 0
    var bytes: [UInt8] = []
    let lines = String(decoding: pem, as: UTF8.self).split(separator: "\n")
    for character in lines.dropFirst().dropLast().joined().utf8 {
      guard let value = alphabet.firstIndex(of: character) else { continue }
      bits = bits << 6 | UInt32(value)
      count += 6
      guard count >= 8 else { continue }
      count -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> count))
    }
    return bytes
  }
}
