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
}
