import FoundationEssentials

/// Small files that only their owner may read.
enum PrivateFile {
  /// The contents; nil when there is no such file.
  static func read(_ path: String) -> [UInt8]? {
    FileManager.default.contents(atPath: path).map(Array.init)
  }

  /// Writes the whole file with mode 0600, its directory with 0700.
  static func write(_ bytes: [UInt8], to path: String, mode: Int = 0o600) throws {
    if let slash = path.lastIndex(of: "/"), slash > path.startIndex {
      try? FileManager.default.createDirectory(
        atPath: String(path[..<slash]), withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
    }
    let written = FileManager.default.createFile(
      atPath: path, contents: Data(bytes), attributes: [.posixPermissions: mode])
    guard written else {
      throw CommandError(
        "\(path) cannot be written: check that its directory may be written by this user")
    }
  }
}
