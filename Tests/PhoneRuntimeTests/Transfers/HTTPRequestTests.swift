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

@Suite struct RedirectTests {
  @Test(arguments: [
    "/there", "there", "?next", "//127.0.0.1:PORT/there", "HTTP://127.0.0.1:PORT/there#part",
  ])
  func followed(location: String) async throws {
    let served = ServedFile(content: sample(100))
    let server = TestServer { request, number in
      let port = request.fields.first(name: "Host")?.split(separator: ":").last ?? ""
      let target = location.replacing("PORT", with: port)
      return number < 4
        ? TestServer.Answer(
          status: "\([301, 302, 303, 308][number]) Moved", fields: [("Location", target)])
        : served.answer(to: request)
    }
    try await Site.with(server) { site in
      var order = site.download("/a/file")
      order.authorization = "Bearer key"
      #expect(await site.end(order) == .finished(bytes: 100))
      #expect(site.server.requests.count == 5)
      // The same server is told again.
      #expect(
        site.server.requests.allSatisfy { $0.fields["Authorization"] == ["Bearer key"] })
    }
  }

  /// What the app provides is for its own server.
  @Test func credentialsStayWithTheirServer() async throws {
    let served = ServedFile(content: sample(100))
    let other = TestServer { request, _ in served.answer(to: request) }
    try await other.start()
    let target = other.url
    let server = TestServer { _, _ in
      TestServer.Answer(status: "302 Found", fields: [("Location", "\(target)/b")])
    }
    try await Site.with(server) { site in
      var order = site.download()
      order.authorization = "Bearer key"
      #expect(await site.end(order) == .finished(bytes: 100))
      #expect(site.server.requests.first?.fields["Authorization"] == ["Bearer key"])
      #expect(other.requests.map { $0.fields["Authorization"] } == [[]])
    }
    await other.stop()
  }

  @Test(arguments: [
    ("/file", "on and on, more than 10 times", 11),
    ("", "begins with http:// or https:// is wanted", 1),
    ("ftp://files.example/a", "begins with http:// or https:// is wanted", 1),
    ("file:///etc/hostname", "begins with http:// or https:// is wanted", 1),
    ("http://", "has no host", 1), ("http://[]/", "has no host", 1),
    ("http://127.0.0.1:99999/", "is no number from 1 to 65535", 1),
    ("//127.0.0.1:99999/", "is no number from 1 to 65535", 1),
    ("http://a:b@127.0.0.1/", "with a name and password", 1),
  ])
  func notFollowed(location: String, reason: String, count: Int) async throws {
    let server = TestServer { _, _ in
      TestServer.Answer(status: "307 Moved", fields: [("Location", location)])
    }
    try await Site.with(server) { site in
      let why = await site.end(site.download())?.reason ?? ""
      #expect(why.contains(reason), "\(why)")
      #expect(site.server.requests.count == count)
    }
  }

  @Test func nowhere() async throws {
    try await Site.with(TestServer { _, _ in TestServer.Answer(status: "302 Found") }) { site in
      #expect(await site.end(site.download())?.reason == "the server answered 302 Found")
    }
  }
}
