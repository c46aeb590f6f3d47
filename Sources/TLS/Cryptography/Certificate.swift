internal import COpenSSL

/// An X.509 certificate (RFC 5280).
package struct Certificate: Sendable, Equatable {
  /// The DER bytes.
  package let der: [UInt8]
  package let notBeforeMilliseconds: Int64
  package let notAfterMilliseconds: Int64

  let handle: CertificateHandle

  /// Reads DER with nothing behind it. OpenSSL takes more than DER allows (bits of a signature that
  /// count for nothing, X.690 section 11.2.1); such a certificate would be written as another.
  /// Throws `invalidCertificate`.
  package init(der: [UInt8]) throws(TLSError) {
    OpenSSLLibrary.prepare()
    ErrorQueue.clear()
    let read = der.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      return d2i_X509(nil, &cursor, buffer.count)
    }
    guard let read else { throw .invalidCertificate(ErrorQueue.drainText()) }
    try self.init(CertificateHandle(taking: read))
    guard self.der == der else { throw .invalidCertificate("not DER, or more than a certificate") }
  }

  /// Reads the first certificate of a PEM text. Throws `invalidCertificate`.
  package init(pem: String) throws(TLSError) {
    let reader = try PEM.Reader(Array(pem.utf8))
    guard let read = PEM_read_bio_X509(reader.bio, nil, noPassword, nil) else {
      throw .invalidCertificate(ErrorQueue.drainText())
    }
    try self.init(CertificateHandle(taking: read))
  }

  init(_ handle: CertificateHandle) throws(TLSError) {
    ErrorQueue.clear()
    self.handle = handle
    guard let der = TLSPeer.encode({ i2d_X509(handle.pointer, $0) }),
      let begin = Self.milliseconds(X509_get0_notBefore(handle.pointer)),
      let end = Self.milliseconds(X509_get0_notAfter(handle.pointer))
    else { throw .invalidCertificate(ErrorQueue.drainText()) }
    self.der = der
    notBeforeMilliseconds = begin
    notAfterMilliseconds = end
  }

  /// As PEM, with a final line feed.
  package var pem: String { PEM.write { PEM_write_bio_X509($0, handle.pointer) } }

  package static func == (left: Self, right: Self) -> Bool { left.der == right.der }

  // MARK: What it says

  /// Looks up a host name (literally, patterns do not match) or IP address in the alternative
  /// names.
  package func isFor(hostName name: String) -> Bool {
    defer { ErrorQueue.clear() }
    guard !name.isEmpty, !name.utf8.contains(0) else { return false }
    let exactly = UInt32(X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
    if X509_check_ip_asc(handle.pointer, name, 0) == 1 { return true }
    // A leading dot would match all names below it.
    return !name.hasPrefix(".")
      && X509_check_host(handle.pointer, name, name.utf8.count, exactly, nil) == 1
  }

  /// The host names and addresses among the alternative names.
  package var alternativeNames: [String] {
    let value = extensionValue([2, 5, 29, 17]) ?? []
    var outer = DERReader(value[...])
    var names = DERReader(outer.next(.sequence) ?? [])
    var found: [String] = []
    while !names.isAtEnd {
      if names.isNext(.address), let bytes = names.next(.address).map(Array.init) {
        found.append(Self.text(address: bytes))
      } else if let bytes = names.next(.hostName) {
        found.append(String(decoding: bytes, as: UTF8.self))
      }
    }
    return found
  }

  package func subjectTexts(_ identifier: ASN1Identifier) -> [String] {
    let object = identifier.makeObject()
    defer {
      ASN1_OBJECT_free(object)
      ErrorQueue.clear()
    }
    let name = X509_get_subject_name(handle.pointer)
    var texts: [String] = []
    var place = X509_NAME_get_index_by_OBJ(name, object, -1)
    while place >= 0 {
      let value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, place))
      if let text = Self.text(value) { texts.append(text) }
      place = X509_NAME_get_index_by_OBJ(name, object, place)
    }
    return texts
  }

  package func extensionValue(_ identifier: ASN1Identifier) -> [UInt8]? {
    let object = identifier.makeObject()
    defer { ASN1_OBJECT_free(object) }
    let place = X509_get_ext_by_OBJ(handle.pointer, object, -1)
    guard place >= 0,
      let value = X509_EXTENSION_get_data(X509_get_ext(handle.pointer, place))
    else { return nil }
    return Self.bytes(value)
  }

  var subjectKeyIdentifier: [UInt8]? {
    X509_get0_subject_key_id(handle.pointer).map { Self.bytes($0) }
  }

  // MARK: What it belongs to

  package func belongs(to key: CertificateKey) -> Bool {
    defer { ErrorQueue.clear() }
    return X509_check_private_key(handle.pointer, key.key.pointer) == 1
  }

  /// Checks name and signature of the issuer.
  package func isIssued(by issuer: Certificate) -> Bool {
    defer { ErrorQueue.clear() }
    let key = X509_get0_pubkey(issuer.handle.pointer)
    return X509_NAME_cmp(
      X509_get_issuer_name(handle.pointer), X509_get_subject_name(issuer.handle.pointer)) == 0
      && key != nil && X509_verify(handle.pointer, key) == 1
  }

  // MARK: Details

  private static func text(address: [UInt8]) -> String {
    if address.count == 4 { return address.map(String.init).joined(separator: ".") }
    return stride(from: 0, to: address.count - 1, by: 2).map {
      String(Int(address[$0]) << 8 | Int(address[$0 + 1]), radix: 16)
    }.joined(separator: ":")
  }

  private static func milliseconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
    let epoch = ASN1_TIME_set(nil, 0)
    defer { ASN1_STRING_free(epoch) }
    var days: Int32 = 0
    var seconds: Int32 = 0
    // Without a time it would take the present one.
    guard let time, ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
    return (Int64(days) * 86_400 + Int64(seconds)) * 1000
  }

  private static func text(_ value: UnsafePointer<ASN1_STRING>?) -> String? {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = ASN1_STRING_to_UTF8(&bytes, value)
    guard count >= 0, let bytes else { return nil }
    defer { pushrelay_OPENSSL_free(bytes) }
    return String(validating: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
  }

  static func bytes(_ value: UnsafePointer<ASN1_STRING>) -> [UInt8] {
    Array(
      UnsafeBufferPointer(
        start: ASN1_STRING_get0_data(value), count: Int(ASN1_STRING_length(value))))
  }
}

/// A private key for a certificate: P-256 as made here, or any kind from the operator.
package struct CertificateKey: Sendable {
  let key: OpenSSLKey

  /// Reads the first unencrypted private key of a PEM text. Throws `invalidPrivateKey`.
  package init(pem: String) throws(TLSError) {
    key = try OpenSSLKey(privatePEM: Array(pem.utf8))
  }

  package init(_ key: P256.PrivateKey) { self.key = key.key }
}

/// A certificate in OpenSSL's memory, freed with this object. `@unchecked Sendable`: complete
/// before it is shared and never changed; what OpenSSL derives later has its own locks (man 7
/// openssl-threads).
final class CertificateHandle: @unchecked Sendable {
  let pointer: OpaquePointer

  init(taking pointer: OpaquePointer) { self.pointer = pointer }

  deinit { X509_free(pointer) }
}

extension ASN1Identifier {
  /// OpenSSL's form; the caller frees it.
  func makeObject() -> OpaquePointer? {
    der.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      return d2i_ASN1_OBJECT(nil, &cursor, buffer.count)
    }
  }
}
