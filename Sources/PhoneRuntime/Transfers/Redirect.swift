import AsyncHTTPClient
import DeviceModel
import FoundationEssentials
import NIOHTTP1

extension HTTPClientRequest {
  /// Where an answer sends it: the same request to another address. Nil if the answer sends it
  /// nowhere. The client library would follow by itself, but not with a body that is a stream, nor
  /// without harm: it trusts the address that it is sent to.
  func redirected(by answer: HTTPClientResponse) throws(TransferProblem) -> HTTPClientRequest? {
    switch answer.status.code {
    case 301, 302, 307, 308: break
    // The upload was taken; the other address tells about it.
    case 303 where method == .GET: break
    default: return nil
    }
    guard let location = answer.headers.first(name: "Location") else { return nil }
    let target = URL(string: url).flatMap { URL(string: location, relativeTo: $0)?.absoluteString }
    let (from, to): (WebAddress, WebAddress)
    do {
      (from, to) = (try WebAddress(url), try WebAddress(target ?? ""))
    } catch {
      throw .failed("the server sends the request to an address that it cannot reach: \(error)")
    }
    var request = self
    request.url = to.text
    // Credentials are for the one who was to get them.
    if !from.hasOrigin(of: to) { request.headers.remove(name: "Authorization") }
    return request
  }
}
