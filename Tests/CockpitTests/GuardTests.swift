import Testing

@testable import Cockpit

@Suite struct GuardTests {
  @Test func namesAreWithoutPorts() {
    let table = [
      ("localhost:8080", "localhost"), ("LocalHost", "localhost"), ("[::1]:80", "::1"),
      ("127.0.0.1:1", "127.0.0.1"), ("evil.example:8080", "evil.example"), ("", ""),
    ]
    for (authority, name) in table { #expect(Guard.name(authority) == name) }
  }
}
