import Foundation

/// A directory for one test, removed with the value.
package final class TemporaryDirectory: Sendable {
  package let path: String

  package init() throws {
    path =
      FileManager.default.temporaryDirectory
      .appendingPathComponent("push-relay-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  package func write(_ text: String, to name: String) throws -> String {
    let target = path + "/" + name
    try Data(text.utf8).write(to: URL(fileURLWithPath: target))
    return target
  }

  package func read(_ name: String) throws -> String {
    try String(contentsOf: URL(fileURLWithPath: path + "/" + name), encoding: .utf8)
  }

  package func mode(of name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.posixPermissions] as? Int
  }
}
