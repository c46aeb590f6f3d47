import FoundationEssentials
import RelayStore
import SystemPackage

/// Something is wrong with a file or a setting of the operator: what, and what to do about it.
package enum CredentialFileError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A file or directory cannot be used as it is.
  case file(path: String, problem: String, advice: String)
  /// A value given by the operator cannot be used.
  case value(name: String, value: String, advice: String)

  /// One line for standard error.
  package var description: String {
    switch self {
    case .file(let path, let problem, let advice): "\(path): \(problem); \(advice)"
    case .value(let name, let value, let advice): "\(name) \"\(value)\" cannot be used: \(advice)"
    }
  }
}

/// Reading and writing the small files that hold credentials. Blocking: not for event loops.
package enum CredentialFiles {
  /// Mode of files with secrets in them: their owner's only.
  package static let privateMode = 0o600
  /// Mode of files that anybody may read, such as certificates.
  static let publicMode = 0o644

  /// Whether there is something at `path`.
  package static func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: path)
  }

  /// The file's contents, `nil` if there is none.
  package static func read(_ path: String) throws(CredentialFileError) -> [UInt8]? {
    guard exists(path) else { return nil }
    guard let contents = FileManager.default.contents(atPath: path) else {
      throw .file(
        path: path, problem: "cannot be read",
        advice: "check that it is a file and that this user may read it")
    }
    return Array(contents)
  }

  /// The file's contents as text, `nil` if there is none.
  static func readText(_ path: String) throws(CredentialFileError) -> String? {
    guard let bytes = try read(path) else { return nil }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .file(
        path: path, problem: "is not text",
        advice: "PEM is wanted; `openssl` converts DER to it with -inform DER -outform PEM")
    }
    return text
  }

  /// Writes the whole file or nothing: a temporary file, then a rename. A reader never sees half of
  /// it. Both are made by the process's mask, which keeps others out (`PushRelayCommand`); the mode
  /// asked for comes last.
  package static func write(
    _ bytes: [UInt8], to path: String, mode: Int = privateMode
  ) throws(CredentialFileError) {
    let written = FileManager.default.createFile(
      atPath: path, contents: Data(bytes), attributes: [.posixPermissions: mode])
    guard written else {
      throw .file(
        path: path, problem: "cannot be written",
        advice: "check that its directory exists, has space and may be written by this user")
    }
  }

  /// Makes the directory, for its owner only, unless it is there.
  package static func makePrivateDirectory(_ path: String) throws(CredentialFileError) {
    var isDirectory = false
    if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) {
      guard isDirectory else {
        throw .file(
          path: path, problem: "is not a directory", advice: "move it away or name another one")
      }
      return
    }
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw .file(
        path: path, problem: "cannot be made",
        advice: "check that the directory above it may be written by this user")
    }
  }

  /// Whether users other than the owner may read or write the file.
  package static func isOpenToOthers(_ path: String) -> Bool {
    guard let mode = permissions(of: path) else { return false }
    return mode & 0o077 != 0
  }

  /// The file's permission bits, `nil` if there is none.
  static func permissions(of path: String) -> Int? {
    (try? FilePath(path).stat()).map { Int($0.permissions.rawValue) }
  }

  /// The names in the directory, sorted; none if there is no directory.
  static func names(inDirectory path: String) throws(CredentialFileError) -> [String] {
    guard exists(path) else { return [] }
    do {
      return try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    } catch {
      throw .file(
        path: path, problem: "cannot be listed",
        advice: "check that it is a directory and that this user may read it")
    }
  }
}
