import Testing

@testable import HTTP2

/// The heads of answers, with libnghttp2 for a reader.
@Suite struct HPACKEncoderTests {
  private func encode(_ head: HeaderBlock) -> [UInt8] {
    var bytes = [UInt8](repeating: 0xFF, count: head.encodedBytes)
    let count = bytes.withUnsafeMutableBytes { $0.baseAddress.map { head.encode(into: $0) } ?? 0 }
    return Array(bytes[..<count])
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
    let inflater = Inflater()
    for number in 0..<400 {
      #expect(inflater.decode(encode(head(number))) == fields(number), "\(number)")
    }
  }

  /// One that wants a smaller table waits for a size before the first head.
  @Test(arguments: [0, 64, 4096]) func aPeerMayWantNoTable(size: Int) {
    let inflater = Inflater()
    inflater.resize(size)
    #expect(inflater.decode([HeaderBlock.emptiesTable] + encode(head(1))) == fields(1))
    #expect(inflater.decode(encode(head(2))) == fields(2))
    inflater.resize(32)
    #expect(inflater.decode(encode(head(3))) == fields(3))
  }

  @Test(arguments: [(200, 1), (404, 1), (410, 5), (429, 5), (503, 5)])
  func aStatusIsFoundOrSpelledOut(status: Int, count: Int) {
    var head = HeaderBlock()
    head.append(":status", status)
    #expect(encode(head).count == count)
    #expect(Inflater().decode(encode(head)) == [Field(":status", "\(status)")])
  }

  @Test func aSecretIsNeverToBeIndexed() {
    var head = HeaderBlock()
    head.append(name: "n", value: "s", indexing: .withoutIndexing)
    // RFC 7541 section 6.2.3.
    #expect(encode(head) == [0x10, 1, UInt8(ascii: "n"), 1, UInt8(ascii: "s")])
  }
}
