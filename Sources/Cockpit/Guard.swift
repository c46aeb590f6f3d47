import FoundationEssentials
import HTTPTypes
import Hummingbird

/// Who may use the admin listener on TCP. Localhost is not private: a page from anywhere can make a
/// browser ask it, under any name that leads there.
///
/// So the name must be one that is expected, a request from a page must be from our own, whoever
/// asks for `/v1` shows the token of the state directory, and what changes anything is JSON, which
/// a plain form of another page cannot send.
struct Guard: RouterMiddleware {
  let token: String
  /// Names by which the listener is called, without ports.
  let hosts: Set<String>
  let known: KnownRoutes

  func handle(
    _ request: Request, context: AdminContext,
    next: (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    try checkHost(request)
    try checkOrigin(request)
    if request.uri.path.hasPrefix("/v1") {
      try checkToken(request)
      // A method that is not there is told so (405), whatever it says of its body.
      if known.methods(of: request.uri.path).contains(request.method.rawValue) {
        try checkType(request)
      }
    }
    var response = try await next(request, context)
    response.headers[.init("X-Content-Type-Options")!] = "nosniff"
    return response
  }

  private func checkHost(_ request: Request) throws {
    let host = Self.name(request.head.authority ?? "")
    guard hosts.contains(host) else {
      throw Refusal(
        403, "HostNotAllowed",
        "this listener is not called \(host): name it in adminHosts if it is meant to be")
    }
  }

  private func checkOrigin(_ request: Request) throws {
    if let origin = request.headers[.init("Origin")!] {
      let name = origin.split(separator: "/").last.map { Self.name(String($0)) } ?? ""
      guard hosts.contains(name), origin.hasPrefix("http://") || origin.hasPrefix("https://") else {
        throw Refusal(403, "OriginNotAllowed", "pages of \(origin) may not ask here")
      }
    }
    if let site = request.headers[.init("Sec-Fetch-Site")!], site == "cross-site" {
      throw Refusal(403, "OriginNotAllowed", "pages of other sites may not ask here")
    }
  }

  private func checkToken(_ request: Request) throws {
    let given = request.headers[.authorization] ?? ""
    guard Self.areEqual(given, "Bearer \(token)") || Self.areEqual(given, "bearer \(token)") else {
      throw Refusal(
        401, "Unauthorized",
        "send 'authorization: bearer TOKEN'; the token is in admin.token of the state directory")
    }
  }

  /// Reading needs no body; what changes something says that it is JSON.
  private func checkType(_ request: Request) throws {
    guard ![.get, .head, .delete].contains(request.method) else { return }
    let type = request.headers[.contentType] ?? ""
    guard type == "application/json" || type.hasPrefix("application/json;") else {
      throw Refusal(
        415, "UnsupportedMediaType", "send the body with 'content-type: application/json'")
    }
  }

  /// A name without its port; of an IPv6 address without its brackets.
  static func name(_ authority: String) -> String {
    let text = authority.lowercased()
    if text.hasPrefix("[") {
      return String(text.dropFirst().prefix { $0 != "]" })
    }
    return String(text.prefix { $0 != ":" })
  }

  /// Without an early exit, so that the time taken says nothing about the token.
  private static func areEqual(_ left: String, _ right: String) -> Bool {
    let (left, right) = (Array(left.utf8), Array(right.utf8))
    var difference = left.count ^ right.count
    for index in 0..<min(left.count, right.count) { difference |= Int(left[index] ^ right[index]) }
    return difference == 0
  }
}
