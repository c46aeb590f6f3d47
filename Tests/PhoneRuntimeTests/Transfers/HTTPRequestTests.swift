import DeviceModel
import NIOHTTP1
import Testing

@testable import PhoneRuntime

@Suite struct HTTPRequestTests {
  @Test(arguments: [
    ("http://files.example", "files.example", "/"),
    ("http://files.example:80/a", "files.example", "/a"),
    ("https://Files.example:443/a?b=c", "files.example", "/a?b=c"),
    ("https://files.example:80/a#part", "files.example:80", "/a"),
    ("http://files.example:8080?b", "files.example:8080", "/?b"),
    ("http://[::1]:8080/a//b/", "[::1]:8080", "/a//b/"),
    ("http://files.example#part", "files.example", "/"),
  ])
  func headsNameHostAndPath(address: String, host: String, target: String) throws {
    var request = HTTPRequest(address: try WebAddress(address), method: .GET)
    request.headers.add(name: "Range", value: "bytes=5-")
    let head = request.head(contentLength: nil)
    #expect(head.uri == target && head.version == .http1_1)
    #expect(
      head.headers == HTTPHeaders([("Host", host), ("Range", "bytes=5-"), ("Connection", "close")]))
    #expect(request.head(contentLength: 0).headers["Content-Length"] == ["0"])
  }

  @Test(arguments: [
    ("Bearer key", true), ("Basic a2V5=", true), ("k\té", true), ("", true),
    ("key\r\nX-Other: 1", false), ("key\n", false), ("k\0", false), ("k\u{7F}", false),
  ])
  func whatAHeaderCannotCarry(value: String, isSendable: Bool) throws {
    var request = HTTPRequest(address: try WebAddress("http://files.example"), method: .GET)
    request.headers.add(name: "Authorization", value: value)
    #expect(request.isSendable == isSendable)
  }
}
