import FoundationEssentials
import SQLite

/// A file in progress, renamed when it is complete and on disk. A leftover has another name and is
/// replaced by the next draft for the same destination.
final class DraftFile: Sendable {
  let destination: String
  let path: String

  /// Creates an empty file that only its owner may read. Refuses an existing destination.
  init(for destination: String) throws(StoreError) {
    guard !FileManager.default.fileExists(atPath: destination) else {
      throw .exists(path: destination)
    }
    self.destination = destination
    path = destination + ".part"
    do {
      try DatabaseFiles.remove(path)
      try DatabaseFiles.makePrivate(path)
    } catch {
      throw .unusable(path: path, reason: reason(of: error))
    }
  }

  deinit { try? DatabaseFiles.remove(path) }

  /// All connections to the file must be closed.
  func finish() throws {
    try DatabaseFiles.synchronize(path)
    try DatabaseFiles.rename(path, to: destination)
  }
}
