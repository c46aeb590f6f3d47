import Testing

@testable import RelayCore

@Suite struct ConnectHeadTests {
  /// Reads all of it; the target with the bytes left over, or why not.
  private func read(_ text: String) -> Result<(ConnectTarget, rest: Int)?, ProxyRefusal> {
    var head = ConnectHead()
    let bytes = Array(text.utf8)
    do throws(ProxyRefusal) {
      for (index, byte) in bytes.enumerated() {
        if let target = try head.receive(byte) {
          return .success((target, rest: bytes.count - index - 1))
        }
      }
    } catch {
      return .failure(error)
    }
    return .success(nil)
  }

  private static let apple = "CONNECT api.push.apple.com:443 HTTP/1.1\r\n"

  @Test(arguments: [
    ("\(apple)Host: api.push.apple.com:443\r\nProxy-Authorization: Basic eDp5\r\n\r\n", 0),
    ("\(apple)\r\nhello", 5), ("\r\n\r\n\(apple)\r\n", 0),
    ("CONNECT API.Push.Apple.COM.:443 HTTP/1.0\n\n\n", 1),
    ("\(apple)Host: elsewhere.example:1\r\n\r\n", 0),
  ])
  func theTargetIsThatOfTheRequestLine(text: String, rest: Int) throws {
    let (target, left) = try #require(try read(text).get())
    #expect(target == ConnectTarget("api.push.apple.com:443"))
    #expect(left == rest)
    // What is there is decided by the last byte of the head, and by none before.
    let head = text.utf8.count - rest
    for end in 0..<head {
      let part = String(decoding: Array(text.utf8)[..<end], as: UTF8.self)
      #expect(try read(part).get() == nil, "\(end)")
    }
  }

  @Test(
    arguments: [
      ("GET / HTTP/1.1\r\n", .method), ("GET http://example.com/ HTTP/1.1\r\n", .method),
      ("connect api.push.apple.com:443 HTTP/1.1\r\n", .method),
      ("CONNECT api.push.apple.com:443 HTTP/2.0\r\n", .version), ("PRI * HTTP/2.0\r\n", .version),
      ("\u{16}\u{3}\u{1}", .malformed), ("hello\r\n", .malformed), ("\u{0}", .malformed),
      ("CONNECT  api.push.apple.com:443 HTTP/1.1\r\n", .malformed),
      ("CONNECT api.push.apple.com:443\r\n", .malformed),
      ("CONNECT api.push.apple.com HTTP/1.1\r\n", .malformed),
      ("CONNECT a..:443 HTTP/1.1\r\n", .malformed),
      ("CONNECT :443 HTTP/1.1\r\n", .malformed), ("CONNECT a:0 HTTP/1.1\r\n", .malformed),
      ("CONNECT a:65536 HTTP/1.1\r\n", .malformed), ("CONNECT a:-1 HTTP/1.1\r\n", .malformed),
      ("CONNECT a\u{7}b:443 HTTP/1.1\r\n", .malformed), ("CONNECT ä:443 HTTP/1.1\r\n", .malformed),
    ] as [(String, ProxyRefusal)])
  func whatIsNoRequestIsRefusedAtOnce(text: String, refusal: ProxyRefusal) {
    #expect(throws: refusal) { try read(text).get() }
  }

  /// In one line without an end, and in fields.
  @Test(arguments: ["", apple, apple + "a: b\r\na: "])
  func aHeadHasAnEnd(beginning: String) throws {
    let room = Limits.proxyHeadBytes - beginning.utf8.count
    let full = beginning + String(repeating: "a", count: room)
    #expect(try read(full).get() == nil)
    #expect(throws: ProxyRefusal.tooLong) { try read(full + "a").get() }
    guard !beginning.isEmpty else { return }
    // The last byte that may be there ends it.
    let longest = String(full.dropLast(4)) + "\r\n\r\n"
    #expect(longest.utf8.count == Limits.proxyHeadBytes)
    #expect(try read(longest).get()?.rest == 0)
  }

  private static let refusals: [ProxyRefusal] = {
    guard let target = ConnectTarget("example.com:443") else { return [] }
    return [
      .malformed, .method, .version, .tooLong, .tooSlow, .foreign(target), .unserved(target),
    ]
  }()

  @Test(arguments: refusals)
  func anAnswerIsWholeAndSaysWhy(refusal: ProxyRefusal) throws {
    let parts = refusal.answer.split(separator: "\r\n\r\n", maxSplits: 1).map(String.init)
    try #require(parts.count == 2)
    let lines = parts[0].split(separator: "\r\n").map(String.init)
    #expect(lines[0] == "HTTP/1.1 \(refusal.status) \(refusal.sentence)")
    #expect(parts[1] == refusal.sentence + "\n")
    #expect(lines.contains("Content-Length: \(parts[1].utf8.count)"))
    #expect(lines.contains("Connection: close"))
    // RFC 9110, section 15.5.6.
    #expect(lines.contains("Allow: CONNECT") == (refusal.status == 405))
    #expect(refusal.answer.utf8.allSatisfy { $0 < 0x7F })
  }
}
