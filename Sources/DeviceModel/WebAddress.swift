/// An `http` or `https` address with a host, an optional port, and only characters that need no
/// percent encoding.
///
/// Strict, so that any HTTP library can handle it: some end the process over a port that is too
/// large, or an empty host in brackets.
package struct WebAddress: Hashable, Sendable {
  package let text: String
  package let isSecure: Bool
  /// In lower case, IPv6 addresses in brackets.
  package let host: String
  /// The scheme's default if not given.
  package let port: UInt16

  package init(_ text: String) throws(WebAddressError) {
    guard let secure = Self.isSecure(text) else { throw .scheme }
    guard text.unicodeScalars.allSatisfy({ Self.isAllowed($0) }) else { throw .characters }
    let place = text.dropFirst(secure ? 8 : 7).prefix { !"/?#".contains($0) }
    guard !place.contains("@") else { throw .user }
    let isBracketed = place.hasPrefix("[")
    let length = isBracketed ? place.firstIndex(of: "]").map { place[...$0].count } : nil
    let host = isBracketed ? place.prefix(length ?? 0) : place.prefix { $0 != ":" }
    let allowed = isBracketed ? Self.inBrackets : Self.inName
    let name = isBracketed ? host.dropFirst().dropLast() : host
    guard !name.isEmpty, name.allSatisfy({ allowed.contains($0) }) else { throw .host }
    let rest = place.dropFirst(host.count)
    if rest.isEmpty {
      port = secure ? 443 : 80
    } else {
      guard rest.hasPrefix(":"), rest.dropFirst().allSatisfy({ $0.isNumber }),
        let number = UInt16(rest.dropFirst()), number > 0
      else { throw .port }
      port = number
    }
    self.text = text
    isSecure = secure
    self.host = host.lowercased()
  }

  /// The same server: credentials for one apply to the other.
  package func hasOrigin(of other: WebAddress) -> Bool {
    isSecure == other.isSecure && host == other.host && port == other.port
  }

  private static let letters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
  private static let digits = Set("0123456789")
  private static let inName = letters.union(digits).union("-._")
  private static let inBrackets = digits.union("abcdefABCDEF:.")

  /// RFC 3986, appendix A; brackets and `%` are allowed anywhere.
  private static func isAllowed(_ character: Unicode.Scalar) -> Bool {
    (0x21...0x7E).contains(character.value) && !"\"<>\\^`{|}".unicodeScalars.contains(character)
  }

  private static func isSecure(_ text: String) -> Bool? {
    let start = text.prefix(8).lowercased()
    return start == "https://" ? true : start.hasPrefix("http://") ? false : nil
  }
}

/// Why a text is no usable address.
package enum WebAddressError: String, Error, CaseIterable, CustomStringConvertible {
  case scheme = "an address that begins with http:// or https:// is wanted"
  case characters = "spaces and other such characters are written with % in an address"
  case user = "an address with a name and password is not wanted; there is authorization"
  case host = "the address has no host, or one with characters that no host has"
  case port = "the port of the address is no number from 1 to 65535"

  package var description: String { rawValue }
}
