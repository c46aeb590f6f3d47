import FoundationEssentials
import SystemPackage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The file system as the phone's storage needs it: whole files, for their owner only.
enum PhoneFiles {
  /// The file's bytes; nil when there is none.
  static func read(_ path: String) throws(PhoneStorageError) -> [UInt8]? {
    do {
      return Array(try Data(contentsOf: URL(filePath: path)))
    } catch {
      if let error = error as? CocoaError, error.code == .fileReadNoSuchFile { return nil }
      throw unusable(path, error)
    }
  }

  /// Writes the whole file or nothing: a temporary file beside it, synced, then renamed. A kill or
  /// a full disk leaves the last version, a power cut that or this one. (Foundation syncs each
  /// time, for some milliseconds. Without it a power cut could leave an empty file, which would
  /// cost the phone its memory.) The directory keeps everybody else out, so the moment until the
  /// mode is set is no gap.
  static func write(_ bytes: [UInt8], to path: String) throws(PhoneStorageError) {
    do {
      try Data(bytes).write(to: URL(filePath: path), options: .atomic)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    } catch {
      throw unusable(path, error)
    }
  }

  /// Removes a file; one that is not there is no problem.
  static func remove(_ path: String) throws(PhoneStorageError) {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      if let error = error as? CocoaError, error.code == .fileNoSuchFile { return }
      throw unusable(path, error)
    }
  }

  /// Makes a directory for its owner only; one that is there is closed to everybody else.
  static func makePrivateDirectory(_ path: String) throws(PhoneStorageError) {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
    } catch {
      throw unusable(path, error)
    }
  }

  /// The names in a directory, sorted; none if there is no directory.
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

  /// The system's own words when it has any.
  private static func reason(_ error: any Error) -> String {
    guard let error = error as? CocoaError else { return "\(error)" }
    guard let cause = error.underlying as? POSIXError else {
      return "file error \(error.code.rawValue)"
    }
    return "\(Errno(rawValue: cause.code.rawValue))"
  }
}

/// An app's name as a file's name. Letters, digits, dots, hyphens and underscores stand for
/// themselves; every other byte, and a dot at the beginning, is `%` and two hexadecimal digits. So
/// no name leads out of the directory, and no two names lead to one file.
enum ArchiveName {
  static let suffix = ".archive"
  /// Bytes of a name as it is written: with the suffix and a temporary file's name below the 255
  /// that file systems take.
  static let most = 200

  /// Throws `name`.
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

  /// The app whose archive lies in a file of that name; nil for any other file.
  static func app(of file: String) -> String? {
    guard file.hasSuffix(suffix) else { return nil }
    var bytes: [UInt8] = []
    var rest = file.utf8.dropLast(suffix.utf8.count)
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      let digits = Substring(rest.prefix(2))
      guard digits.utf8.count == 2, let value = UInt8(digits, radix: 16) else { return nil }
      rest = rest.dropFirst(2)
      bytes.append(value)
    }
    guard let name = String(validating: bytes, as: UTF8.self),
      let expected = try? self.file(of: name), expected == file
    else { return nil }
    return name
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
      UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
