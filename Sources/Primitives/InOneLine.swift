extension String {
  /// The text with `\u{…}` for what would begin another line, do something to a terminal, or turn
  /// the reading direction: what comes from outside is shown like this.
  public var inOneLine: String {
    guard unicodeScalars.contains(where: Self.isActive) else { return self }
    return unicodeScalars.reduce(into: "") { text, scalar in
      if Self.isActive(scalar) {
        text += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
  }

  /// C0, DEL and C1 controls (ECMA-48), line and paragraph separators, and what embeds or overrides
  /// the direction (UAX 9).
  package static func isActive(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }
}
