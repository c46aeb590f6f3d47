import Foundation

/// The checkout that these tests were built from, as files to read.
enum Repository {
  /// A Swift file: where it is and what it says.
  struct SwiftFile {
    /// From the repository's root, with slashes: `Sources/RelayCore/Shard.swift`.
    let path: String
    let text: String

    /// The target it belongs to, for files under `Sources/`.
    var target: String? {
      let parts = path.split(separator: "/")
      return parts.count > 2 && parts[0] == "Sources" ? String(parts[1]) : nil
    }
  }

  /// Three levels above this file. The tests run where they were built, so the path holds.
  static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Every Swift file that is ours, sorted by path. Folders that do not exist count as empty.
  static func swiftFiles() throws -> [SwiftFile] {
    let inFolders = ["Sources", "Tests", "benchmarks/Sources"].flatMap(paths(under:))
    return try (inFolders + ["Package.swift", "benchmarks/Package.swift"])
      .filter { $0.hasSuffix(".swift") && exists($0) }
      .map { SwiftFile(path: $0, text: try text(of: $0)) }
  }

  /// The Swift files of the shipped targets.
  static func sources() throws -> [SwiftFile] {
    try swiftFiles().filter { $0.target != nil }
  }

  /// The names of the targets' folders under `Sources/`.
  static func targets() -> [String] {
    names(in: "Sources").filter { !paths(under: "Sources/\($0)").isEmpty }
  }

  /// The names of the files and folders in a folder, sorted, hidden ones left out.
  static func names(in folder: String) -> [String] {
    let names = try? FileManager.default.contentsOfDirectory(atPath: absolute(folder))
    return (names ?? []).filter { !$0.hasPrefix(".") }.sorted()
  }

  static func text(of path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  static func bytes(of path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: root.appending(path: path)))
  }

  static func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: absolute(path))
  }

  private static func paths(under folder: String) -> [String] {
    let inside = try? FileManager.default.subpathsOfDirectory(atPath: absolute(folder))
    return (inside ?? []).filter { !$0.hasPrefix(".") && !$0.contains("/.") }
      .map { "\(folder)/\($0)" }.sorted()
  }

  private static func absolute(_ path: String) -> String {
    root.appending(path: path).path(percentEncoded: false)
  }
}
