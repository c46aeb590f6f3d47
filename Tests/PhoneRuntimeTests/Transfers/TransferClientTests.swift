import Foundation
import NIOHTTP1
import Synchronization
import Testing

@testable import PhoneRuntime

/// What goes wrong, and what then comes of it.
@Suite struct TransferClientTests {
  @Test(arguments: [
    ("404 Not Found", "the server answered 404 Not Found"),
    ("403 Forbidden", "the server answered 403 Forbidden"),
    ("410 Gone", "the server answered 410 Gone"),
    ("416 Range Not Satisfiable", "the server answered 416 Range Not Satisfiable"),
    ("304 Not Modified", "the server answered 304 Not Modified"),
    ("499 \u{7}Strange\tphrase", "the server answered 499 "),
  ])
  func refusals(status: String, reason: String) async throws {
    try await Site.with(TestServer { _, _ in TestServer.Answer(status: status) }) { site in
      let why = await site.end(site.download())?.reason ?? ""
      #expect(why.hasPrefix(reason) || status.hasPrefix("499") && !why.isEmpty, "\(why)")
      #expect(why.unicodeScalars.allSatisfy { $0.value >= 0x20 })
      #expect(site.server.requests.count == 1 && site.names.isEmpty)
    }
  }

  @Test(arguments: ["408 Timeout", "429 Too Many", "500 Error", "503 Busy", "599 Odd"], [0, 3, 4])
  func temporaryTrouble(status: String, times: Int) async throws {
    let served = ServedFile(content: sample(1000))
    let server = TestServer { request, number in
      number < times ? TestServer.Answer(status: status) : served.answer(to: request)
    }
    try await Site.with(server) { site in
      let end = await site.end(site.download())
      #expect(site.server.requests.count == min(times, 3) + 1)
      guard times > 3 else {
        #expect(end == .finished(bytes: 1000) && site.contents() == served.content)
        return
      }
      #expect(end?.reason.hasSuffix(", and so 4 times") == true)
      #expect(site.names.isEmpty)
    }
  }

  /// The app is to be asked; what has come stays for the time after.
  @Test func challenges() async throws {
    let served = ServedFile(content: sample(1000))
    let server = TestServer { request, number in
      if number == 0 {
        var answer = served.answer(to: request)
        (answer.cut, answer.end) = (400, .hold)
        return answer
      }
      return request.fields["Authorization"] == ["Bearer key"]
        ? served.answer(to: request) : TestServer.Answer(status: "401 Unauthorized")
    }
    try await Site.with(server) { site in
      var order = site.download()
      await site.perform(order, until: 400)
      #expect(await site.end(order) == .challenged)
      #expect(site.names == ["file.part", "file.part.json"])
      order.authorization = "Basic wrong"
      #expect(await site.end(order) == .challenged)
      order.authorization = "Bearer key"
      let reports = await site.reports(order)
      #expect(reports.first == .progressed(bytes: 400))
      #expect(reports.last == .finished(bytes: 1000) && site.contents() == served.content)
    }
  }

  @Test func whatIsNoAnswer() async throws {
    // A field beyond what any server needs, and something that is no HTTP at all.
    let fields = [("X-Large", String(repeating: "x", count: 200_000))]
    try await Site.with(TestServer { _, _ in TestServer.Answer(fields: fields) }) { site in
      let why = await site.end(site.download())?.reason ?? ""
      #expect(why.hasPrefix("the answer is no HTTP"), "\(why)")
      #expect(site.server.requests.count == 1)
    }
    let server = TestServer { _, _ in TestServer.Answer(status: "99999999 \r\n\0\0\r\n") }
    try await Site.with(server) { site in
      #expect(await site.end(site.download())?.reason.isEmpty == false)
      #expect(site.names.isEmpty)
    }
  }

  @Test(arguments: [
    "", "file:///etc/hostname", "ftp://127.0.0.1/a", "http://", "http:///a", "https://:1/",
    "http+unix://%2Ftmp%2Fa/b", "http://[::1/a", "http://a b/", "http://127.0.0.1:99999/",
    "http://[]/", "http://[::1]:70000/",
  ])
  func addressesThatLeadNowhere(url: String) async throws {
    try await Site.with(TestServer { _, _ in TestServer.Answer() }) { site in
      for direction in [true, false] {
        var order = direction ? site.download() : site.upload(bytes: 5)
        order.url = url
        #expect(await site.end(order)?.reason.isEmpty == false)
      }
      #expect(site.server.requests.isEmpty)
    }
  }

  /// What the app provides goes into a header, and must not end it.
  @Test func anAuthorizationThatCannotBeSent() async throws {
    try await Site.with(TestServer { _, _ in TestServer.Answer() }) { site in
      var order = site.download()
      order.authorization = "Bearer key\r\nX-Other: 1"
      let why = await site.end(order)?.reason ?? ""
      #expect(why.hasPrefix("the authorization has characters"), "\(why)")
      #expect(site.server.requests.isEmpty)
    }
  }

  @Test func nobodyListens() async throws {
    try await Site.with(TestServer { _, _ in TestServer.Answer() }) { site in
      var order = site.download()
      // A port that a server has given up may be another test's server the next moment.
      order.url = "http://127.0.0.1:1/"
      let why = await site.end(order)?.reason ?? ""
      #expect(why.hasSuffix("and so 4 times"), "\(why)")
    }
  }

  @Test func aServerThatSaysNothing() async throws {
    var options = Site.options
    options.idleTimeout = .milliseconds(50)
    options.retries = 1
    let served = ServedFile(content: sample(1000))
    let server = TestServer { request, _ in
      var answer = served.answer(to: request)
      answer.cut = 400
      answer.end = .hold
      return answer
    }
    try await Site.with(server, options) { site in
      let why = await site.end(site.download())?.reason ?? ""
      #expect(why == "the server was silent for too long, and so 2 times", "\(why)")
    }
  }

  @Test func tooLarge() async throws {
    var options = Site.options
    options.maximumBytes = 300_000
    for (framing, count) in [
      (TestServer.Answer.Framing.length, 300_001), (.chunked, 1_000_000), (.untilClosed, 300_001),
      (.chunked, 300_000),
    ] {
      let server = TestServer { _, _ in
        TestServer.Answer(body: sample(count), framing: framing)
      }
      try await Site.with(server, options) { site in
        let end = await site.end(site.download())
        if count > 300_000 {
          #expect(end?.reason.hasPrefix("the file is larger than 300000 bytes") == true)
          #expect(site.names.isEmpty && site.server.requests.count == 1)
        } else {
          #expect(end == .finished(bytes: 300_000))
        }
      }
    }
  }

  /// A device that is always full, in the place of the part file.
  @Test(
    .enabled(if: FileManager.default.fileExists(atPath: "/dev/full")), arguments: [10, 900_000])
  func noSpace(count: Int) async throws {
    let server = TestServer { _, _ in TestServer.Answer(body: sample(count)) }
    try await Site.with(server) { site in
      try FileManager.default.createSymbolicLink(
        atPath: "\(site.file).part", withDestinationPath: "/dev/full")
      let why = await site.end(site.download())?.reason ?? ""
      #expect(why == "no space is left for the file: make some, and try again")
      #expect(site.names.isEmpty && site.server.requests.count == 1)
    }
  }

  @Test func noFolder() async throws {
    try await Site.with(TestServer { _, _ in TestServer.Answer(body: sample(9)) }) { site in
      var order = site.download()
      order.file = "\(site.folder)/nowhere/file"
      #expect(await site.end(order)?.reason.hasPrefix("the file cannot be used") == true)
    }
  }

  @Test func onlySoManyAtOnce() async throws {
    let served = ServedFile(content: sample(100_000))
    for most in [1, 3] {
      var options = Site.options
      options.transfersAtOnce = most
      let server = TestServer { request, _ in served.answer(to: request) }
      try await Site.with(server, options) { site in
        await withTaskGroup(of: Void.self) { group in
          for number in 0..<12 {
            var order = site.download()
            order.file += "\(number)"
            group.addTask { [order] in
              #expect(await site.end(order) == .finished(bytes: 100_000))
            }
          }
        }
        #expect(site.names.count == 12 && site.server.mostOpen <= most)
      }
    }
  }

  /// One that is cancelled before its turn, while it waits to try again, and from the start.
  @Test func cancelledAtAnyTime() async throws {
    var options = Site.options
    options.firstDelay = .seconds(3600)
    options.longestDelay = .seconds(3600)
    let asked = AsyncStream.makeStream(of: Void.self)
    let server = TestServer { _, _ in
      asked.continuation.yield()
      return TestServer.Answer(status: "500 Error")
    }
    try await Site.with(server, options) { site in
      let waiting = Task { await site.end(site.download()) }
      for await _ in asked.stream { break }
      waiting.cancel()
      #expect(await waiting.value == nil)
      let never = Task {
        while !Task.isCancelled { await Task.yield() }
        return await site.end(site.download())
      }
      never.cancel()
      #expect(await never.value == nil)
      #expect(site.server.requests.count == 1)
    }
  }

  @Test func noCertificates() throws {
    var options = TransferOptions()
    options.trustRoots = "/nowhere/roots.pem"
    #expect(throws: TransferClientError.self) { try TransferClient(options) }
  }
}
