import Foundation

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
      try remove()
      try Schema.makePrivateFile(path)
    } catch {
      throw .unusable(path: path, reason: reason(of: error))
    }
  }

  deinit { try? remove() }

  private func remove() throws {
    for suffix in ["", "-journal", "-wal", "-shm"]
    where FileManager.default.fileExists(atPath: path + suffix) {
      try FileManager.default.removeItem(atPath: path + suffix)
    }
  }

  /// Nobody has the file open any more.
  func finish() throws {
    try FileHandle(forUpdating: URL(fileURLWithPath: path)).synchronize()
    try FileManager.default.moveItem(atPath: path, toPath: destination)
    let directory = URL(fileURLWithPath: destination).deletingLastPathComponent()
    try FileHandle(forReadingFrom: directory).synchronize()
  }
}
