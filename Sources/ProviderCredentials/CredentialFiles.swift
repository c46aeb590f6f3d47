import FoundationEssentials
import RelayStore
import SystemPackage

/// An unusable file or setting of the operator: what is wrong, and what to do.
package enum CredentialFileError: Error, Hashable, Sendable, CustomStringConvertible {
  case file(path: String, problem: String, advice: String)
  case value(name: String, value: String, advice: String)
  /// The system lacks what reading takes; the file may be as good as ever.
  case passing(path: String, problem: String)

  /// One line for standard error.
  package var description: String {
    switch self {
    case .file(let path, let problem, let advice): "\(path): \(problem); \(advice)"
    case .value(let name, let value, let advice): "\(name) \"\(value)\" cannot be used: \(advice)"
    case .passing(let path, let problem): "\(path): cannot be read now: \(problem)"
    }
  }
}

/// Reads and writes the small files of credentials. Blocking: not for event loops.
package enum CredentialFiles {
  /// Readable by the owner only, for secrets.
  package static let privateMode = 0o600
  /// Readable by everyone, for certificates.
  static let publicMode = 0o644

  package static func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: path)
  }

  /// The file's contents, `nil` if there is none.
  package static func read(_ path: String) throws(CredentialFileError) -> [UInt8]? {
    guard exists(path) else { return nil }
    // Opening a pipe waits for somebody who writes to it.
    if let type = try? FilePath(path).stat().type, type != .regular { throw notAFile(path) }
    guard let contents = FileManager.default.contents(atPath: path) else {
      throw unreadable(path)
    }
    return Array(contents)
  }

  private static func unreadable(_ path: String) -> CredentialFileError {
    do {
      try FileDescriptor.open(FilePath(path), .readOnly).close()
      if try FilePath(path).stat().type == .regular {
        // By now there is what was missing.
        return .passing(path: path, problem: "try again")
      }
    } catch let error as Errno {
      let isPassing = [
        .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .ioError, .interrupted,
      ].contains(error)
      if isPassing { return .passing(path: path, problem: error.description) }
    } catch {}
    return notAFile(path)
  }

  private static func notAFile(_ path: String) -> CredentialFileError {
    .file(
      path: path, problem: "cannot be read",
      advice: "check that it is a file and that this user may read it")
  }

  static func readText(_ path: String) throws(CredentialFileError) -> String? {
    guard let bytes = try read(path) else { return nil }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .file(
        path: path, problem: "is not text",
        advice: "PEM is wanted; `openssl` converts DER to it with -inform DER -outform PEM")
    }
    return text
  }

  /// Writes the whole file or nothing, by a temporary file and a rename. The process's mask keeps
  /// others out of both (`PushRelayCommand`); the mode is set last.
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

  /// Makes the directory, for its owner only, unless it exists.
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

  package static func isOpenToOthers(_ path: String) -> Bool {
    guard let mode = permissions(of: path) else { return false }
    return mode & 0o077 != 0
  }

  /// The ids of the user and the group that it belongs to, `nil` if there is none.
  package static func owner(of path: String) -> (user: UInt32, group: UInt32)? {
    (try? FilePath(path).stat()).map { ($0.userID.rawValue, $0.groupID.rawValue) }
  }

  /// The file's permission bits, `nil` if there is none.
  static func permissions(of path: String) -> Int? {
    (try? FilePath(path).stat()).map { Int($0.permissions.rawValue) }
  }

  /// The sorted names in the directory; none if it does not exist.
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
