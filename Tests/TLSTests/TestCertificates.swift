import COpenSSL

/// A certificate (with the rest of its chain, if any) and its key, as a user would have them.
struct TestCertificate: Sendable {
  var certificatePEM: [UInt8]
  var keyPEM: [UInt8]
}

/// The certificates of these tests, made when the first test asks and never written to disk.
struct TestCertificates: Sendable {
  static let shared = TestCertificates()

  let authority: TestCertificate
  let otherAuthority: TestCertificate
  /// For `localhost`, `*.example.org` and 127.0.0.1.
  let server: TestCertificate
  let expiredServer: TestCertificate
  /// Issued by an intermediate of the authority, which is part of the chain.
  let chainedServer: TestCertificate
  /// The intermediate of `chainedServer`.
  let intermediate: TestCertificate
  let client: TestCertificate
  let expiredClient: TestCertificate
  let foreignClient: TestCertificate

  private init() {
    let names = "DNS:localhost,DNS:*.example.org,IP:127.0.0.1"
    let root = TestIssuer(name: "Test authority", kind: .authority, issuer: nil)
    let other = TestIssuer(name: "Other authority", kind: .authority, issuer: nil)
    let middle = TestIssuer(name: "Intermediate", kind: .authority, issuer: root)
    let chained = TestIssuer(name: "chained", kind: .server(names), issuer: middle)
    authority = root.pem()
    otherAuthority = other.pem()
    intermediate = middle.pem()
    chainedServer = chained.pem(followedBy: middle)
    server = TestIssuer(name: "server", kind: .server(names), issuer: root).pem()
    expiredServer =
      TestIssuer(name: "expired", kind: .server(names), issuer: root, expired: true).pem()
    client = TestIssuer(name: "provider", kind: .client, issuer: root).pem()
    expiredClient = TestIssuer(name: "expired", kind: .client, issuer: root, expired: true).pem()
    foreignClient = TestIssuer(name: "foreign", kind: .client, issuer: other).pem()
  }
}

/// A key pair with a certificate, able to sign others. Only lives while the fixtures are made.
final class TestIssuer {
  enum Kind {
    case authority
    /// With these subject alternative names.
    case server(String)
    case client
  }

  private let certificate: OpaquePointer
  private let key: OpaquePointer

  init(name: String, kind: Kind, issuer: TestIssuer?, expired: Bool = false) {
    key = TestIssuer.makeKey()
    certificate = X509_new()!
    X509_set_version(certificate, 2)
    var serial = SystemRandomNumberGenerator()
    ASN1_INTEGER_set_int64(
      X509_get_serialNumber(certificate), Int64(serial.next() as UInt32))
    X509_gmtime_adj(X509_getm_notBefore(certificate), expired ? -7200 : -3600)
    X509_gmtime_adj(X509_getm_notAfter(certificate), expired ? -3600 : 3600)
    X509_set_pubkey(certificate, key)
    X509_NAME_add_entry_by_txt(
      X509_get_subject_name(certificate), "CN", asciiName, name, -1, -1, 0)
    let parent = issuer?.certificate ?? certificate
    X509_set_issuer_name(certificate, X509_get_subject_name(parent))
    switch kind {
    case .authority:
      add(NID_basic_constraints, "critical,CA:TRUE", parent)
      add(NID_key_usage, "critical,keyCertSign", parent)
      add(NID_subject_key_identifier, "hash", parent)
    case .server(let names):
      add(NID_ext_key_usage, "serverAuth", parent)
      add(NID_subject_alt_name, names, parent)
    case .client:
      add(NID_ext_key_usage, "clientAuth", parent)
    }
    precondition(X509_sign(certificate, issuer?.key ?? key, EVP_sha256()) > 0)
  }

  deinit {
    X509_free(certificate)
    EVP_PKEY_free(key)
  }

  func pem(followedBy next: TestIssuer? = nil) -> TestCertificate {
    TestCertificate(
      certificatePEM: Self.collect { bio in
        PEM_write_bio_X509(bio, certificate)
        if let next { PEM_write_bio_X509(bio, next.certificate) }
      },
      keyPEM: Self.collect { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) })
  }

  /// `MBSTRING_ASC`, which is a macro with arithmetic in it.
  private let asciiName: Int32 = 0x1001

  private func add(_ nid: Int32, _ value: String, _ parent: OpaquePointer) {
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, parent, certificate, nil, nil, 0)
    let made = X509V3_EXT_nconf_nid(nil, &context, nid, value)
    precondition(made != nil, "extension \(value)")
    X509_add_ext(certificate, made, -1)
    X509_EXTENSION_free(made)
  }

  /// A P-256 key.
  private static func makeKey() -> OpaquePointer {
    let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil)
    defer { EVP_PKEY_CTX_free(context) }
    EVP_PKEY_keygen_init(context)
    EVP_PKEY_CTX_set_group_name(context, "P-256")
    var key: OpaquePointer?
    precondition(EVP_PKEY_generate(context, &key) == 1)
    return key!
  }

  /// What `body` writes into a memory BIO.
  static func collect(_ body: (OpaquePointer?) -> Void) -> [UInt8] {
    let bio = BIO_new(BIO_s_mem())
    defer { BIO_free(bio) }
    body(bio)
    let length = BIO_ctrl_pending(bio)
    var bytes = [UInt8](repeating: 0, count: length)
    BIO_read(bio, &bytes, Int32(length))
    return bytes
  }

  /// The same key in other forms: SEC 1, and PKCS #8 under a password.
  func keyForms() -> (traditional: [UInt8], encrypted: [UInt8]) {
    (
      Self.collect { PEM_write_bio_PrivateKey_traditional($0, key, nil, nil, 0, nil, nil) },
      Self.collect { bio in
        var password = Array("secret".utf8CString)
        PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_128_cbc(), &password, 6, nil, nil)
      }
    )
  }
}
