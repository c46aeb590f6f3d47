import Foundation
import TLS
import Testing

@testable import PhoneRuntime

/// Whom a transfer trusts: the system's roots, and those of one more file.
@Suite struct TransferTLSTests {
  /// A certificate that signs itself, good for an hour.
  private struct Identity {
    let certificate: [UInt8]
    let tls: TLSContext

    init(_ host: String) throws {
      let key = P256.PrivateKey()
      let now = Int64(Date().timeIntervalSince1970) * 1000
      let template = CertificateTemplate(
        subject: [.commonName("transfer test")], publicKey: key.publicKey,
        notBeforeMilliseconds: now - 60_000, notAfterMilliseconds: now + 3_600_000,
        extensions: CertificateTemplate.Extension.leaf(for: .server)
          + [.alternativeNames(hosts: [host], addresses: [])])
      certificate = Array(try template.signed(by: nil, key: CertificateKey(key)).pem.utf8)
      let identity = try TLSIdentity(
        certificateChainPEM: certificate, privateKeyPEM: Array(key.pem.utf8))
      tls = try TLSContext.server(
        identity: identity, clientCertificates: .none, applicationProtocols: ["http/1.1"])
    }
  }

  @Test(arguments: [
    (true, "localhost", ""),
    (false, "localhost", "no TLS connection: the server's certificate is not trusted"),
    (true, "elsewhere.example", "the server's certificate is for another host"),
  ])
  func trust(isTrusted: Bool, name: String, reason: String) async throws {
    let served = ServedFile(content: sample(300_000))
    let identity = try Identity(name)
    let server = TestServer { request, _ in served.answer(to: request) }
    // Its files and its plain server are not used but for the folder.
    try await Site.with(TestServer { _, _ in TestServer.Answer() }) { site in
      site.write(identity.certificate, to: "roots.pem")
      try await server.start(identity.tls)
      var options = Site.options
      if isTrusted { options.trustRoots = "\(site.folder)/roots.pem" }
      let client = try TransferClient(options)
      let tested = Site(server: server, client: client, folder: site.folder)
      var order = tested.download()
      order.url = "https://localhost:\(server.port)/file"
      let end = await tested.end(order)
      if reason.isEmpty {
        #expect(end == .finished(bytes: 300_000) && tested.contents() == served.content)
      } else {
        #expect(end?.reason.hasPrefix(reason) == true, "\(end as Any)")
        #expect(server.requests.isEmpty)
      }
      await server.stop()
    }
  }

  @Test func aServerWithoutTLSIsToldFromOneThatIsNotTrusted() async throws {
    try await Site.with(TestServer { _, _ in TestServer.Answer() }) { site in
      var order = site.download()
      order.url = "https://localhost:\(site.server.port)/file"
      let end = await site.end(order)
      let reason = end?.reason ?? ""
      #expect(reason.hasPrefix("no TLS connection: the server does not seem to speak TLS"))
    }
  }
}
