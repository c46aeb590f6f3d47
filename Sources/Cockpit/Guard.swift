import AdminAPI
import HTTPTypes
import Hummingbird
import Primitives
import ProviderCredentials

/// Checks for everyone on the admin listener on TCP. Localhost is not private: a page from anywhere
/// can make a browser send requests to it, under any name that resolves to it. So the host must be
/// an expected name, and a request from a page must come from our own page.
struct OwnPages: RouterMiddleware {
  /// Without ports.
  let hosts: Set<String>
  /// Those of a proxy in front of this listener, which may have another port.
  let aliases: Set<String>

  init(_ names: Set<String>, aliases: Set<String>) {
    (hosts, self.aliases) = (names.union(aliases), aliases)
  }

  func handle(
    _ request: Request, context: AdminContext,
    next: (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    // One line (RFC 9112 section 3.2): a second may say another. A target's own name counts for
    // nothing: no page can have a browser send one.
    guard let host = request.head.authority, request.headers[.init("Host")!] == nil else {
      throw Refusal(400, "BadHost", "send one line Host: this listener looks at its name")
    }
    guard isOurs(host) else {
      throw Refusal(
        403, "HostNotAllowed",
        "this listener is not called \(host): name it in adminHosts if it is meant to be")
    }
    if let origin = request.headers[.init("Origin")!] {
      let scheme = ["http://", "https://"].first { origin.hasPrefix($0) }
      guard let scheme, isOurs(origin.dropFirst(scheme.count), at: host) else {
        throw Refusal(403, "OriginNotAllowed", "pages of \(origin.inOneLine) may not ask here")
      }
    }
    if let site = request.headers[.init("Sec-Fetch-Site")!],
      !["same-origin", "none"].contains(site)
    {
      throw Refusal(403, "OriginNotAllowed", "pages of other sites may not ask here")
    }
    var response = try await next(request, context)
    response.headers[.init("X-Content-Type-Options")!] = "nosniff"
    return response
  }

  private func isOurs(_ authority: some StringProtocol) -> Bool {
    Self.name(authority).map { hosts.contains($0) } ?? false
  }

  /// Another port of this machine is the same site, but not the same origin.
  private func isOurs(_ origin: some StringProtocol, at host: String) -> Bool {
    guard let name = Self.name(origin) else { return false }
    return origin.lowercased() == host.lowercased() || aliases.contains(name)
  }

  /// The name in `NAME`, `NAME:PORT`, `[IPV6]` or `[IPV6]:PORT` (RFC 3986 section 3.2), in lower
  /// case; nil for anything else.
  static func name(_ authority: some StringProtocol) -> String? {
    let form = /(?:([a-z0-9._-]+)|\[([0-9a-f.]*:[0-9a-f.:]*)\])(?::[0-9]{1,5})?/
    guard let match = authority.lowercased().wholeMatch(of: form) else { return nil }
    return (match.output.1 ?? match.output.2).map(String.init)
  }
}

/// Lets requests with the token of the state directory reach the routes added after it, and unknown
/// routes. Changes must be JSON, which a plain form on another page cannot send.
struct Guard: RouterMiddleware {
  let token: String
  let connections: AdminConnections

  func handle(
    _ request: Request, context: AdminContext,
    next: (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    let given = request.headers[.authorization] ?? ""
    // A scheme's name is the same in any case of letters (RFC 9110 section 11.1).
    let isBearer = given.prefix(7).lowercased() == "bearer "
    guard isBearer, Array(given.dropFirst(7).utf8).span.isEqual(to: Array(token.utf8).span) else {
      throw Refusal(
        401, "Unauthorized",
        "send 'authorization: bearer TOKEN'; the token is in admin.token of the state directory")
    }
    connections.welcome(context.channel)
    // A wrong method is answered 405 whatever its body is.
    if context.endpointPath != nil { try checkType(request) }
    return try await next(request, context)
  }

  private func checkType(_ request: Request) throws {
    guard ![.get, .head, .delete].contains(request.method) else { return }
    // RFC 9110 section 8.3.1.
    let type = (request.headers[.contentType] ?? "").lowercased()
    guard type.wholeMatch(of: /application\/json[ \t]*(;.*)?/) != nil else {
      throw Refusal(
        415, "UnsupportedMediaType", "send the body with 'content-type: application/json'")
    }
  }
}
