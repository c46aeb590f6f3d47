import Foundation
import Primitives

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

  /// Closing it gives the lock back.
  private let file: FileHandle

  /// Takes the lock, or says who has it.
  package init(directory: String) throws(StoreError) {
    try Self.makeDirectory(directory)
    let path = directory + "/" + Self.fileName
    do {
      // Two that start at once may both try to make it; one is refused and opens the other's.
      try? Data().write(to: URL(fileURLWithPath: path), options: .withoutOverwriting)
      file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    } catch {
      throw .unusable(path: path, reason: reason(of: error))
    }
    guard flock(file.fileDescriptor, LOCK_EX | LOCK_NB) == 0 else {
      let text = (try? file.readToEnd()).flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) }
      let lines = (text ?? "").split(separator: "\n")
      guard lines.count >= 2 else { throw .locked(directory: directory, owner: "just starting") }
      throw .locked(directory: directory, owner: "process \(lines[0]), started \(lines[1])")
    }
    let now = Date.now.formatted(.iso8601)
    do {
      try file.truncate(atOffset: 0)
      try file.write(
        contentsOf: Data("\(ProcessInfo.processInfo.processIdentifier)\n\(now)\n".utf8))
    } catch {
      throw .unusable(path: path, reason: reason(of: error))
    }
  }
}

extension StateLock {
  /// Gives it back, also where a program that is being started has the file for a moment still.
  package func release() {
    flock(file.fileDescriptor, LOCK_UN)
    try? file.close()
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

/// The short form of a file error: the system's own words when it has any.
func reason(of error: any Error) -> String {
  let error = error as NSError
  if let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError { return reason(of: cause) }
  if error.domain == NSPOSIXErrorDomain, let code = POSIXErrorCode(rawValue: Int32(error.code)) {
    return POSIXError(code).localizedDescription
  }
  return error.localizedDescription
}
