import FoundationEssentials
import TLS

/// The keys of one phone, stored in `keybag.json`: the key of protection class `none` in the clear,
/// and the key of class `complete` wrapped under the passcode (Apple, "Encrypting Your App's
/// Files").
///
/// This simulates data protection and detects damage. It does not resist an attacker with the
/// files: four digits are guessed in minutes, and the key a real phone keeps in its processor is
/// missing.
struct Keybag: Equatable, Sendable {
  static let fileName = "keybag.json"
  static let format = 1

  /// PBKDF2 rounds for a new key, and the minimum in a file (OWASP's advice for PBKDF2 with
  /// SHA-512, 2023). An unlock takes some 80 ms of processor time; more would not help a four-digit
  /// passcode.
  static let rounds = 210_000
  /// With more rounds an unlock would look like a hang.
  static let allowedRounds = rounds...10_000_000

  let deviceKey: SymmetricKey
  /// Nil before the first unlock ever, which chooses the passcode.
  private var wrapped: WrappedKey?

  static let advice =
    "without its keys nothing of this phone can be read: put the file back, or remove the phone's "
    + "directory to begin anew"

  init() { deviceKey = SymmetricKey() }

  var hasPasscode: Bool { wrapped != nil }

  /// Makes the class key and wraps it under a new passcode.
  mutating func choose(passcode: String) throws(PhoneStorageError) -> SymmetricKey {
    let classKey = SymmetricKey()
    var random = SystemRandomNumberGenerator()
    let salt: [UInt8] = (0..<16).map { _ in random.next() }
    do {
      let passcodeKey = try Self.derive(passcode, salt, Self.rounds)
      wrapped = WrappedKey(
        salt: Data(salt), rounds: Self.rounds,
        key: Data(try AES.wrap(classKey, under: passcodeKey)))
    } catch {
      throw .keys(problem: "\(error)")
    }
    return classKey
  }

  /// Throws `wrongPasscode`.
  func classKey(passcode: String, path: String) throws(PhoneStorageError) -> SymmetricKey {
    guard let wrapped else { throw .wrongPasscode(keybag: path) }
    let classKey: SymmetricKey?
    do {
      let passcodeKey = try Self.derive(passcode, Array(wrapped.salt), wrapped.rounds)
      classKey = try AES.unwrap(Array(wrapped.key), under: passcodeKey)
    } catch {
      throw .keys(problem: "\(error)")
    }
    guard let classKey else { throw .wrongPasscode(keybag: path) }
    return classKey
  }

  private static func derive(
    _ passcode: String, _ salt: [UInt8], _ rounds: Int
  ) throws(TLSError) -> SymmetricKey {
    try SymmetricKey(passphrase: Array(passcode.utf8), salt: salt, rounds: rounds)
  }
}

// MARK: As a file

extension Keybag {
  private struct WrappedKey: Codable, Equatable, Sendable {
    var salt: Data
    var rounds: Int
    var key: Data
  }

  /// `check` detects damage; else a changed byte of the wrapped key looks like a wrong passcode.
  private struct Content: Codable {
    var format = Keybag.format
    var deviceKey: Data
    var complete: WrappedKey?
    var check: Data

    func isWhole(under key: SymmetricKey) -> Bool {
      HMACSHA256.isValid(Array(check), for: Content.checked(complete), under: key)
    }

    static func checked(_ complete: WrappedKey?) -> [UInt8] {
      guard let complete else { return Array("\(Keybag.format)".utf8) }
      return Array("\(Keybag.format) \(complete.rounds) ".utf8) + Array(complete.salt)
        + Array(complete.key)
    }
  }

  func encoded() throws(PhoneStorageError) -> [UInt8] {
    let check = HMACSHA256.code(for: Content.checked(wrapped), under: deviceKey)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    do {
      let content = Content(deviceKey: Data(deviceKey.bytes), complete: wrapped, check: Data(check))
      return Array(try encoder.encode(content)) + [UInt8(ascii: "\n")]
    } catch {
      throw .keys(problem: "\(error)")
    }
  }

  init(_ bytes: [UInt8], path: String) throws(PhoneStorageError) {
    func damaged(_ problem: String) -> PhoneStorageError {
      .damaged(path: path, problem: problem, advice: Self.advice)
    }
    struct Format: Decodable {
      var format: Int
    }
    let decoder = JSONDecoder()
    guard let format = try? decoder.decode(Format.self, from: Data(bytes)).format else {
      throw damaged("is not a key bag")
    }
    guard format == Self.format else { throw .unknownFormat(path: path, found: format) }
    guard let content = try? decoder.decode(Content.self, from: Data(bytes)) else {
      throw damaged("is not a whole key bag")
    }
    let rounds = content.complete?.rounds ?? Self.rounds
    guard let key = SymmetricKey(bytes: Array(content.deviceKey)), content.isWhole(under: key),
      Self.allowedRounds.contains(rounds)
    else { throw damaged("was changed") }
    deviceKey = key
    wrapped = content.complete
  }
}
