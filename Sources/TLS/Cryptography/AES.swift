internal import COpenSSL

/// AES-256, for authenticated encryption and key wrap.
package enum AES {
  static let nonceLength = 12
  static let tagLength = 16

  // MARK: GCM

  /// Encrypts `content` and authenticates `header` with a new random nonce (AES-GCM, NIST SP
  /// 800-38D). Returns nonce, ciphertext, tag. Throws `library` when there is too much.
  package static func seal(
    _ content: [UInt8], authenticating header: [UInt8], under key: SymmetricKey
  ) throws(TLSError) -> [UInt8] {
    var random = SystemRandomNumberGenerator()
    let nonce: [UInt8] = (0..<nonceLength).map { _ in random.next() }
    return try seal(content, authenticating: header, under: key, nonce: nonce)
  }

  /// A nonce must never be used twice with a key.
  static func seal(
    _ content: [UInt8], authenticating header: [UInt8], under key: SymmetricKey, nonce: [UInt8]
  ) throws(TLSError) -> [UInt8] {
    var tag = [UInt8](repeating: 0, count: tagLength)
    let ciphertext = try run(
      EVP_aes_256_gcm(), key, nonce, encrypts: true, header: header, content, tag: &tag)
    guard let ciphertext else { throw .library(ErrorQueue.drainText()) }
    return nonce + ciphertext + tag
  }

  /// Decrypts what `seal` returned; nil if it, the header or the key differs.
  package static func open(
    _ sealed: ArraySlice<UInt8>, authenticating header: [UInt8], under key: SymmetricKey
  ) throws(TLSError) -> [UInt8]? {
    guard sealed.count >= nonceLength + tagLength else { return nil }
    defer { ErrorQueue.clear() }
    var tag = Array(sealed.suffix(tagLength))
    return try run(
      EVP_aes_256_gcm(), key, Array(sealed.prefix(nonceLength)), encrypts: false, header: header,
      Array(sealed.dropFirst(nonceLength).dropLast(tagLength)), tag: &tag)
  }

  // MARK: Key wrap

  /// AES Key Wrap (RFC 3394): 40 bytes, deterministic, for keys are random already.
  package static func wrap(
    _ key: SymmetricKey, under wrapping: SymmetricKey
  ) throws(TLSError) -> [UInt8] {
    var tag: [UInt8] = []
    let wrapped = try run(EVP_aes_256_wrap(), wrapping, nil, encrypts: true, key.bytes, tag: &tag)
    guard let wrapped else { throw .library(ErrorQueue.drainText()) }
    return wrapped
  }

  /// Decrypts a wrapped key; nil if it or the other key differs: key wrap authenticates.
  package static func unwrap(
    _ wrapped: [UInt8], under wrapping: SymmetricKey
  ) throws(TLSError) -> SymmetricKey? {
    // OpenSSL takes an empty input for the end of one.
    guard wrapped.count == SymmetricKey.length + 8 else { return nil }
    defer { ErrorQueue.clear() }
    var tag: [UInt8] = []
    return try run(EVP_aes_256_wrap(), wrapping, nil, encrypts: false, wrapped, tag: &tag)
      .flatMap { SymmetricKey(bytes: $0) }
  }

  // MARK: By OpenSSL

  /// Encrypts or decrypts a whole input; nil when OpenSSL refuses. `tag` is GCM's, in or out; empty
  /// for key wrap, which has none.
  private static func run(
    _ cipher: OpaquePointer?, _ key: SymmetricKey, _ nonce: [UInt8]?, encrypts: Bool,
    header: [UInt8] = [], _ input: [UInt8], tag: inout [UInt8]
  ) throws(TLSError) -> [UInt8]? {
    OpenSSLLibrary.prepare()
    ErrorQueue.clear()
    guard let context = EVP_CIPHER_CTX_new() else { throw .library(ErrorQueue.drainText()) }
    defer { EVP_CIPHER_CTX_free(context) }
    let isGCM = !tag.isEmpty
    if !isGCM { EVP_CIPHER_CTX_set_flags(context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW) }
    guard let headerCount = Int32(exactly: header.count), let count = Int32(exactly: input.count),
      EVP_CipherInit_ex(context, cipher, nil, key.bytes, nonce, encrypts ? 1 : 0) == 1
    else { return nil }
    var written: Int32 = 0
    // Key wrap's output is a block longer than its input, GCM's is not.
    var output = [UInt8](repeating: 0, count: input.count + 16)
    guard headerCount == 0 || EVP_CipherUpdate(context, nil, &written, header, headerCount) == 1
    else { return nil }
    written = 0
    guard count == 0 || EVP_CipherUpdate(context, &output, &written, input, count) == 1 else {
      return nil
    }
    output.removeLast(output.count - Int(written))
    guard isGCM else { return output }
    let tagCount = Int32(tagLength)
    if !encrypts, EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, tagCount, &tag) != 1 {
      return nil
    }
    var rest = [UInt8](repeating: 0, count: 16)
    guard EVP_CipherFinal_ex(context, &rest, &written) == 1 else { return nil }
    if encrypts, EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, tagCount, &tag) != 1 {
      return nil
    }
    return output
  }
}
