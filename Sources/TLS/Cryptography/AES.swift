internal import COpenSSL

/// AES with keys of 256 bits, as authenticated encryption and to wrap other keys.
package enum AES {
  static let nonceLength = 12
  static let tagLength = 16

  // MARK: GCM

  /// Encrypts, under a new random nonce each time, and authenticates that and `header` (AES-GCM,
  /// NIST SP 800-38D): nonce, ciphertext, tag. Throws `library` when there is too much of it.
  package static func seal(
    _ content: [UInt8], authenticating header: [UInt8], under key: SymmetricKey
  ) throws(TLSError) -> [UInt8] {
    var random = SystemRandomNumberGenerator()
    let nonce: [UInt8] = (0..<nonceLength).map { _ in random.next() }
    return try seal(content, authenticating: header, under: key, nonce: nonce)
  }

  /// With that nonce, which must never be used twice with a key.
  static func seal(
    _ content: [UInt8], authenticating header: [UInt8], under key: SymmetricKey, nonce: [UInt8]
  ) throws(TLSError) -> [UInt8] {
    let cipher = try Cipher()
    var ciphertext: [UInt8] = []
    var tag = [UInt8](repeating: 0, count: tagLength)
    guard
      EVP_EncryptInit_ex(cipher.context, EVP_aes_256_gcm(), nil, key.bytes, nonce) == 1,
      cipher.authenticate(header, using: EVP_EncryptUpdate),
      cipher.update(content, into: &ciphertext, using: EVP_EncryptUpdate),
      cipher.finish(using: EVP_EncryptFinal_ex),
      EVP_CIPHER_CTX_ctrl(cipher.context, EVP_CTRL_AEAD_GET_TAG, Int32(tagLength), &tag) == 1
    else { throw .library(ErrorQueue.takeText()) }
    return nonce + ciphertext + tag
  }

  /// The content of what `seal` made; nil if that, the header or the key is another.
  package static func open(
    _ sealed: ArraySlice<UInt8>, authenticating header: [UInt8], under key: SymmetricKey
  ) throws(TLSError) -> [UInt8]? {
    guard sealed.count >= nonceLength + tagLength else { return nil }
    let cipher = try Cipher()
    let nonce = Array(sealed.prefix(nonceLength))
    var tag = Array(sealed.suffix(tagLength))
    let ciphertext = Array(sealed.dropFirst(nonceLength).dropLast(tagLength))
    var content: [UInt8] = []
    let isGenuine =
      EVP_DecryptInit_ex(cipher.context, EVP_aes_256_gcm(), nil, key.bytes, nonce) == 1
      && cipher.authenticate(header, using: EVP_DecryptUpdate)
      && cipher.update(ciphertext, into: &content, using: EVP_DecryptUpdate)
      && EVP_CIPHER_CTX_ctrl(cipher.context, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), &tag) == 1
      && cipher.finish(using: EVP_DecryptFinal_ex)
    ErrorQueue.clear()
    return isGenuine ? content : nil
  }

  // MARK: Key wrap

  /// The key, encrypted under another one (AES Key Wrap, RFC 3394): 40 bytes. The same each time:
  /// keys are random already.
  package static func wrap(
    _ key: SymmetricKey, under wrapping: SymmetricKey
  ) throws(TLSError) -> [UInt8] {
    let cipher = try Cipher()
    EVP_CIPHER_CTX_set_flags(cipher.context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW)
    var wrapped: [UInt8] = []
    guard
      EVP_EncryptInit_ex(cipher.context, EVP_aes_256_wrap(), nil, wrapping.bytes, nil) == 1,
      cipher.update(key.bytes, into: &wrapped, using: EVP_EncryptUpdate)
    else { throw .library(ErrorQueue.takeText()) }
    return wrapped
  }

  /// The key that was wrapped; nil if the bytes or the other key are not those: unwrapping checks
  /// itself.
  package static func unwrap(
    _ wrapped: [UInt8], under wrapping: SymmetricKey
  ) throws(TLSError) -> SymmetricKey? {
    // OpenSSL takes an empty input for the end of one.
    guard wrapped.count == SymmetricKey.length + 8 else { return nil }
    let cipher = try Cipher()
    EVP_CIPHER_CTX_set_flags(cipher.context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW)
    var key: [UInt8] = []
    let isGenuine =
      EVP_DecryptInit_ex(cipher.context, EVP_aes_256_wrap(), nil, wrapping.bytes, nil) == 1
      && cipher.update(wrapped, into: &key, using: EVP_DecryptUpdate)
    ErrorQueue.clear()
    return isGenuine ? SymmetricKey(bytes: key) : nil
  }
}

/// OpenSSL's state of one encryption or decryption.
private struct Cipher: ~Copyable {
  typealias Update = (
    OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?,
    UnsafePointer<UInt8>?, Int32
  ) -> Int32
  typealias Finish = (
    OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?
  ) -> Int32

  let context: OpaquePointer

  init() throws(TLSError) {
    OpenSSLLibrary.prepare()
    ErrorQueue.clear()
    guard let context = EVP_CIPHER_CTX_new() else { throw .library(ErrorQueue.takeText()) }
    self.context = context
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  /// Takes in what is authenticated only.
  func authenticate(_ header: [UInt8], using update: Update) -> Bool {
    guard let length = Int32(exactly: header.count) else { return false }
    var count: Int32 = 0
    return header.isEmpty || update(context, nil, &count, header, length) == 1
  }

  /// Appends what becomes of the input; never more than a block longer than that.
  func update(_ input: [UInt8], into output: inout [UInt8], using update: Update) -> Bool {
    guard let length = Int32(exactly: input.count) else { return false }
    guard length > 0 else { return true }
    var isDone = false
    output = [UInt8](unsafeUninitializedCapacity: input.count + 16) { buffer, count in
      var written: Int32 = 0
      isDone = update(context, buffer.baseAddress, &written, input, length) == 1
      count = isDone ? Int(written) : 0
    }
    return isDone
  }

  /// The end of the input. With GCM nothing is left to come out.
  func finish(using finish: Finish) -> Bool {
    var rest = [UInt8](repeating: 0, count: 16)
    var count: Int32 = 0
    return finish(context, &rest, &count) == 1
  }
}
