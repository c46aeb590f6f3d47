import FoundationEssentials
import Glibc
import Primitives
import Synchronization
import SystemPackage

/// A lock on a file, which names its holder. The kernel releases it when the process ends.
package final class FileLock: Sendable {
  package enum Refusal: Error {
    case held(by: String)
    case unusable(any Error)
  }

  /// Closing it releases the lock; nil afterwards.
  private let file: Mutex<FileDescriptor?>

  /// Locks the file, creates it if needed, readable only by its owner, and writes `text` into it.
  ///
  /// - Parameter waits: until its holder, who has it for a moment only, is done.
  package init(_ path: String, saying text: String, waits: Bool = false) throws(Refusal) {
    let file: FileDescriptor
    do {
      file = try FileDescriptor.open(
        FilePath(path), .readWrite, options: [.create, .closeOnExec, .noFollow],
        permissions: .ownerReadWrite)
    } catch {
      throw .unusable(error)
    }
    self.file = Mutex(file)
    guard flock(file.rawValue, waits ? LOCK_EX : LOCK_EX | LOCK_NB) == 0 else {
      let said = FileManager.default.contents(atPath: path) ?? Data()
      throw .held(by: String(decoding: said, as: UTF8.self))
    }
    do {
      try file.resize(to: 0)
      try file.writeAll(text.utf8)
    } catch {
      throw .unusable(error)
    }
  }

  deinit { release() }

  /// Unlocks explicitly, as a child process being started may still have the file open.
  package func release() {
    file.withLock { file in
      guard let open = file.take() else { return }
      flock(open.rawValue, LOCK_UN)
      try? open.close()
    }
  }
}

/// The right to use a state directory: a lock on its `relay.lock`.
package enum StateLock {
  static let fileName = "relay.lock"

  /// Creates the directory if needed and locks it; throws `locked` with the holder.
  package static func acquire(_ directory: String) throws(StoreError) -> FileLock {
    let path = directory + "/" + fileName
    do {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
    } catch {
      throw .unusable(path: directory, reason: reason(of: error))
    }
    let now = Date.now.formatted(.iso8601)
    do throws(FileLock.Refusal) {
      return try FileLock(path, saying: "\(ProcessInfo.processInfo.processIdentifier)\n\(now)\n")
    } catch {
      switch error {
      case .unusable(let error): throw .unusable(path: path, reason: reason(of: error))
      case .held(let text):
        let lines = text.split(separator: "\n")
        throw .locked(
          directory: directory,
          owner: lines.count < 2 ? "just starting" : "process \(lines[0]), started \(lines[1])")
      }
    }
  }
}

/// The system's short message for a file error, if it has one.
func reason(of error: any Error) -> String {
  guard let error = error as? CocoaError else { return "\(error)" }
  guard let cause = error.underlying as? POSIXError else { return "\(error)" }
  return "\(Errno(rawValue: cause.code.rawValue))"
}
