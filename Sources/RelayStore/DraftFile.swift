import FoundationEssentials
import SQLite

/// A file in the making. It gets its name when it is complete and on disk; what is left of one that
/// never was has another name, and the next one for the same name replaces it.
final class DraftFile: Sendable {
  let destination: String
  let path: String

  /// An empty file that only its owner may read. Refuses to overwrite what has the name already.
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

  /// Nobody has the file open any more.
  func finish() throws {
    try DatabaseFiles.synchronize(path)
    try DatabaseFiles.rename(path, to: destination)
  }
}
