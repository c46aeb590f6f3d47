import Testing

@testable import PhoneRuntime

@Suite struct ContentRangeTests {
  @Test(arguments: [
    ("bytes 0-0/1", ContentRange.part(0...0, of: 1)), ("bytes 5-9/*", .part(5...9, of: nil)),
    ("Bytes 5-9/10", .part(5...9, of: 10)), ("bytes */10", .none(of: 10)),
    ("bytes */0", .none(of: 0)),
    (
      "bytes 0-9223372036854775806/9223372036854775807",
      .part(0...(Int64.max - 1), of: Int64.max)
    ),
  ])
  func read(text: String, range: ContentRange) { #expect(ContentRange(text) == range) }

  @Test(arguments: [
    "", "bytes", "bytes ", "bytes /", "bytes 0-0", "bytes -5/10", "bytes 5-/10", "bytes 5-4/10",
    "bytes 5-10/10", "bytes +5-9/10", "bytes 5-9/-1", "bytes 5--9/10", "bytes */*", "lines 0-1/2",
    "bytes 0-1/2/3", "bytes 0-1-2/3", "bytes 0-9223372036854775807/9223372036854775808",
    "bytes=0-1/2", "bytes 0 - 1/2", "bytes ٣-٥/٩",
  ])
  func refused(text: String) { #expect(ContentRange(text) == nil) }
}
