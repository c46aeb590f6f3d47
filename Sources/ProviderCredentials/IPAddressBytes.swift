/// The network-order bytes of a textual IP address, for a certificate's subjectAltName.
enum IPAddressBytes {
  /// 4 or 16 bytes; `nil` for a name.
  static func parse(_ text: String) -> [UInt8]? {
    text.utf8.contains(UInt8(ascii: ":")) ? version6(text) : version4(text[...])
  }

  private static func version4(_ text: Substring) -> [UInt8]? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    var bytes: [UInt8] = []
    for part in parts {
      guard (1...3).contains(part.utf8.count),
        part.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
        let byte = UInt8(part)
      else { return nil }
      bytes.append(byte)
    }
    return bytes
  }

  /// RFC 4291 section 2.2: groups of hexadecimal digits, at most one `::`, optionally an IPv4
  /// address at the end. No zone.
  private static func version6(_ text: String) -> [UInt8]? {
    guard let gap = text.firstRange(of: "::") else {
      guard let bytes = groups(text[...]), bytes.count == 16 else { return nil }
      return bytes
    }
    guard let head = groups(text[..<gap.lowerBound], mayEndInVersion4: false),
      let tail = groups(text[gap.upperBound...]),
      head.count + tail.count <= 14
    else { return nil }
    return head + [UInt8](repeating: 0, count: 16 - head.count - tail.count) + tail
  }

  private static func groups(_ text: Substring, mayEndInVersion4: Bool = true) -> [UInt8]? {
    if text.isEmpty { return [] }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    var bytes: [UInt8] = []
    for (index, part) in parts.enumerated() {
      if mayEndInVersion4, index == parts.count - 1, part.utf8.contains(UInt8(ascii: ".")) {
        guard let last = version4(part) else { return nil }
        bytes += last
      } else {
        guard (1...4).contains(part.utf8.count), part.utf8.first != UInt8(ascii: "+"),
          part.utf8.first != UInt8(ascii: "-"), let group = UInt16(part, radix: 16)
        else { return nil }
        bytes += [UInt8(truncatingIfNeeded: group >> 8), UInt8(truncatingIfNeeded: group)]
      }
    }
    return bytes
  }
}
