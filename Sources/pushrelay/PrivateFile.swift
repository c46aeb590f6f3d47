import FoundationEssentials
import ProviderCredentials
import RelayServer

enum PrivateFile {
  static func read(_ path: String) -> [UInt8]? {
    FileManager.default.contents(atPath: path).map(Array.init)
  }

  /// Reads a file, or throws with a hint to what it should be.
  static func read(_ path: String, else hint: String) throws -> [UInt8] {
    guard let bytes = read(path) else { throw CommandError("\(path) cannot be read: \(hint)") }
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
