extension UInt8 {
  /// Whether the byte is an ASCII letter or digit.
  @inlinable public var isLetterOrDigit: Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20)
      || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self)
  }
}

extension String {
  /// The text with blanks behind it, so that it has `width` characters or more.
  package func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
