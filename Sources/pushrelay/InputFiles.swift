import Dispatch
import HTTP2
import ProviderCredentials
import RelayServer

enum StandardInput {
  /// Reads a file, or standard input for `-`; throws with a hint to what it should be.
  static func payload(_ file: String, _ hint: String) throws -> [UInt8] {
    let path = file == "-" ? nil : file
    guard let bytes = SystemResources.readToEnd(path, limitBytes: 1 << 20) else {
      throw CommandError("\(file) cannot be read: name \(hint), or - for stdin")
    }
    return bytes
  }

  /// Lines as they arrive, on a thread of their own: a terminal can only be read by blocking.
  static func lines() -> AsyncStream<String> {
    let (lines, feed) = AsyncStream.makeStream(of: String.self)
    DispatchQueue(label: "pushrelay.standard-input").async {
      while let line = readLine() { feed.yield(line) }
      feed.finish()
    }
    return lines
  }
}

enum PrivateFile {
  static func read(_ path: String) -> [UInt8]? { SystemResources.readToEnd(path) }

  /// Reads a file, or throws with a hint to what it should be.
  static func read(
    _ path: String, limitBytes: Int = 1 << 26, else hint: String
  ) throws -> [UInt8] {
    guard let bytes = SystemResources.readToEnd(path, limitBytes: limitBytes) else {
      throw CommandError("\(path) cannot be read: \(hint)")
    }
    guard bytes.count <= limitBytes else {
      throw CommandError("\(path) has more than \(limitBytes >> 20) MiB: \(hint)")
    }
    return bytes
  }

  /// Writes the whole file with mode 0600, its directory with 0700.
  static func write(_ bytes: [UInt8], to path: String, mode: Int = 0o600) throws {
    if let slash = path.lastIndex(of: "/"), slash > path.startIndex {
      try CredentialFiles.makePrivateDirectory(String(path[..<slash]))
    }
    try CredentialFiles.write(bytes, to: path, mode: mode)
  }
}
