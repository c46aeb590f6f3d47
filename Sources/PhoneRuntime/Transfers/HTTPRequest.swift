import DeviceModel
import FoundationEssentials
import NIOCore
import NIOHTTP1

struct HTTPRequest: Sendable {
  var address: WebAddress
  var method: HTTPMethod
  var headers = HTTPHeaders()
  /// A short body.
  var content: [UInt8] = []

  /// `Connection: close`: each connection serves one request.
  func head(contentLength: Int64?) -> HTTPRequestHead {
    var fields = HTTPHeaders([("Host", host)])
    fields.add(contentsOf: headers)
    if let contentLength { fields.add(name: "Content-Length", value: "\(contentLength)") }
    fields.add(name: "Connection", value: "close")
    return HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: fields)
  }

  /// All field values are valid (RFC 9110, section 5.5); an app may provide anything.
  var isSendable: Bool {
    headers.allSatisfy { _, value in
      value.utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }
    }
  }

  private var host: String {
    address.port == (address.isSecure ? 443 : 80)
      ? address.host : "\(address.host):\(address.port)"
  }

  /// Path and query without the fragment (RFC 9112, section 3.2.1).
  private var target: String {
    let rest = address.text.dropFirst(address.isSecure ? 8 : 7)
      .drop { !"/?#".contains($0) }.prefix { $0 != "#" }
    return rest.hasPrefix("/") ? String(rest) : "/" + rest
  }
}

/// The answer's head, and its body in chunks as fast as they are read.
struct HTTPAnswer: ~Copyable {
  typealias Parts = NIOAsyncChannelInboundStream<HTTPClientResponsePart>

  let head: HTTPResponseHead
  private var parts: Parts.AsyncIterator

  init(_ parts: Parts) async throws {
    self.parts = parts.makeAsyncIterator()
    guard case .head(let head)? = try await self.parts.next() else { throw TransferError.ended }
    self.head = head
  }

  /// Nil after the last chunk.
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
  /// The same request at the redirect's address; nil if the answer is no redirect.
  func redirected(by answer: HTTPResponseHead) throws(TransferError) -> HTTPRequest? {
    switch answer.status.code {
    case 301, 302, 307, 308: break
    // After an upload, 303 only points to information about it.
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
    // Credentials stay with their origin.
    if !address.hasOrigin(of: request.address) { request.headers.remove(name: "Authorization") }
    return request
  }
}
