import FoundationEssentials
import Glibc
import Primitives
import SystemPackage

/// File access for the phone's storage: whole files, private to their owner.
enum PhoneFiles {
  /// Returns nil if there is no file.
  static func read(_ path: String) throws(PhoneStorageError) -> [UInt8]? {
    do {
      return Array(try Data(contentsOf: URL(filePath: path)))
    } catch {
      if let error = error as? CocoaError, error.code == .fileReadNoSuchFile { return nil }
      throw unusable(path, error)
    }
  }

  /// Writes atomically: a synced temporary file is renamed. A kill or a full disk leaves the old
  /// version, a power cut the old or the new. (Foundation syncs each time, for some milliseconds;
  /// without that a power cut could leave an empty file and cost the phone its memory.) The
  /// directory is private, so the moment before the mode is set is no gap.
  static func write(_ bytes: [UInt8], to path: String) throws(PhoneStorageError) {
    do {
      try Data(bytes).write(to: URL(filePath: path), options: .atomic)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    } catch {
      throw unusable(path, error)
    }
  }

  /// A missing file is no error.
  static func remove(_ path: String) throws(PhoneStorageError) {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      if let error = error as? CocoaError, error.code == .fileNoSuchFile { return }
      throw unusable(path, error)
    }
  }

  /// Also closes an existing directory to others.
  static func makePrivateDirectory(_ path: String) throws(PhoneStorageError) {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
    } catch {
      throw unusable(path, error)
    }
  }

  /// Sorted; empty if there is no directory.
  static func names(in path: String) throws(PhoneStorageError) -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    } catch {
      if let error = error as? CocoaError, error.code == .fileReadNoSuchFile { return [] }
      throw unusable(path, error)
    }
  }

  private static func unusable(_ path: String, _ error: any Error) -> PhoneStorageError {
    .unusable(path: path, reason: reason(error))
  }

  private static func reason(_ error: any Error) -> String {
    guard let error = error as? CocoaError else { return "\(error)" }
    guard let cause = error.underlying as? POSIXError else {
      return "file error \(error.code.rawValue)"
    }
    return "\(Errno(rawValue: cause.code.rawValue))"
  }
}

/// An app's name as a file name. Every byte but letters, digits, `.`, `-` and `_`, and a leading
/// dot, becomes `%` and two hexadecimal digits, so that names are unique and stay in the directory.
enum ArchiveName {
  static let suffix = ".archive"
  /// Bytes of the encoded name: with the suffix of a temporary file, below the usual 255.
  static let most = 200

  static func file(of app: String) throws(PhoneStorageError) -> String {
    var name = ""
    for (place, byte) in app.utf8.enumerated() {
      if isPlain(byte), place > 0 || byte != UInt8(ascii: ".") {
        name.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        name += byte < 16 ? "%0\(digits)" : "%\(digits)"
      }
    }
    guard (1...most).contains(name.utf8.count) else { throw .name(app) }
    return name + suffix
  }

  static func isPlain(_ byte: UInt8) -> Bool {
    byte.isLetterOrDigit || ".-_".utf8.contains(byte)
  }
}
