import Testing

@testable import DeviceModel

@Suite struct WebAddressTests {
  @Test(
    arguments: [
      ("http://a", false, "a", 80),
      ("HTTPS://Files.Example:8443/a/b?c=d&e#f", true, "files.example", 8443),
      ("http://[::1]:80/", false, "[::1]", 80), ("https://[FE80::1]", true, "[fe80::1]", 443),
      ("https://10.0.0.1:65535?q=http://x@y", true, "10.0.0.1", 65535),
      ("http://a_b-c.example/%20", false, "a_b-c.example", 80),
    ] as [(String, Bool, String, UInt16)])
  func good(text: String, isSecure: Bool, host: String, port: UInt16) throws {
    let address = try WebAddress(text)
    #expect(address.text == text && address.isSecure == isSecure)
    #expect(address.host == host && address.port == port)
  }

  @Test(arguments: [
    ("", WebAddressError.scheme), ("/a", .scheme), ("ftp://a", .scheme), ("http:/a", .scheme),
    ("http", .scheme), ("https:/", .scheme), ("http+unix://a/b", .scheme), (" http://a", .scheme),
    ("http://a/b c", .characters), ("http://a/\n", .characters), ("http://ä/", .characters),
    ("http://a\0", .characters), ("http://b:c@a/", .user), ("http://@a", .user),
    ("http://", .host), ("https:///a", .host), ("http://:80/", .host), ("http://[]/", .host),
    ("http://[::1/", .host), ("http://[fe80::1%25lo]/", .host), ("http://a%62/", .host),
    ("http://a\\b", .characters), ("http://[a.b]]/", .port), ("http://a/|b/", .characters),
    ("http://a~b/", .host),
    ("http://a:/", .port), ("http://a:0/", .port), ("http://a:65536/", .port),
    ("http://a:+80/", .port), ("http://a:-1/", .port), ("http://a:8 0/", .characters),
    ("http://a:80:90/", .port), ("http://[::1]80/", .port),
    ("http://a:99999999999999999999/", .port),
  ])
  func bad(text: String, problem: WebAddressError) {
    #expect(throws: problem) { try WebAddress(text) }
  }

  @Test func origins() throws {
    let own = try WebAddress("https://files.example/a")
    for (text, isSame) in [
      ("https://FILES.example:443/b?c", true), ("http://files.example/a", false),
      ("https://files.example:8443/a", false), ("https://other.example/a", false),
      ("http://files.example:443/a", false),
    ] {
      #expect(own.hasOrigin(of: try WebAddress(text)) == isSame, "\(text)")
    }
  }

  @Test func eachProblemHasItsText() {
    #expect(
      Set(WebAddressError.allCases.map { "\($0)" }).count == WebAddressError.allCases.count)
  }
}
