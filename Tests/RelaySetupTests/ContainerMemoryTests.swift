import Foundation
import Testing

@testable import RelaySetup

@Suite struct ContainerMemoryTests {
  private static let cases: [(group: String, limits: [String: String], found: Int?)] = [
    ("0::/\n", [:], nil), ("0::/\n", ["": "536870912\n"], 512), ("0::/\n", ["": "max\n"], nil),
    ("4:memory:/a\n0::/a/b\n", ["/a": "1073741824\n", "/a/b": "max\n"], 1024),
    ("0::/a/b\n", ["": "max", "/a": "2147483648\n", "/a/b": "1073741824\n"], 1024),
    ("0::/a\n", ["/b": "1073741824\n"], nil), ("4:memory:/a\n", ["/a": "1073741824\n"], nil),
    ("", ["": "1073741824\n"], nil),
  ]

  @Test(arguments: cases) func theLeastLimitAroundTheProcessCounts(
    group: String, limits: [String: String], found: Int?
  ) throws {
    let manager = FileManager.default
    let root = manager.temporaryDirectory.path + "/groups-\(UUID())"
    defer { try? manager.removeItem(atPath: root) }
    for (folder, text) in limits {
      try manager.createDirectory(atPath: root + folder, withIntermediateDirectories: true)
      try text.write(toFile: root + folder + "/memory.max", atomically: true, encoding: .utf8)
    }
    try manager.createDirectory(atPath: root, withIntermediateDirectories: true)
    try group.write(toFile: root + "/group", atomically: true, encoding: .utf8)
    #expect(ContainerMemory.limit(group: root + "/group", root: root) == found)
  }

  @Test func whereThereIsNoGroupThereIsNoLimit() {
    #expect(ContainerMemory.limit(group: "/nonexistent", root: "/nonexistent") == nil)
  }
}
