import Foundation
import NIOHTTP1
import Testing

@testable import PhoneRuntime

/// What is fetched is what the server has, however often the way is interrupted.
@Suite struct DownloadTests {
  @Test(arguments: [0, 1, 65_536, 262_144, 3_000_001])
  func aFileComes(count: Int) async throws {
    let served = ServedFile(content: sample(count))
    for framing in [TestServer.Answer.Framing.length, .chunked, .untilClosed] {
      let server = TestServer { request, _ in
        var answer = served.answer(to: request)
        answer.framing = framing
        return answer
      }
      try await Site.with(server) { site in
        site.write([1, 2, 3])
        let reports = await site.reports(site.download())
        #expect(reports.first == .progressed(bytes: 0))
        #expect(reports.last == .finished(bytes: Int64(count)))
        #expect(site.contents() == served.content)
        #expect(site.names == ["file"])
        let request = site.server.requests.first
        #expect(request?.method == "GET" && request?.fields.first(name: "Range") == nil)
      }
    }
  }

  @Test(arguments: [0, 1, 70_000, 262_144, 299_999], [true, false])
  func itGoesOnWhereItWasCut(cut: Int, resumes: Bool) async throws {
    let served = ServedFile(content: sample(300_000))
    let server = TestServer { request, number in
      var answer = served.answer(to: request)
      if number == 0 { (answer.cut, answer.end) = (cut, .hold) }
      return answer
    }
    try await Site.with(server) { site in
      await site.perform(site.download(resumes: resumes), until: Int64(cut))
      #expect(site.contents("file.part") == Array(served.content.prefix(cut)))
      let reports = await site.reports(site.download(resumes: resumes))
      #expect(reports.last == .finished(bytes: 300_000))
      #expect(site.contents() == served.content && site.names == ["file"])
      let second = try #require(site.server.requests.last)
      let isContinued = resumes && cut > 0
      #expect(second.fields.first(name: "Range") == (isContinued ? "bytes=\(cut)-" : nil))
      #expect(second.fields.first(name: "If-Range") == (isContinued ? served.tag : nil))
      #expect(reports.first == .progressed(bytes: isContinued ? Int64(cut) : 0))
    }
  }

  /// The server drops the connection. Bytes that the client library has not handed over by then
  /// come again.
  @Test func cutsAtRandom() async throws {
    for seed in UInt64(1)...20 {
      let served = ServedFile(content: sample(400_000, salt: Int(seed)))
      let server = TestServer { request, number in
        var answer = served.answer(to: request)
        // By the seed and the number, and so the same each time.
        let place = seed &* 0x9E37_79B9_7F4A_7C15 &* UInt64(number + 1)
        if number < 8 { answer.cut = Int(place >> 33) % (answer.body.count + 1) }
        answer.framing = number % 2 == 0 ? .length : .chunked
        return answer
      }
      var options = Site.options
      options.retries = 9
      try await Site.with(server, options) { site in
        let reports = await site.reports(site.download())
        #expect(reports.last == .finished(bytes: 400_000), "seed \(seed): \(reports.suffix(2))")
        #expect(site.contents() == served.content, "seed \(seed)")
        let bytes = reports.compactMap {
          if case .progressed(let bytes) = $0 { bytes } else { nil }
        }
        #expect(bytes == bytes.sorted(), "seed \(seed): \(bytes)")
      }
    }
  }

  /// Another address is another file.
  @Test func whatIsThereBelongsToAnAddress() async throws {
    let served = ServedFile(content: sample(1000))
    try await Site.with(TestServer { request, _ in served.answer(to: request) }) { site in
      site.writePart(sample(10)[...], served.tag, of: 1000, path: "/other")
      #expect(await site.end(site.download()) == .finished(bytes: 1000))
      #expect(site.server.requests.map(\.offset) == [nil] && site.contents() == served.content)
    }
  }

  @Test func aChangedFileStartsOver() async throws {
    let new = ServedFile(content: sample(150_000, salt: 2), tag: "\"two\"")
    try await Site.with(TestServer { request, _ in new.answer(to: request) }) { site in
      site.writePart(sample(100_000)[...], "\"one\"", of: 200_000)
      let reports = await site.reports(site.download())
      #expect(site.server.requests.map(\.offset) == [100_000])
      #expect(reports.first == .progressed(bytes: 0))
      #expect(reports.last == .finished(bytes: 150_000) && site.contents() == new.content)
    }
  }

  /// An answer that does not fit to what is there is not used, whatever it claims.
  @Test(arguments: [
    ("206 Partial Content", ["Content-Range": "bytes 99999-199999/200000"]),
    ("206 Partial Content", ["Content-Range": "bytes 100001-199999/200000"]),
    ("206 Partial Content", ["Content-Range": "bytes 100000-199999/200001"]),
    ("206 Partial Content", ["Content-Range": "bytes 100000-199999/200000", "ETag": "\"x\""]),
    ("206 Partial Content", ["Content-Range": "bytes */200000"]),
    ("206 Partial Content", ["Content-Range": "lines 1-2/3"]),
    ("206 Partial Content", ["Content-Type": "multipart/byteranges; boundary=a"]),
    ("416 Range Not Satisfiable", ["Content-Range": "bytes */200000"]),
    ("416 Range Not Satisfiable", ["Content-Range": "bytes */100000", "ETag": "\"x\""]),
    ("416 Range Not Satisfiable", [:]),
  ])
  func wrongContinuations(status: String, fields: [String: String]) async throws {
    let served = ServedFile(content: sample(200_000))
    let server = TestServer { request, number in
      guard number > 0 else {
        return TestServer.Answer(
          status: status, fields: fields.map { ($0.key, $0.value) }, body: sample(100_000, salt: 9))
      }
      return served.answer(to: request)
    }
    try await Site.with(server) { site in
      site.writePart(served.content[..<100_000], served.tag, of: 200_000)
      #expect(await site.end(site.download()) == .finished(bytes: 200_000))
      #expect(site.contents() == served.content)
      #expect(site.server.requests.map(\.offset) == [100_000, nil])
    }
  }

  /// All had come, only the name was not changed yet.
  @Test func nothingIsMissing() async throws {
    let served = ServedFile(content: sample(1000))
    try await Site.with(TestServer { request, _ in served.answer(to: request) }) { site in
      site.writePart(served.content[...], served.tag, of: nil)
      #expect(await site.end(site.download()) == .finished(bytes: 1000))
      #expect(site.contents() == served.content && site.names == ["file"])
      #expect(site.server.requests.map(\.offset) == [1000])
    }
  }

  /// Without a name for the version that is safe to go on by, it starts over.
  @Test(arguments: [
    ([:], nil), (["ETag": "W/\"one\""], nil), (["ETag": "one"], nil),
    (["Last-Modified": "Sat, 21 Nov 2026 08:00:00 GMT"], nil),
    (
      [
        "Last-Modified": "Sat, 21 Nov 2026 08:00:00 GMT", "Date": "Sat, 21 Nov 2026 08:00:00 GMT",
      ], nil
    ),
    (
      [
        "Last-Modified": "Sat, 21 Nov 2026 08:00:00 GMT", "Date": "Sat, 21 Nov 2026 08:00:01 GMT",
        "ETag": "W/\"one\"",
      ], "Sat, 21 Nov 2026 08:00:00 GMT"
    ),
  ])
  func versions(fields: [String: String], validator: String?) async throws {
    let content = sample(1000)
    let server = TestServer { request, number in
      var answer = TestServer.Answer(fields: fields.map { ($0.key, $0.value) }, body: content)
      if number == 0 { (answer.cut, answer.end) = (600, .hold) }
      return answer
    }
    try await Site.with(server) { site in
      await site.perform(site.download(), until: 600)
      #expect(await site.end(site.download()) == .finished(bytes: 1000))
      #expect(site.contents() == content)
      #expect(site.server.requests.last?.fields.first(name: "If-Range") == validator)
      #expect(site.server.requests.last?.offset == (validator == nil ? nil : 600))
    }
  }

  /// Some servers send at most so much of a range; if that is too little it is given up.
  @Test(arguments: [(100_000, true), (1000, false)])
  func partAfterPart(size: Int, isEnough: Bool) async throws {
    let served = ServedFile(content: sample(450_000))
    let server = TestServer { request, _ in
      var answer = served.answer(to: request)
      guard let offset = request.offset else { return TestServer.Answer(status: "500 Error") }
      answer.body = Array(answer.body.prefix(size))
      answer.fields = [
        ("Content-Range", "bytes \(offset)-\(offset + answer.body.count - 1)/450000")
      ]
      return answer
    }
    try await Site.with(server) { site in
      site.writePart(served.content[..<50_000], served.tag, of: 450_000)
      let end = await site.end(site.download())
      #expect(site.server.requests.count == 4)
      #expect(isEnough ? end == .finished(bytes: 450_000) : end?.reason.isEmpty == false)
      #expect(!isEnough || site.contents() == served.content)
    }
  }
}
