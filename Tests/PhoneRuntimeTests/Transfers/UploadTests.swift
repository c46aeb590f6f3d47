import Foundation
import NIOHTTP1
import Testing

@testable import PhoneRuntime

/// What arrives is what was in the file, or as many bytes as were asked for.
@Suite struct UploadTests {
  private let taken = TestServer.Answer(status: "201 Created")

  @Test(arguments: [0, 1, 262_144, 1_000_001], [true, false])
  func aFileIsPut(count: Int, isThere: Bool) async throws {
    let taken = taken
    try await Site.with(TestServer { _, _ in taken }) { site in
      if isThere { site.write(sample(count)) }
      let reports = await site.reports(site.upload(bytes: isThere ? 7 : Int64(count)))
      #expect(reports.first == .progressed(bytes: 0))
      #expect(reports.last == .finished(bytes: Int64(count)))
      let request = try #require(site.server.requests.first)
      #expect(request.method == "PUT" && request.path == "/file")
      #expect(request.fields["Content-Length"] == ["\(count)"])
      let made = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      #expect(request.body == (isThere ? sample(count) : made))
      #expect(site.names == (isThere ? ["file"] : []))
    }
  }

  @Test func aDroppedOneStartsOver() async throws {
    let taken = taken
    let server = TestServer { _, number in
      number == 0
        ? TestServer.Answer(status: "200 OK", framing: .length, cut: 0, end: .close) : taken
    }
    try await Site.with(server) { site in
      let broken = TestServer(isHasty: true) { _, _ in
        TestServer.Answer(status: "503 Busy", end: .close)
      }
      try await broken.start()
      var order = site.upload(bytes: 3_000_000)
      order.url = broken.url
      // What of the answer comes through while the server hangs up is open.
      let why = await site.end(order)?.reason ?? ""
      #expect(why.hasSuffix(", and so 4 times"), "\(why)")
      #expect((1...4).contains(broken.requests.count))
      await broken.stop()
      site.write(sample(500_000))
      let reports = await site.reports(site.upload())
      #expect(reports.last == .finished(bytes: 500_000))
      #expect(site.server.requests.last?.body == sample(500_000))
    }
  }

  /// The server need not read all of it to ask who is there.
  @Test(arguments: [true, false], ["401 Unauthorized", "407 Proxy Authentication Required"])
  func aServerAsks(isHasty: Bool, status: String) async throws {
    let taken = taken
    let server = TestServer(isHasty: isHasty) { request, _ in
      request.fields["Authorization"] == ["Bearer key"]
        ? taken : TestServer.Answer(status: status)
    }
    try await Site.with(server) { site in
      var order = site.upload(bytes: 2_000_000)
      #expect(await site.end(order) == .challenged)
      #expect(site.server.requests.count == 1)
      order.authorization = "Bearer key"
      if isHasty { order.bytes = 0 }
      #expect(await site.end(order) == .finished(bytes: order.bytes))
    }
  }

  @Test(arguments: [301, 302, 307, 308])
  func redirectsTakeTheBodyAlong(status: Int) async throws {
    let taken = taken
    let server = TestServer { request, _ in
      request.path == "/file"
        ? TestServer.Answer(status: "\(status) Moved", fields: [("Location", "/there")]) : taken
    }
    try await Site.with(server) { site in
      site.write(sample(400_000))
      #expect(await site.end(site.upload()) == .finished(bytes: 400_000))
      #expect(site.server.requests.map(\.path) == ["/file", "/there"])
      #expect(site.server.requests.last?.body == sample(400_000))
      #expect(site.server.requests.last?.method == "PUT")
    }
  }

  @Test func seeOtherMeansTaken() async throws {
    let server = TestServer { _, _ in
      TestServer.Answer(status: "303 See Other", fields: [("Location", "/result")])
    }
    try await Site.with(server) { site in
      #expect(await site.end(site.upload(bytes: 10)) == .finished(bytes: 10))
      #expect(site.server.requests.count == 1)
    }
  }

  @Test func whatIsNoFile() async throws {
    let taken = taken
    try await Site.with(TestServer { _, _ in taken }) { site in
      var order = site.upload(bytes: 10)
      order.file = site.folder
      #expect(await site.end(order)?.reason == "\(site.folder) is no file that can be sent")
      site.write(sample(10))
      order.file = "\(site.file)/below"
      #expect(await site.end(order)?.reason.hasPrefix("the file cannot be used") == true)
      #expect(site.server.requests.isEmpty)
    }
  }

  @Test func tooLarge() async throws {
    let taken = taken
    var options = Site.options
    options.maximumBytes = 1000
    try await Site.with(TestServer { _, _ in taken }, options) { site in
      #expect(await site.end(site.upload(bytes: 1000)) == .finished(bytes: 1000))
      #expect(await site.end(site.upload(bytes: 1001))?.reason.contains("1000 bytes") == true)
    }
  }
}
