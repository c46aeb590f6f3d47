internal import COpenSSL

/// ECDSA on the curve P-256 with SHA-256: `ES256` of provider tokens (RFC 7518, section 3.4), and
/// the keys of development certificates.
package enum P256 {
  /// Bytes of a private key, of a coordinate, and of each half of a signature.
  static let length = 32
  private static let algorithm: ASN1Identifier = [1, 2, 840, 10045, 2, 1]
  private static let curve: ASN1Identifier = [1, 2, 840, 10045, 3, 1, 7]
  /// The curve's order: private keys are below it (SEC 2, section 2.4.2).
  private static let order: [UInt8] = [
    0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
    0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
  ]

  // MARK: Private keys

  package struct PrivateKey: Sendable {
    package let publicKey: PublicKey
    let key: OpenSSLKey

    package init() {
      OpenSSLLibrary.prepare()
      let made = pushrelay_EVP_EC_gen_P256().map { OpenSSLKey(taking: $0) }
      // As for Swift's own generator: there is nothing right to do without randomness.
      guard let made, let publicKey = PublicKey(half: made) else {
        preconditionFailure("OpenSSL has no randomness, or no memory")
      }
      key = made
      self.publicKey = publicKey
    }

    /// Reads the first unencrypted private key of a PEM text: PKCS #8 (RFC 5958; Apple's `.p8`
    /// files) or SEC 1 (RFC 5915; `openssl ecparam`). Throws `invalidPrivateKey`.
    package init(pem: String) throws(TLSError) {
      let read = try OpenSSLKey(privatePEM: Array(pem.utf8))
      guard let scalar = read.scalar(length: P256.length) else {
        throw .invalidPrivateKey("not a key of the curve P-256")
      }
      try self.init(scalar: scalar)
    }

    /// Uses the number alone, whatever public half stood beside it.
    init(scalar: [UInt8]) throws(TLSError) {
      guard scalar.count == P256.length, scalar.lexicographicallyPrecedes(P256.order),
        let bare = Self.decode(Self.encoded(scalar, point: nil)),
        let point = PublicKey(half: bare)?.point,
        // Encoded again with the public half, for readers that do not compute it.
        let whole = Self.decode(Self.encoded(scalar, point: point)),
        let publicKey = PublicKey(half: whole)
      else {
        ErrorQueue.clear()
        throw .invalidPrivateKey("not a number below the order of the curve P-256")
      }
      key = whole
      self.publicKey = publicKey
    }

    /// As PKCS #8 in PEM, `-----BEGIN PRIVATE KEY-----`, with a final line feed.
    package var pem: String {
      PEM.write { PEM_write_bio_PKCS8PrivateKey($0, key.pointer, nil, nil, 0, nil, nil) }
    }

    /// Signs the bytes; each signature differs. Throws `library`.
    package func signature(for bytes: [UInt8]) throws(TLSError) -> Signature {
      ErrorQueue.clear()
      let context = EVP_MD_CTX_new()
      defer { EVP_MD_CTX_free(context) }
      guard EVP_DigestSignInit(context, nil, SHA256.algorithm, nil, key.pointer) == 1 else {
        throw .library(ErrorQueue.drainText())
      }
      // Two integers of 33 bytes at most, and their headers.
      var der = [UInt8](repeating: 0, count: 80)
      var count = der.count
      guard EVP_DigestSign(context, &der, &count, bytes, bytes.count) == 1,
        let signature = Signature(der: der.prefix(count))
      else { throw .library(ErrorQueue.drainText()) }
      return signature
    }

    /// ECPrivateKey of RFC 5915, section 3.
    private static func encoded(_ scalar: [UInt8], point: [UInt8]?) -> [UInt8] {
      DER.sequence(
        DER.unsignedInteger([1]),
        DER.element(.octetString, scalar),
        DER.tagged(0, isConstructed: true, P256.curve.der),
        point.map { DER.tagged(1, isConstructed: true, DER.bitString($0)) } ?? [])
    }

    private static func decode(_ der: [UInt8]) -> OpenSSLKey? {
      OpenSSLLibrary.prepare()
      ErrorQueue.clear()
      return der.withUnsafeBufferPointer { buffer in
        var cursor = buffer.baseAddress
        return d2i_PrivateKey(EVP_PKEY_EC, nil, &cursor, buffer.count)
          .map { OpenSSLKey(taking: $0) }
      }
    }
  }

  // MARK: Public keys

  package struct PublicKey: Sendable, Equatable {
    /// The uncompressed point: 4, then both coordinates (SEC 1, section 2.3.3).
    let point: [UInt8]
    let key: OpenSSLKey

    /// Precedes the point in a SubjectPublicKeyInfo (RFC 5480, section 2).
    private static let prefix = DER.sequence(
      DER.sequence(P256.algorithm.der, P256.curve.der),
      DER.bitString([UInt8](repeating: 0, count: pointLength))
    ).dropLast(pointLength)
    private static let pointLength = 1 + 2 * P256.length

    /// Reads the first public key of a PEM text, `-----BEGIN PUBLIC KEY-----`. Throws
    /// `invalidPublicKey`, also for a point that is not on the curve.
    package init(pem: String) throws(TLSError) {
      // OpenSSL would make a public key of a private one, too.
      guard let entry = pem.firstRange(of: "-----BEGIN PUBLIC KEY-----") else {
        throw .invalidPublicKey("no start line")
      }
      let read = try OpenSSLKey(publicPEM: Array(pem[entry.lowerBound...].utf8))
      guard let key = PublicKey(half: read) else {
        throw .invalidPublicKey("not a key of the curve P-256")
      }
      self = key
    }

    /// The public half of a key; nil unless P-256 and uncompressed.
    init?(half key: OpenSSLKey) {
      guard let der = TLSPeer.encode({ i2d_PUBKEY(key.pointer, $0) }),
        der.count == Self.prefix.count + Self.pointLength, der.starts(with: Self.prefix)
      else {
        ErrorQueue.clear()
        return nil
      }
      point = Array(der.suffix(Self.pointLength))
      self.key = key
    }

    /// As PEM, `-----BEGIN PUBLIC KEY-----`, with a final line feed.
    package var pem: String { PEM.write { PEM_write_bio_PUBKEY($0, key.pointer) } }

    package func isValidSignature(_ signature: Signature, for bytes: [UInt8]) -> Bool {
      let context = EVP_MD_CTX_new()
      let der = signature.der
      defer {
        EVP_MD_CTX_free(context)
        ErrorQueue.clear()
      }
      return EVP_DigestVerifyInit(context, nil, SHA256.algorithm, nil, key.pointer) == 1
        && EVP_DigestVerify(context, der, der.count, bytes, bytes.count) == 1
    }

    package static func == (left: Self, right: Self) -> Bool { left.point == right.point }
  }

  // MARK: Signatures

  /// A signature's two numbers, in both forms in use.
  package struct Signature: Sendable, Equatable {
    /// 32 bytes each: the form of JWTs (RFC 7518, section 3.4).
    package let raw: [UInt8]

    package init?(raw: [UInt8]) {
      guard raw.count == 2 * P256.length else { return nil }
      self.raw = raw
    }

    /// From a SEQUENCE of two INTEGERs (RFC 3279, section 2.2.3), the form of certificates and some
    /// JWTs. nil for anything else or more, and for numbers too large for this curve.
    package init?(der: some Collection<UInt8>) {
      var outer = DERReader(Array(der)[...])
      guard let content = outer.next(.sequence), outer.isAtEnd else { return nil }
      var inner = DERReader(content)
      guard let first = inner.nextUnsignedInteger(), first.count <= P256.length,
        let second = inner.nextUnsignedInteger(), second.count <= P256.length, inner.isAtEnd
      else { return nil }
      raw = Self.padded(first) + Self.padded(second)
    }

    package var der: [UInt8] {
      DER.sequence(
        DER.unsignedInteger(raw.prefix(P256.length)), DER.unsignedInteger(raw.suffix(P256.length)))
    }

    private static func padded(_ number: ArraySlice<UInt8>) -> [UInt8] {
      [UInt8](repeating: 0, count: P256.length - number.count) + number
    }
  }
}
