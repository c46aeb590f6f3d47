import HTTPTypes
import Hummingbird
import NIOCore

/// The page and its files: compiled in, so that a copied binary still has them.
struct PageRoutes {
  private static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  private static let files: [(path: String, type: String, bytes: [UInt8])] = [
    ("/", "text/html; charset=utf-8", PackageResources.index_html),
    ("/cockpit.js", "text/javascript; charset=utf-8", PackageResources.cockpit_js),
    ("/kit.js", "text/javascript; charset=utf-8", PackageResources.kit_js),
    ("/lanes.js", "text/javascript; charset=utf-8", PackageResources.lanes_js),
    ("/find.js", "text/javascript; charset=utf-8", PackageResources.find_js),
    ("/push.js", "text/javascript; charset=utf-8", PackageResources.push_js),
    ("/phone.js", "text/javascript; charset=utf-8", PackageResources.phone_js),
    ("/policy.js", "text/javascript; charset=utf-8", PackageResources.policy_js),
    ("/drawer.js", "text/javascript; charset=utf-8", PackageResources.drawer_js),
    ("/nodes.js", "text/javascript; charset=utf-8", PackageResources.nodes_js),
    ("/cockpit.css", "text/css; charset=utf-8", PackageResources.cockpit_css),
    ("/openapi.json", "application/json", PackageResources.openapi_json),
  ]

  /// Leaves out comments and indentation.
  private static func served(_ source: [UInt8]) -> ByteBuffer {
    let lines = String(decoding: source, as: UTF8.self).split(separator: "\n")
      .map { $0.drop { $0 == "\t" } }
    return ByteBuffer(
      string: lines.filter { !$0.hasPrefix("//") && !$0.hasPrefix("/*") }.joined(separator: "\n"))
  }

  func add(to router: Router<AdminContext>) {
    for (path, type, bytes) in Self.files {
      let body = Self.served(bytes)
      router.get(RouterPath(path)) { _, _ in
        Response(
          status: .ok,
          headers: [
            .contentType: type, .contentSecurityPolicy: Self.policy,
            .cacheControl: "no-cache", .init("Referrer-Policy")!: "no-referrer",
          ],
          body: ResponseBody(byteBuffer: body))
      }
    }
  }
}
