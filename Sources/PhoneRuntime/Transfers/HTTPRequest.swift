import DeviceModel
import FoundationEssentials
import NIOCore
import NIOHTTP1

/// A request of a transfer, without its body.
struct HTTPRequest: Sendable {
  var address: WebAddress
  var method: HTTPMethod
  var headers = HTTPHeaders()

  /// As it goes over the wire. A connection serves one request: the other side may close it.
  func head(contentLength: Int64?) -> HTTPRequestHead {
    var fields = HTTPHeaders([("Host", host)])
    fields.add(contentsOf: headers)
    if let contentLength { fields.add(name: "Content-Length", value: "\(contentLength)") }
    fields.add(name: "Connection", value: "close")
    return HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: fields)
  }

  /// Whether every field can be sent (RFC 9110, section 5.5): what an app provides may be anything.
  var isSendable: Bool {
    headers.allSatisfy { _, value in
      value.utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }
    }
  }

  private var host: String {
    address.port == (address.isSecure ? 443 : 80)
      ? address.host : "\(address.host):\(address.port)"
  }

  /// Path and query (RFC 9112, section 3.2.1); what follows `#` is for us.
  private var target: String {
    let rest = address.text.dropFirst(address.isSecure ? 8 : 7)
      .drop { !"/?#".contains($0) }.prefix { $0 != "#" }
    return rest.hasPrefix("/") ? String(rest) : "/" + rest
  }
}

/// What comes back: the head, and the body chunk by chunk, at the pace at which it is taken.
struct HTTPAnswer: ~Copyable {
  typealias Parts = NIOAsyncChannelInboundStream<HTTPClientResponsePart>

  let head: HTTPResponseHead
  private var parts: Parts.AsyncIterator

  /// Waits for the head.
  init(_ parts: Parts) async throws {
    self.parts = parts.makeAsyncIterator()
    guard case .head(let head)? = try await self.parts.next() else { throw TransferError.ended }
    self.head = head
  }

  /// The next bytes of the body; nil behind the last ones.
  mutating func nextChunk() async throws(TransferError) -> ByteBuffer? {
    do {
      switch try await parts.next() {
      case .body(let chunk): return chunk
      case .end: return nil
      case .head, nil: throw TransferError.ended
      }
    } catch {
      throw TransferError(error)
    }
  }
}

extension HTTPRequest {
  /// Where an answer sends it: the same request to another address. Nil if the answer sends it
  /// nowhere.
  func redirected(by answer: HTTPResponseHead) throws(TransferError) -> HTTPRequest? {
    switch answer.status.code {
    case 301, 302, 307, 308: break
    // The upload was taken; the other address tells about it.
    case 303 where method == .GET: break
    default: return nil
    }
    guard let location = answer.headers.first(name: "Location") else { return nil }
    let target = URL(string: address.text).flatMap {
      URL(string: location, relativeTo: $0)?.absoluteString
    }
    var request = self
    do {
      request.address = try WebAddress(target ?? "")
    } catch {
      throw .failed("the server sends the request to an address that it cannot reach: \(error)")
    }
    // Credentials are for the one who was to get them.
    if !address.hasOrigin(of: request.address) { request.headers.remove(name: "Authorization") }
    return request
  }
}
