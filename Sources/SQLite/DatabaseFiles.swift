internal import Glibc
internal import SystemPackage

/// What is done to a database's files without SQLite. Errors are the system's (`Errno`).
package enum DatabaseFiles {
  /// The endings of all that belongs to one database.
  private static let suffixes = ["", "-journal", "-wal", "-shm"]

  /// An empty file that only its owner may read; fails where there is one.
  package static func makePrivate(_ path: String) throws {
    try FileDescriptor.open(
      path, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
      permissions: .ownerReadWrite
    ).close()
  }

  /// The first bytes: all of the file, if it has no more.
  package static func start(of path: String, byteCount: Int) throws -> [UInt8] {
    let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    return try file.closeAfter { try read(file, byteCount, at: 0) }
  }

  /// What is written to the file, or the names in the directory, is on disk when this returns.
  package static func synchronize(_ path: String) throws {
    let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    try file.closeAfter { try synchronize(file) }
  }

  /// Gives a file that is complete and on disk its name, which is on disk when this returns; fails
  /// where something has the name.
  package static func rename(_ path: String, to name: String) throws {
    guard access(name, F_OK) != 0 else { throw Errno.fileExists }
    guard Glibc.rename(path, name) == 0 else { throw Errno(rawValue: errno) }
    try synchronize(directory(of: name))
  }

  /// The directory that a file is in, as a path to go by.
  package static func directory(of path: String) -> String {
    let directory = FilePath(path).removingLastComponent().string
    return directory.isEmpty ? "." : directory
  }

  /// Removes all files of a database that are there.
  package static func remove(_ path: String) throws {
    for suffix in suffixes where unlink(path + suffix) != 0 && errno != ENOENT {
      throw Errno(rawValue: errno)
    }
  }

  /// Writes the write-ahead log over itself and syncs it.
  ///
  /// After a sync that failed, the kernel calls its pages clean and shows them, but they are not on
  /// disk and no later sync brings them there. SQLite would believe what it reads, and what it does
  /// with that would be lost, or worse half lost, in a power cut. Written again, they are on disk.
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
