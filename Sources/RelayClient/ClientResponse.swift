import RelayCore

/// Header fields in order; names are lower case (RFC 9113 section 8.2.1).
package struct ClientHeaders: Equatable, Sendable {
  package var fields: [(name: String, value: String)] = []

  package init() {}

  package subscript(name: String) -> String? {
    fields.first { $0.name == name }?.value
  }

  package static func == (left: ClientHeaders, right: ClientHeaders) -> Bool {
    left.fields.elementsEqual(right.fields) { $0.name == $1.name && $0.value == $1.value }
  }
}

package struct ClientResponse: Equatable, Sendable {
  /// 200 to 599.
  package var status: Int
  package var headers: ClientHeaders
  package var body: [UInt8]

  package var text: String { String(decoding: body, as: UTF8.self) }
}

struct RequestHead: Sendable {
  var method: String
  var path: String
  var headers: [(name: String, value: String)]
}

/// The body of a refusal: `{"reason":"…"}`, with a `timestamp` from the provider API where a device
/// token has ended (Apple, "Handling notification responses from APNs"), with a `message` from the
/// device API.
package struct ReasonBody: Equatable, Sendable {
  package var reason: String
  package var message: String?
  /// UNIX milliseconds.
  package var timestamp: Int64?

  /// nil when the bytes are not a JSON object with a `reason`.
  package init?(_ bytes: [UInt8]) {
    var reason: String?
    let span = bytes.span
    do {
      var cursor = try ObjectCursor(span)
      while let member = try cursor.next(span) {
        let value = String(decoding: bytes[member.text], as: UTF8.self)
        switch String(decoding: bytes[member.key], as: UTF8.self) {
        case "reason" where member.isString: reason = value
        case "message" where member.isString: message = value
        case "timestamp": timestamp = Int64(value)
        default: break
        }
      }
    } catch {
      return nil
    }
    guard let reason else { return nil }
    self.reason = reason
  }
}
