/// Writes one flat JSON object and a line feed, straight into bytes.
struct ObjectWriter {
  private var isFirst = true

  init(_ bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "{"))
  }

  mutating func member(_ key: String, _ text: String, to bytes: inout [UInt8]) {
    writeKey(key, to: &bytes)
    bytes.append(UInt8(ascii: "\""))
    writeEscaped(Array(text.utf8), to: &bytes)
    bytes.append(UInt8(ascii: "\""))
  }

  mutating func member(_ key: String, _ number: Int64, to bytes: inout [UInt8]) {
    writeKey(key, to: &bytes)
    bytes.append(contentsOf: String(number).utf8)
  }

  /// Writes a value that is JSON already. Its line breaks, which can only be white space between
  /// tokens (RFC 8259 section 7), become spaces.
  mutating func member(_ key: String, json: [UInt8], to bytes: inout [UInt8]) {
    writeKey(key, to: &bytes)
    let start = bytes.count
    bytes.append(contentsOf: json)
    for index in start..<bytes.count
    where bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r") {
      bytes[index] = UInt8(ascii: " ")
    }
  }

  /// Writes a string that needs no escapes.
  mutating func member(
    _ key: String, to bytes: inout [UInt8], plain body: (inout [UInt8]) -> Void
  ) {
    writeKey(key, to: &bytes)
    bytes.append(UInt8(ascii: "\""))
    body(&bytes)
    bytes.append(UInt8(ascii: "\""))
  }

  func end(_ bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "}"))
    bytes.append(UInt8(ascii: "\n"))
  }

  private mutating func writeKey(_ key: String, to bytes: inout [UInt8]) {
    if !isFirst { bytes.append(UInt8(ascii: ",")) }
    isFirst = false
    bytes.append(UInt8(ascii: "\""))
    bytes.append(contentsOf: key.utf8)
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
  }

  private func writeEscaped(_ text: [UInt8], to bytes: inout [UInt8]) {
    for byte in text {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(byte)
      case 0..<0x20:
        bytes.append(contentsOf: "\\u00".utf8)
        bytes.append(byte < 0x10 ? UInt8(ascii: "0") : UInt8(ascii: "1"))
        let low = byte & 0xF
        bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
      default:
        bytes.append(byte)
      }
    }
  }
}
