import FoundationEssentials
import Primitives
import Synchronization
import SystemPackage

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The right to use a state directory: a lock on the file `relay.lock` in it, which the kernel
/// takes back when the process ends, however it ends. The file says who holds it; a file that
/// nobody holds is no obstacle.
package final class StateLock: Sendable {
  static let fileName = "relay.lock"

  /// Closing it gives the lock back; nil once that is done.
  private let file: Mutex<FileDescriptor?>

  /// Takes the lock, or says who has it.
  package init(directory: String) throws(StoreError) {
    try Self.makeDirectory(directory)
    let path = directory + "/" + Self.fileName
    do {
      let file = try FileDescriptor.open(
        FilePath(path), .readWrite, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
      self.file = Mutex(file)
      guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else {
        throw StoreError.locked(directory: directory, owner: Self.owner(path))
      }
      try file.resize(to: 0)
      let now = Date.now.formatted(.iso8601)
      try file.writeAll("\(ProcessInfo.processInfo.processIdentifier)\n\(now)\n".utf8)
    } catch let error as StoreError {
      throw error
    } catch {
      throw .unusable(path: path, reason: reason(of: error))
    }
  }

  deinit { release() }

  private static func owner(_ path: String) -> String {
    let text = FileManager.default.contents(atPath: path) ?? Data()
    let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
    return lines.count >= 2 ? "process \(lines[0]), started \(lines[1])" : "just starting"
  }

  /// Gives it back, also where a program that is being started has the file for a moment still.
  package func release() {
    file.withLock { file in
      guard let open = file.take() else { return }
      flock(open.rawValue, LOCK_UN)
      try? open.close()
    }
  }

  private static func makeDirectory(_ path: String) throws(StoreError) {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw .unusable(path: path, reason: reason(of: error))
    }
  }
}

/// The directory that a file is in, as a path to go by.
func directory(of file: FilePath) -> String {
  let directory = file.removingLastComponent().string
  return directory.isEmpty ? "." : directory
}

/// The short form of a file error: the system's own words when it has any.
func reason(of error: any Error) -> String {
  guard let error = error as? CocoaError else { return "\(error)" }
  guard let cause = error.underlying as? POSIXError else { return "\(error)" }
  return "\(Errno(rawValue: cause.code.rawValue))"
}
