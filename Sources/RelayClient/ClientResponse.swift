/// Header fields in the order they came; names are lower case (RFC 9113 section 8.2.1).
package struct ClientHeaders: Equatable, Sendable {
  package var fields: [(name: String, value: String)] = []

  package init() {}

  /// The first value of this name.
  package subscript(name: String) -> String? {
    fields.first { $0.name == name }?.value
  }

  package static func == (left: ClientHeaders, right: ClientHeaders) -> Bool {
    left.fields.elementsEqual(right.fields) { $0.name == $1.name && $0.value == $1.value }
  }
}

/// A whole answer.
package struct ClientResponse: Equatable, Sendable {
  /// The HTTP status, 200 to 599.
  package var status: Int
  package var headers: ClientHeaders
  package var body: [UInt8]

  /// The body as text, invalid UTF-8 replaced.
  package var text: String { String(decoding: body, as: UTF8.self) }
}

/// The head of a request: what stands before its body.
struct RequestHead: Sendable {
  var method: String
  var path: String
  var headers: [(name: String, value: String)]
}
