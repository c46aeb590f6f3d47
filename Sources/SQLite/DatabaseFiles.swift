internal import Glibc
internal import SystemPackage

/// Operations on a database's files without SQLite. Errors are the system's (`Errno`).
package enum DatabaseFiles {
  private static let suffixes = ["", "-journal", "-wal", "-shm"]

  /// Creates an empty file that only its owner may read; fails if it exists.
  package static func makePrivate(_ path: String) throws {
    try FileDescriptor.open(
      path, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
      permissions: .ownerReadWrite
    ).close()
  }

  /// The first `byteCount` bytes, or all if there are fewer.
  package static func start(of path: String, byteCount: Int) throws -> [UInt8] {
    let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    return try file.closeAfter { try read(file, byteCount, at: 0) }
  }

  /// Syncs a file's content or a directory's names to disk.
  package static func synchronize(_ path: String) throws {
    let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    try file.closeAfter { try synchronize(file) }
  }

  /// Renames a complete, synced file and syncs the directory; fails if the name is taken.
  package static func rename(_ path: String, to name: String) throws {
    guard access(name, F_OK) != 0 else { throw Errno.fileExists }
    guard Glibc.rename(path, name) == 0 else { throw Errno(rawValue: errno) }
    try synchronize(directory(of: name))
  }

  package static func directory(of path: String) -> String {
    let directory = FilePath(path).removingLastComponent().string
    return directory.isEmpty ? "." : directory
  }

  /// Removes the database's files that exist.
  package static func remove(_ path: String) throws {
    for suffix in suffixes where unlink(path + suffix) != 0 && errno != ENOENT {
      throw Errno(rawValue: errno)
    }
  }

  /// Rewrites the write-ahead log in place and syncs it.
  ///
  /// After a failed sync the kernel marks its pages clean and still shows them, but no later sync
  /// writes them. What SQLite builds on them would be lost in a power cut.
  package static func rewriteLog(of path: String) throws {
    let log: FileDescriptor
    do {
      log = try FileDescriptor.open(path + "-wal", .readWrite, options: .closeOnExec)
    } catch Errno.noSuchFileOrDirectory {
      return
    }
    try log.closeAfter {
      var offset: Int64 = 0
      while true {
        let bytes = try read(log, 1 << 20, at: offset)
        guard !bytes.isEmpty else { break }
        try log.writeAll(toAbsoluteOffset: offset, bytes)
        offset += Int64(bytes.count)
      }
      try synchronize(log)
    }
  }

  private static func read(
    _ file: FileDescriptor, _ byteCount: Int, at offset: Int64
  ) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      while count < byteCount {
        let more = try file.read(
          fromAbsoluteOffset: offset + Int64(count),
          into: UnsafeMutableRawBufferPointer(
            rebasing: UnsafeMutableRawBufferPointer(buffer)[count...]))
        guard more > 0 else { break }
        count += more
      }
    }
  }

  private static func synchronize(_ file: FileDescriptor) throws {
    guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
  }
}
