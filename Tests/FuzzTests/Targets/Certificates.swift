import RelayCore

@testable import ProviderCredentials
@testable import TLS

/// Certificates that providers show: refused, or read to the last byte, the same in PEM, with
/// topics that are texts. Whose authority is unknown is turned away behind this.
enum Certificates {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    let bytes = [UInt8](input)
    guard let certificate = try? Certificate(der: bytes) else {
      guard (try? ProviderCertificate(derEncoded: bytes)) == nil else {
        throw Finding("a provider's certificate is no certificate")
      }
      return
    }
    guard certificate.der == bytes else { throw Finding("it is another: \(certificate.der)") }
    guard (try? Certificate(pem: certificate.pem)) == certificate else {
      throw Finding("in PEM it is another")
    }
    guard !certificate.isFor(hostName: "") else { throw Finding("it is for no host") }
    _ = certificate.isIssued(by: certificate)
    guard let provider = try? ProviderCertificate(derEncoded: bytes) else { return }
    guard provider.userID?.isEmpty != true, provider.userID != nil || !provider.topics.isEmpty
    else { throw Finding("it is for no topic") }
    for environment in [nil, ProviderEnvironment.sandbox, .production] {
      try? provider.check(environment: environment, now: provider.notBeforeMilliseconds)
    }
    for name in provider.topics.map(\.name) + ["com.example.app"] {
      _ = provider.covered.contains(Array(name.utf8).span)
    }
  }
}
