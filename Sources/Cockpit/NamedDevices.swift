import AdminAPI
import Hummingbird
import RelayCore
import RelayServer

/// Lets a device's name stand for its id wherever this API takes one. The names are the task's, as
/// ids are read in many places that know nothing of the relay.
struct NamedDevices: RouterMiddleware {
  @TaskLocal private static var names: DeviceNames?

  let relay: Relay

  func handle(
    _ request: Request, context: AdminContext,
    next: (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    try await Self.with(relay) { try await next(request, context) }
  }

  static func with<Value>(_ relay: Relay, _ body: () async throws -> Value) async rethrows -> Value
  {
    try await $names.withValue(relay.names, operation: body)
  }

  static func name(of device: DeviceID) -> String? { names?[device] }

  /// A part of a path without its percent-encoding (RFC 3986 section 2.1).
  static func unescaped(_ part: String) -> String {
    var pieces = part.split(separator: "%", omittingEmptySubsequences: false)[...]
    var bytes = Array((pieces.popFirst() ?? "").utf8)
    for piece in pieces {
      guard let byte = UInt8(piece.prefix(2), radix: 16), piece.utf8.count >= 2 else { return part }
      bytes += [byte] + Array(piece.utf8.dropFirst(2))
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// nil for a text that is neither the id nor the name of a device.
  static func device(_ text: String) throws(Refusal) -> DeviceID? {
    if let id = DeviceID(text) { return id }
    let named = names?.devices(named: text) ?? []
    guard named.count < 2 else {
      throw .conflict(
        "AmbiguousName",
        "\(named.count) phones are called \(text): say which by its id; search= lists them")
    }
    return named.first
  }
}
