import Testing

@testable import HTTP2

/// The heads of answers, with libnghttp2 for a reader.
@Suite struct HPACKEncoderTests {
  private func encode(_ head: HeaderBlock, _ encoder: inout HPACKEncoder) -> [UInt8] {
    head.record.withUnsafeBytes { record in
      var target = [UInt8](repeating: 0xEE, count: HPACKEncoder.room(for: record) + 8)
      let count = target.withUnsafeMutableBytes {
        encoder.encode(record, into: $0.baseAddress!)
      }
      #expect(count <= target.count - 8)
      #expect(target.suffix(8).allSatisfy { $0 == 0xEE }, "written past the room")
      return Array(target[..<count])
    }
  }

  private func head(_ number: Int) -> HeaderBlock {
    var head = HeaderBlock()
    head.append(":status", literal: "200")
    head.append("content-type", literal: "application/json")
    head.append("apns-id", "id-\(number)", indexing: .nameOnly)
    head.append("apns-unique-id", String(repeating: "u", count: number), indexing: .nameOnly)
    head.append("set-cookie", "secret-\(number)", indexing: .withoutIndexing)
    head.append("x-plain", "plain")
    head.append(name: "made-\(number)", value: "at run time")
    return head
  }

  private func fields(_ number: Int) -> [Field] {
    [
      Field(":status", "200"), Field("content-type", "application/json"),
      Field("apns-id", "id-\(number)"),
      Field("apns-unique-id", String(repeating: "u", count: number)),
      Field("set-cookie", "secret-\(number)"), Field("x-plain", "plain"),
      Field("made-\(number)", "at run time"),
    ]
  }

  @Test func libnghttp2ReadsWhatWasSaid() {
    var encoder = HPACKEncoder()
    let inflater = Inflater()
    for number in 0..<400 {
      #expect(inflater.decode(encode(head(number), &encoder)) == fields(number), "\(number)")
    }
  }

  /// A peer that wants a smaller table, before the first answer or after some.
  @Test(arguments: [0, 1, 5]) func aPeerMayWantNoTable(before: Int) {
    var encoder = HPACKEncoder()
    let inflater = Inflater()
    for number in 0..<20 {
      if number == before {
        inflater.resize(64)
        encoder.limitTable(64)
      }
      if number == 10 { encoder.limitTable(4_096) }
      #expect(inflater.decode(encode(head(number), &encoder)) == fields(number), "\(number)")
    }
    encoder.limitTable(65_536)
    #expect(encode(head(1), &encoder).first == 0x88)
  }

  @Test func aSecretIsNeverToBeIndexed() {
    var encoder = HPACKEncoder()
    var head = HeaderBlock()
    head.append("set-cookie", "s", indexing: .withoutIndexing)
    // RFC 7541 section 6.2.3, with the static name 55.
    #expect(encode(head, &encoder) == [0x1F, 40, 1, UInt8(ascii: "s")])
    head.removeAll()
    head.append(name: "n", value: "s", indexing: .withoutIndexing)
    #expect(encode(head, &encoder) == [0x10, 1, UInt8(ascii: "n"), 1, UInt8(ascii: "s")])
  }

  /// Far more literals than are remembered, and more bytes than the peer's table holds.
  @Test func whatDoesNotFitIsSpelledOut() {
    var encoder = HPACKEncoder()
    let inflater = Inflater()
    for round in 0..<3 {
      for name in Self.manyNames {
        var head = HeaderBlock()
        head.append(name, String(repeating: "v", count: 300), indexing: .nameOnly)
        let expected = [Field("\(name)", String(repeating: "v", count: 300))]
        #expect(inflater.decode(encode(head, &encoder)) == expected, "\(name), round \(round)")
      }
    }
  }

  private static let manyNames: [StaticString] = [
    "n-0", "n-1", "n-2", "n-3", "n-4", "n-5", "n-6", "n-7", "n-8", "n-9", "n-10", "n-11", "n-12",
    "n-13", "n-14", "n-15", "n-16", "n-17", "n-18", "n-19", "n-20", "n-21", "n-22", "n-23", "n-24",
    "n-25", "n-26", "n-27", "n-28", "n-29", "n-30", "n-31", "n-32", "n-33", "n-34", "n-35", "n-36",
  ]
}
