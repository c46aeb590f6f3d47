import DeviceModel
import FoundationEssentials
import NIOHTTP1

extension HTTPRequest {
  /// Where an answer sends it: the same request to another address. Nil if the answer sends it
  /// nowhere.
  func redirected(by answer: HTTPResponseHead) throws(TransferProblem) -> HTTPRequest? {
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
