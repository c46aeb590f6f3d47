import Testing

@testable import HTTP2

@Suite struct FieldRulesTests {
  private func kind(_ name: String) -> FieldKind {
    Array(name.utf8).withUnsafeBytes { FieldKind(name: $0) }
  }

  private func traits(_ name: String, _ value: String) -> FieldTraits {
    Array(value.utf8).withUnsafeBytes { FieldTraits(kind(name), value: $0) }
  }

  private func request(_ fields: [(String, String)]) -> FieldTraits {
    fields.reduce(into: FieldTraits()) { $0.add(traits($1.0, $1.1)) }
  }

  @Test func kinds() {
    for (name, expected) in [
      (":method", .method), (":scheme", .scheme), (":authority", .authority), (":path", .path),
      (":status", .otherPseudo), (":", .otherPseudo), (":protocol", .otherPseudo),
      ("host", .host), ("content-length", .contentLength), ("te", .te),
      ("connection", .connectionSpecific), ("keep-alive", .connectionSpecific),
      ("proxy-connection", .connectionSpecific), ("transfer-encoding", .connectionSpecific),
      ("upgrade", .connectionSpecific), ("apns-id", .regular), ("a", .regular),
      ("", .unusable), ("Host", .unusable), ("a b", .unusable), ("a:b", .unusable),
      ("a\u{7f}", .unusable), ("ü", .unusable), ("a\0", .unusable),
    ] as [(String, FieldKind)] {
      #expect(kind(name) == expected, "\(name)")
    }
  }

  /// Every byte in a name is allowed or not as libnghttp2 has it (RFC 9113 section 8.2.1).
  @Test func bytesOfNames() {
    let allowed = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz".utf8)
    for byte in UInt8.min...UInt8.max {
      let kind = [UInt8(ascii: "x"), byte].withUnsafeBytes { FieldKind(name: $0) }
      #expect((kind == .regular) == allowed.contains(byte), "\(byte)")
    }
  }

  /// Every byte at every place of values of several lengths.
  @Test func bytesOfValues() {
    for byte in UInt8.min...UInt8.max {
      for count in [1, 3, 8, 9, 15, 16, 23] {
        for place in 0..<count {
          var value = [UInt8](repeating: UInt8(ascii: "a"), count: count)
          value[place] = byte
          let regular = value.withUnsafeBytes { FieldTraits(.regular, value: $0) }
          let isControl = byte < 0x20 && byte != 9 || byte == 0x7F
          #expect(regular.contains(.malformed) == isControl, "\(byte) at \(place) of \(count)")
          let authority = value.withUnsafeBytes { FieldTraits(.authority, value: $0) }
          #expect(
            authority.contains(.malformed) == (byte < 0x21 || byte == 0x7F),
            "\(byte) at \(place) of \(count)")
        }
      }
    }
  }

  private static let valid = [
    (":method", "POST"), (":scheme", "https"), (":path", "/"), (":authority", "relay"),
  ]

  @Test func requests() {
    func with(_ name: String, _ value: String) -> [(String, String)] {
      Self.valid.map { $0.0 == name ? (name, value) : $0 }
    }
    for (fields, isRequest) in [
      (Self.valid, true), (Array(Self.valid.reversed()), true),
      (Self.valid + [("host", "relay"), ("content-length", "3"), ("te", "Trailers")], true),
      (Self.valid.dropLast() + [("host", "relay")], true),
      (Array(Self.valid.dropLast()), false), (Array(Self.valid.dropFirst()), false),
      (Self.valid + Self.valid.suffix(1), false), ([("a", "b")] + Self.valid, false),
      (Self.valid + [("host", "a"), ("host", "a")], false),
      (Self.valid + [("content-length", "3"), ("content-length", "3")], false),
      (Self.valid + [("content-length", "+3")], false), (Self.valid + [("te", "gzip")], false),
      (Self.valid + [("upgrade", "h2c")], false), (with(":path", ""), false),
      (with(":method", ""), false), (with(":scheme", ""), false), (with(":authority", ""), false),
      (Self.valid.dropLast() + [("host", "")], false),
      (with(":path", "*"), false), (with(":path", "a"), false),
      (with(":path", "*").map { $0.0 == ":method" ? ($0.0, "OPTIONS") : $0 }, true),
      (with(":scheme", "gopher").map { $0.0 == ":path" ? ($0.0, "a") : $0 }, true),
      ([(":method", "CONNECT"), (":authority", "relay:443")], true),
      (with(":method", "CONNECT"), false), ([(":method", "CONNECT")], false),
    ] as [([(String, String)], Bool)] {
      #expect(request(fields).isRequest == isRequest, "\(fields)")
    }
  }

  @Test func trailers() {
    #expect(request([("checksum", "1"), ("te", "trailers")]).areTrailers)
    #expect(request([]).areTrailers)
    #expect(!request([(":path", "/")]).areTrailers)
    #expect(!request([("Checksum", "1")]).areTrailers)
  }

  @Test func numbers() {
    for (text, expected) in [
      ("0", 0), ("4096", 4_096), ("999999999999999999", 999_999_999_999_999_999), ("", nil),
      ("-1", nil), ("1 ", nil), ("1000000000000000000", nil),
    ] as [(String, Int?)] {
      #expect(Array(text.utf8).withUnsafeBytes { FieldTraits.number($0) } == expected, "\(text)")
    }
  }
}
