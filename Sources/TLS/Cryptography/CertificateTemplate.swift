internal import COpenSSL

package struct CertificateTemplate: Sendable {
  package struct Attribute: Sendable {
    var identifier: ASN1Identifier
    var text: String

    /// The subject's common name (RFC 5280, appendix A.1).
    package static func commonName(_ text: String) -> Self { Self([2, 5, 4, 3], text) }
    package static func organization(_ text: String) -> Self { Self([2, 5, 4, 10], text) }

    package init(_ identifier: ASN1Identifier, _ text: String) {
      self.identifier = identifier
      self.text = text
    }
  }

  /// An extension, its value a whole DER element.
  package struct Extension: Sendable {
    var identifier: ASN1Identifier
    var isCritical: Bool
    var value: [UInt8]

    package init(_ identifier: ASN1Identifier, isCritical: Bool = false, _ value: [UInt8]) {
      self.identifier = identifier
      self.isCritical = isCritical
      self.value = value
    }
  }

  /// The use of a key (RFC 5280, section 4.2.1.12).
  package enum Purpose: Sendable {
    case server
    case client
  }

  var subject: [Attribute]
  var publicKey: P256.PublicKey
  var notBeforeMilliseconds: Int64
  var notAfterMilliseconds: Int64
  var extensions: [Extension]

  /// Times are UNIX milliseconds; certificates keep whole seconds.
  package init(
    subject: [Attribute], publicKey: P256.PublicKey, notBeforeMilliseconds: Int64,
    notAfterMilliseconds: Int64, extensions: [Extension]
  ) {
    self.subject = subject
    self.publicKey = publicKey
    self.notBeforeMilliseconds = notBeforeMilliseconds
    self.notAfterMilliseconds = notAfterMilliseconds
    self.extensions = extensions
  }
}

// MARK: Extensions of RFC 5280, section 4.2.1

extension CertificateTemplate.Extension {
  /// For an authority that only issues leaf certificates.
  package static let authority: [Self] = [
    // Basic constraints: cA, path length 0. Key usage: keyCertSign, cRLSign.
    Self(
      [2, 5, 29, 19], isCritical: true,
      DER.sequence(DER.element(.boolean, [0xFF]), DER.unsignedInteger([0]))),
    Self([2, 5, 29, 15], isCritical: true, DER.bitString([0b0000_0110], unusedBits: 1)),
  ]

  /// For a key that only signs, for this purpose.
  package static func leaf(for purpose: CertificateTemplate.Purpose) -> [Self] {
    let use: ASN1Identifier =
      switch purpose {
      case .server: [1, 3, 6, 1, 5, 5, 7, 3, 1]
      case .client: [1, 3, 6, 1, 5, 5, 7, 3, 2]
      }
    return [
      // Basic constraints: not cA. Key usage: digitalSignature.
      Self([2, 5, 29, 19], isCritical: true, DER.sequence()),
      Self([2, 5, 29, 15], isCritical: true, DER.bitString([0b1000_0000], unusedBits: 7)),
      Self([2, 5, 29, 37], DER.sequence(use.der)),
    ]
  }

  /// A server's names and addresses (4 or 16 bytes).
  package static func alternativeNames(hosts: [String], addresses: [[UInt8]]) -> Self {
    let names = hosts.map { DER.tagged(2, Array($0.utf8)) } + addresses.map { DER.tagged(7, $0) }
    return Self([2, 5, 29, 17], DER.element(.sequence, Array(names.joined())))
  }

  /// The first 160 bits of the key's hash (RFC 7093, section 2).
  package static func subjectKeyIdentifier(of key: P256.PublicKey) -> Self {
    Self([2, 5, 29, 14], DER.element(.octetString, SHA256.hash(key.point).prefix(20)))
  }

  package static func authorityKeyIdentifier(of authority: Certificate) -> [Self] {
    guard let name = authority.subjectKeyIdentifier else { return [] }
    return [Self([2, 5, 29, 35], DER.sequence(DER.tagged(0, name)))]
  }
}

// MARK: By OpenSSL

extension CertificateTemplate {
  /// The 4 or 16 bytes of a textual IP address; nil for a name.
  package static func addressBytes(_ text: String) -> [UInt8]? {
    defer { ErrorQueue.clear() }
    guard let read = a2i_IPADDRESS(text) else { return nil }
    defer { ASN1_OCTET_STRING_free(read) }
    return Certificate.bytes(read)
  }

  /// - Parameter issuer: the authority; nil for a certificate that its own key signs.
  package func signed(
    by issuer: Certificate?, key: CertificateKey
  ) throws(TLSError) -> Certificate {
    OpenSSLLibrary.prepare()
    ErrorQueue.clear()
    guard let certificate = X509_new() else { throw .library(ErrorQueue.drainText()) }
    let handle = CertificateHandle(taking: certificate)
    let name = X509_get_subject_name(certificate)
    guard
      // Version 3 is written as 2.
      X509_set_version(certificate, 2) == 1,
      Self.setSerialNumber(of: certificate),
      subject.allSatisfy({ $0.add(to: name) }),
      X509_set_issuer_name(
        certificate, issuer.map { X509_get_subject_name($0.handle.pointer) } ?? name) == 1,
      ASN1_TIME_set(X509_getm_notBefore(certificate), Int(notBeforeMilliseconds / 1000)) != nil,
      ASN1_TIME_set(X509_getm_notAfter(certificate), Int(notAfterMilliseconds / 1000)) != nil,
      X509_set_pubkey(certificate, publicKey.key.pointer) == 1,
      extensions.allSatisfy({ $0.add(to: certificate) }),
      X509_sign(certificate, key.key.pointer, key.digest) > 0
    else { throw .library(ErrorQueue.drainText()) }
    return try Certificate(handle)
  }

  /// 127 random bits: positive and unique (RFC 5280, section 4.1.2.2).
  private static func setSerialNumber(of certificate: OpaquePointer) -> Bool {
    var random = SystemRandomNumberGenerator()
    var bytes: [UInt8] = (0..<16).map { _ in random.next() }
    bytes[0] = bytes[0] & 0x7F | 0x40
    let number = BN_bin2bn(bytes, Int32(bytes.count), nil)
    defer { BN_free(number) }
    return BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil
  }
}

extension CertificateTemplate.Attribute {
  fileprivate func add(to name: OpaquePointer?) -> Bool {
    let object = identifier.makeObject()
    defer { ASN1_OBJECT_free(object) }
    let bytes = Array(text.utf8)
    return X509_NAME_add_entry_by_OBJ(
      name, object, V_ASN1_UTF8STRING, bytes, Int32(clamping: bytes.count), -1, 0) == 1
  }
}

extension CertificateTemplate.Extension {
  fileprivate func add(to certificate: OpaquePointer) -> Bool {
    let object = identifier.makeObject()
    let content = ASN1_OCTET_STRING_new()
    defer {
      ASN1_OBJECT_free(object)
      ASN1_OCTET_STRING_free(content)
    }
    guard ASN1_OCTET_STRING_set(content, value, Int32(clamping: value.count)) == 1,
      let made = X509_EXTENSION_create_by_OBJ(nil, object, isCritical ? 1 : 0, content)
    else { return false }
    defer { X509_EXTENSION_free(made) }
    return X509_add_ext(certificate, made, -1) == 1
  }
}

extension CertificateKey {
  /// The key's signature hash; nil for keys with one built in.
  fileprivate var digest: OpaquePointer? {
    let hasOwn =
      EVP_PKEY_is_a(key.pointer, "ED25519") == 1 || EVP_PKEY_is_a(key.pointer, "ED448") == 1
    return hasOwn ? nil : SHA256.algorithm
  }
}
