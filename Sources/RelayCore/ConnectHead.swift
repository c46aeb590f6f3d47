/// Where a client of a proxy wants to go.
package struct ConnectTarget: Equatable, Sendable, CustomStringConvertible {
  /// In lower case, without a final dot.
  package let host: String
  package let port: UInt16

  /// Reads `HOST:PORT`; nil when it is no such thing.
  package init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), text.utf8.count <= 262,
      let port = UInt16(text[text.index(after: colon)...]), port > 0
    else { return nil }
    var host = text[..<colon].lowercased()
    if host.hasSuffix(".") { host.removeLast() }
    guard !host.isEmpty, !host.hasSuffix("."), host.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else { return nil }
    self.host = host
    self.port = port
  }

  package var description: String { "\(host):\(port)" }
}

/// The head of a request to the proxy, `CONNECT` and no other (RFC 9110, section 9.3.6), byte by
/// byte as it arrives. Fields are passed over: none of them changes where a connection may end.
package struct ConnectHead: Sendable {
  /// The answer to a request that was followed.
  package static let accepted = "HTTP/1.1 200 Connection established\r\n\r\n"

  private var line: [UInt8] = []
  private var byteCount = 0
  private var target: ConnectTarget?

  package init() {}

  /// Takes the next byte; returns the target with the last one of the head.
  package mutating func receive(_ byte: UInt8) throws(ProxyRefusal) -> ConnectTarget? {
    byteCount += 1
    guard byteCount <= Limits.proxyHeadBytes else { throw .tooLong }
    guard byte == UInt8(ascii: "\n") else {
      line.append(byte)
      // The first byte of TLS is none of text, and no line might ever end.
      if byteCount == 1, byte < 0x20, byte != UInt8(ascii: "\r") { throw .malformed }
      return nil
    }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    defer { line.removeAll(keepingCapacity: true) }
    // Empty lines before the request are ignored (RFC 9112, section 2.2).
    guard !line.isEmpty else { return target }
    if target == nil { target = try Self.target(of: line) }
    return nil
  }

  private static func target(of line: [UInt8]) throws(ProxyRefusal) -> ConnectTarget {
    let words = String(decoding: line, as: UTF8.self)
      .split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, words[2].hasPrefix("HTTP/") else { throw .malformed }
    guard words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0" else { throw .version }
    guard words[0] == "CONNECT" else { throw .method }
    guard let target = ConnectTarget(String(words[1])) else { throw .malformed }
    return target
  }
}

/// Why the proxy ends a connection, and what it says.
package enum ProxyRefusal: Error, Equatable, Sendable {
  case malformed, method, version, tooLong, tooSlow
  /// None of Apple's push service.
  case foreign(ConnectTarget)
  /// Of Apple's, and this relay has no such listener.
  case unserved(ConnectTarget)

  package var status: Int {
    switch self {
    case .malformed: 400
    case .foreign, .unserved: 403
    case .method: 405
    case .tooSlow: 408
    case .tooLong: 431
    case .version: 505
    }
  }

  package var sentence: String {
    switch self {
    case .malformed: "this is no CONNECT of HTTP/1.1; the proxy is http://, not https://"
    case .method: "this proxy of push-relay knows CONNECT only"
    case .version: "this proxy of push-relay speaks HTTP/1.1"
    case .tooLong: "a request's head has at most \(Limits.proxyHeadBytes) bytes here"
    case .tooSlow: "the request's head did not come in time"
    case .foreign(let target):
      if case let ports = AppleService.ports(of: target.host), !ports.isEmpty {
        "\(target.host) has the push service at port \(ports), not at \(target.port)"
      } else {
        "\(target) is not Apple's push service, and this proxy leads to push-relay only"
      }
    case .unserved(let target):
      "\(target) is not served by this relay; --channels serves the management of channels, "
        + "--legacy and --feedback the binary API"
    }
  }

  /// The whole answer. The sentence is the reason phrase too, which many clients print.
  package var answer: String {
    """
    HTTP/1.1 \(status) \(sentence)\r
    Content-Type: text/plain\r
    Content-Length: \(sentence.utf8.count + 1)\r
    Connection: close\r
    \(self == .method ? "Allow: CONNECT\r\n" : "")\r
    \(sentence)

    """
  }
}
