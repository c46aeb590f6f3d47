import TLS

/// A file sealed with AES-GCM (256 bits, NIST SP 800-38D):
///
/// ```
/// "PRPA" or "PRPM"                        an app's state archive, a phone's memory
/// format                                  one byte, 1
/// length, name                            one byte, then the app's name; none for a memory
/// nonce, ciphertext, tag                  12 bytes, as many as sealed, 16 bytes
/// ```
/// Everything before the nonce is authenticated, so one app's archive cannot pass for another's.
/// Each sealing uses a new random nonce.
enum SealedFile {
  enum Kind: String, CaseIterable {
    case archive = "PRPA"
    case memory = "PRPM"
  }

  static let format: UInt8 = 1

  static func isOne(_ bytes: [UInt8], _ kind: Kind) -> Bool {
    bytes.starts(with: kind.rawValue.utf8)
  }

  static func seal(
    _ content: [UInt8], _ kind: Kind, name: String = "", under key: SymmetricKey
  ) throws(PhoneStorageError) -> [UInt8] {
    let header = try header(kind, name)
    do {
      return header + (try AES.seal(content, authenticating: header, under: key))
    } catch {
      throw .keys(problem: "\(error)")
    }
  }

  /// `advice` says what to do if the file cannot be opened.
  static func open(
    _ bytes: [UInt8], _ kind: Kind, under key: SymmetricKey, path: String, advice: String
  ) throws(PhoneStorageError) -> (name: String, content: [UInt8]) {
    func damaged(_ problem: String) -> PhoneStorageError {
      .damaged(path: path, problem: problem, advice: advice)
    }
    let start = kind.rawValue.utf8.count
    guard isOne(bytes, kind), bytes.count >= start + 2 else {
      throw damaged("is not what its name says: \(kind.rawValue) is not at its beginning")
    }
    guard bytes[start] == format else { throw .unknownFormat(path: path, found: Int(bytes[start])) }
    let end = start + 2 + Int(bytes[start + 1])
    guard bytes.count >= end, let name = String(validating: bytes[start + 2..<end], as: UTF8.self)
    else { throw damaged("ends too early, or has no name in it") }
    let content: [UInt8]?
    do {
      content = try AES.open(bytes[end...], authenticating: Array(bytes[..<end]), under: key)
    } catch {
      throw .keys(problem: "\(error)")
    }
    guard let content else { throw damaged("was changed, cut off, or sealed under another key") }
    return (name, content)
  }

  private static func header(_ kind: Kind, _ name: String) throws(PhoneStorageError) -> [UInt8] {
    guard let length = UInt8(exactly: name.utf8.count) else { throw .name(name) }
    return Array(kind.rawValue.utf8) + [format, length] + Array(name.utf8)
  }
}
