/// Writes one flat JSON object and a line feed, straight into bytes.
struct ObjectWriter {
  private var isFirst = true

  mutating func member(_ key: LineKey, _ text: String, to bytes: inout [UInt8]) {
    writeKey(key, to: &bytes)
    bytes.append(UInt8(ascii: "\""))
    let isPlain = text.utf8.allSatisfy {
      $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
    }
    if isPlain {
      bytes.append(contentsOf: text.utf8)
    } else {
      writeEscaped(text, to: &bytes)
    }
    bytes.append(UInt8(ascii: "\""))
  }

  mutating func member(_ key: LineKey, _ number: Int64, to bytes: inout [UInt8]) {
    writeKey(key, to: &bytes)
    if number < 0 { bytes.append(UInt8(ascii: "-")) }
    bytes.append(decimal: number.magnitude)
  }

  /// Writes a value that is JSON already. Its line breaks, which can only be white space between
  /// tokens (RFC 8259 section 7), become spaces.
  mutating func member(_ key: LineKey, json: [UInt8], to bytes: inout [UInt8]) {
    writeKey(key, to: &bytes)
    let start = bytes.count
    bytes.append(contentsOf: json)
    guard json.hasLineBreaks else { return }
    for index in start..<bytes.count
    where bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r") {
      bytes[index] = UInt8(ascii: " ")
    }
  }

  /// Writes a string that needs no escapes.
  mutating func member(
    _ key: LineKey, to bytes: inout [UInt8], plain body: (inout [UInt8]) -> Void
  ) {
    writeKey(key, to: &bytes)
    bytes.append(UInt8(ascii: "\""))
    body(&bytes)
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes a member whose value is in the key.
  mutating func member(_ whole: LineKey, to bytes: inout [UInt8]) { writeKey(whole, to: &bytes) }

  func end(_ bytes: inout [UInt8]) {
    if isFirst { bytes.append(UInt8(ascii: "{")) }
    bytes.append(UInt8(ascii: "}"))
    bytes.append(UInt8(ascii: "\n"))
  }

  private mutating func writeKey(_ key: LineKey, to bytes: inout [UInt8]) {
    let start = bytes.count
    bytes.append(contentsOf: key.bytes)
    guard isFirst else { return }
    isFirst = false
    bytes[start] = UInt8(ascii: "{")
  }

  private func writeEscaped(_ text: String, to bytes: inout [UInt8]) {
    for byte in text.utf8 {
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

/// The name of a line's member as it is written, with the comma before it: a line is written for
/// each push, mostly of names.
struct LineKey: Sendable {
  let bytes: [UInt8]

  init(_ name: String) { bytes = Array(",\"\(name)\":".utf8) }

  /// A whole member, whose value is a word that needs no escapes.
  init(_ name: String, is word: String) { bytes = Array(",\"\(name)\":\"\(word)\"".utf8) }

  static let acceptedAt = LineKey("acceptedAt")
  static let channel = LineKey("channel")
  static let clock = LineKey("clock")
  static let collapseID = LineKey("collapseId")
  static let decision = LineKey("decision")
  static let decisions = LineKey("decisions")
  static let device = LineKey("device")
  static let epoch = LineKey("epoch")
  static let error = LineKey("error")
  static let expiresAt = LineKey("expiresAt")
  static let id = LineKey("id")
  static let keepAliveSeconds = LineKey("keepAliveSeconds")
  static let network = LineKey("network")
  static let next = LineKey("next")
  static let number = LineKey("number")
  static let order = LineKey("order")
  static let outcome = LineKey("outcome")
  static let owner = LineKey("owner")
  static let payload = LineKey("payload")
  static let power = LineKey("power")
  static let priority = LineKey("priority")
  static let reason = LineKey("reason")
  static let screen = LineKey("screen")
  static let sentAt = LineKey("sentAt")
  static let time = LineKey("time")
  static let told = LineKey("told")
  static let topic = LineKey("topic")
  static let type = LineKey("type")
  static let uniqueID = LineKey("uniqueId")
  static let until = LineKey("until")
  static let version = LineKey("version")
  static let wakesApp = LineKey("wakesApp")
}

extension [UInt8] {
  /// Looks at every byte, without an early end: so the optimizer takes many at once.
  fileprivate var hasLineBreaks: Bool {
    let bytes = span
    var found = false
    for index in bytes.indices {
      // Between both are two that no JSON has outside of escapes.
      if bytes[index] &- UInt8(ascii: "\n") <= 3 { found = true }
    }
    return found
  }

  /// Up to `Int64.min.magnitude`, which has 19 digits.
  fileprivate mutating func append(decimal number: UInt64) {
    var count = 1
    var bound: UInt64 = 10
    while number >= bound {
      count += 1
      bound *= 10
    }
    append(addingCapacity: count) { output in
      output.append(repeating: UInt8(ascii: "0"), count: count)
      var text = output.mutableSpan
      var rest = number
      for place in (0..<count).reversed() {
        text[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      }
    }
  }
}
