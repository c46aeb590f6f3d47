import FoundationEssentials

/// base64url without padding (RFC 4648 section 5, as RFC 7515 section 2 narrows it).
enum Base64URL {
  /// The decoded bytes, or `nil`. Strict, so that a token has one spelling: no padding, no line
  /// breaks, no leftover bits in the last character.
  static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    let text = String(decoding: text, as: UTF8.self)
    let standard = text.replacing("-", with: "+").replacing("_", with: "/")
    let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    guard let bytes = Data(base64Encoded: standard + padding), encode(bytes) == text else {
      return nil
    }
    return Array(bytes)
  }

  static func encode(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}
