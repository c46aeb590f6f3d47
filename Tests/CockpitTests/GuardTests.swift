import Foundation
import Testing

@testable import Cockpit

@Suite struct GuardTests {
  @Test func namesAreWithoutPorts() {
    let table = [
      ("localhost:8080", "localhost"), ("LocalHost", "localhost"), ("[::1]:80", "::1"),
      ("[::1]", "::1"), ("127.0.0.1:1", "127.0.0.1"), ("evil.example:8080", "evil.example"),
    ]
    for (authority, name) in table { #expect(OwnPages.name(authority) == name) }
  }

  /// What only begins or ends like a name of ours is none.
  @Test(arguments: [
    "", ":", ":80", "[::1].evil.com", "[::1]evil.com:80", "[::1", "::1", "[localhost]", "[]",
    "localhost:80:x", "localhost:", "localhost:x", "localhost:+80", "localhost:123456",
    "evil.com/localhost", "localhost/", "user@localhost", "localhost,evil.com", "localhost ",
    "localhost\u{338}",
  ])
  func whatIsNoNameIsNoneOfOurs(authority: String) {
    #expect(OwnPages.name(authority) == nil)
  }

  /// What stands in the file is the token: clients send it as it is, without the line's end.
  @Test func aTokenOfTheOperatorsStaysAsItIs() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "token-\(UUID())")
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appending(path: "admin.token").path
    let made = try AdminToken.read(path)
    #expect(made.count == 32)
    #expect(try AdminToken.read(path) == made)
    try Data(" correct horse 1 \n".utf8).write(to: URL(filePath: path))
    #expect(try AdminToken.read(path).count == 32, "too short: a new one")
    try Data(" correct horse battery\n".utf8).write(to: URL(filePath: path))
    #expect(try AdminToken.read(path) == "correct horse battery")
  }
}
