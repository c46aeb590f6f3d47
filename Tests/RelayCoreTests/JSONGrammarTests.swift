import Foundation
import Primitives
import RelayCore
import Testing

private func isAccepted(_ bytes: [UInt8]) -> Bool {
  (try? scanPayload(bytes.span)) != nil
}

/// What the platform's reader says: is it JSON, and an object.
private func isObjectByFoundation(_ bytes: [UInt8]) -> Bool {
  (try? JSONSerialization.jsonObject(with: Data(bytes))) is [String: Any]
}

/// Random JSON texts with every feature of the grammar.
private struct DocumentGenerator {
  var random: SeededRandom

  mutating func document() -> [UInt8] {
    var text: [UInt8] = []
    space(&text)
    object(&text, depth: 0, isAps: false)
    space(&text)
    return text
  }

  private mutating func pick<T>(_ items: [T]) -> T {
    items[Int.random(in: 0..<items.count, using: &random)]
  }

  private mutating func space(_ text: inout [UInt8]) {
    for _ in 0..<pick([0, 0, 0, 1, 3]) { text.append(pick([0x20, 0x0A, 0x0D, 0x09])) }
  }

  private mutating func object(_ text: inout [UInt8], depth: Int, isAps: Bool) {
    text.append(UInt8(ascii: "{"))
    space(&text)
    for index in 0..<pick([0, 1, 2, 5]) {
      if index > 0 { text.append(UInt8(ascii: ",")) }
      space(&text)
      var enters = false
      if depth == 0, pick([true, false]) {
        text += Array(#""aps""#.utf8)
        enters = true
      } else if isAps {
        text += Array(("\"" + pick(ApsKey.allCases).name + "\"").utf8)
      } else {
        // The number keeps the keys different: readers differ on duplicates.
        string(&text, prefix: "\(index)")
      }
      space(&text)
      text.append(UInt8(ascii: ":"))
      space(&text)
      if enters { object(&text, depth: 1, isAps: true) } else { value(&text, depth: depth + 1) }
      space(&text)
    }
    text.append(UInt8(ascii: "}"))
  }

  private mutating func value(_ text: inout [UInt8], depth: Int) {
    switch pick(depth > 5 ? [2, 3, 4] : [0, 1, 2, 2, 3, 3, 4]) {
    case 0: object(&text, depth: depth, isAps: false)
    case 1:
      text.append(UInt8(ascii: "["))
      for index in 0..<pick([0, 1, 3]) {
        if index > 0 { text.append(UInt8(ascii: ",")) }
        space(&text)
        value(&text, depth: depth + 1)
        space(&text)
      }
      text.append(UInt8(ascii: "]"))
    case 2: string(&text, prefix: "")
    case 3: number(&text)
    default: text += Array(pick(["true", "false", "null"]).utf8)
    }
  }

  private mutating func number(_ text: inout [UInt8]) {
    if pick([true, false, false]) { text.append(UInt8(ascii: "-")) }
    text += Array(pick(["0", "1", "10", "42", "987654321"]).utf8)
    if pick([true, false]) { text += Array(pick([".0", ".5", ".000", ".125"]).utf8) }
    if pick([true, false, false]) { text += Array(pick(["e0", "E+1", "e-2", "e05"]).utf8) }
  }

  private mutating func string(_ text: inout [UInt8], prefix: String) {
    text.append(UInt8(ascii: "\""))
    text += Array(prefix.utf8)
    for _ in 0..<pick([0, 1, 2, 4, 9, 20]) {
      let piece = pick([
        "a", "b c", "plain text", #"\""#, #"\\"#, #"\/"#, #"\b\f\n\r\t"#, #"\u0041"#,
        #"\uD83D\uDE00"#,
        #"\u00e9"#, "é", "ß", "漢字", "😀", "\u{7FF}\u{800}", "\u{FFFF}\u{10000}\u{10FFFF}", "\u{7F}",
        "{", "}", "[", ":", ",",
      ])
      text += Array(piece.utf8)
    }
    text.append(UInt8(ascii: "\""))
  }
}

@Suite struct JSONGrammarTests {
  @Test func acceptsGeneratedDocumentsAndNoTruncation() {
    for seed in 0..<UInt64(200) {
      var generator = DocumentGenerator(random: SeededRandom(seed: seed))
      let document = generator.document()
      let text = String(decoding: document, as: UTF8.self)
      #expect(isAccepted(document), "seed \(seed): \(text)")
      #expect(isObjectByFoundation(document), "seed \(seed): \(text)")
      let end = (document.lastIndex(of: UInt8(ascii: "}")) ?? 0)
      var accepted = -1
      for length in 0...end where isAccepted(Array(document[..<length])) { accepted = length }
      #expect(accepted == -1, "seed \(seed): cut at \(accepted) of \(text)")
    }
  }

  @Test func agreesWithFoundationOnMutations() {
    var refused = 0
    var total = 0
    for seed in 1000..<UInt64(1300) {
      var generator = DocumentGenerator(random: SeededRandom(seed: seed))
      let document = generator.document()
      for round in 0..<25 {
        let mutant = mutate(document, using: &generator.random)
        guard !isKnownDifference(mutant) else { continue }
        let ours = isAccepted(mutant)
        total += 1
        refused += ours ? 0 : 1
        #expect(
          ours == isObjectByFoundation(mutant),
          "seed \(seed) round \(round): \(String(decoding: mutant, as: UTF8.self).debugDescription)"
        )
      }
    }
    #expect(
      refused > total / 4 && refused < total, "the mutations hit and miss: \(refused)/\(total)")
  }

  /// One to three small damages: a byte changed, removed, added, or a part said twice.
  private func mutate(_ document: [UInt8], using random: inout SeededRandom) -> [UInt8] {
    var bytes = document
    let interesting =
      Array("{}[]:,\"\\/ \n0123456789-+.eEtfnu\u{1}\u{7f}".utf8) + [0x80, 0xC3, 0xE2, 0xF0]
    for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
      let index = Int.random(in: 0..<bytes.count, using: &random)
      let byte = interesting[Int.random(in: 0..<interesting.count, using: &random)]
      switch Int.random(in: 0..<4, using: &random) {
      case 0: bytes[index] = byte
      case 1: bytes.remove(at: index)
      case 2: bytes.insert(byte, at: index)
      default: bytes.insert(contentsOf: bytes[index..<min(index + 4, bytes.count)], at: index)
      }
    }
    return bytes
  }

  /// Where Foundation is known to go its own way: it takes a comma before a closing brace, and
  /// refuses numbers that its types cannot hold.
  private func isKnownDifference(_ bytes: [UInt8]) -> Bool {
    do throws(PayloadError) {
      _ = try scanPayload(bytes.span)
      let exponents = bytes.indices.filter { bytes[$0] | 0x20 == UInt8(ascii: "e") }
      return exponents.contains { start in
        bytes[(start + 1)...].prefix { "+-0123456789".utf8.contains($0) }.count >= 3
      }
    } catch {
      guard case .notJSON(let offset) = error, bytes[offset...].first == UInt8(ascii: "}")
      else { return false }
      return bytes[..<offset].last { $0 > 0x20 } == UInt8(ascii: ",")
    }
  }

  @Test func everySecondByteOfEveryLeadByte() {
    for lead in UInt8(0x80)...0xFF {
      for second in UInt8(0)...0xFF {
        for tail in [[], [0x80], [0x80, 0xBF], [0x80, 0xBF, 0x80], [0x80, 0x7F]] as [[UInt8]] {
          let character = [lead, second] + tail
          let document = Array(#"{"a":""#.utf8) + character + Array(#""}"#.utf8)
          // A quote or backslash as a later byte ends or changes the string; the text is then
          // invalid whatever follows, as the lead byte already wants more.
          let isValid =
            String(validating: character, as: UTF8.self) != nil
            && !character.contains { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C }
          // Not `#expect`: it costs more than the scan, and there are 164,000 of them.
          if isAccepted(document) != isValid { Issue.record("\(character)") }
        }
      }
    }
  }

  @Test func everySpecialByteAtEveryPlaceOfAWord() {
    for length in 0..<19 {
      for place in 0..<max(length, 1) {
        for byte in UInt8(0)...0xFF {
          var content = [UInt8](repeating: UInt8(ascii: "x"), count: length)
          if length > 0 { content[place] = byte }
          let isPlain = length == 0 || (0x20..<0x80).contains(byte) && byte != 0x22 && byte != 0x5C
          for (head, tail) in [(#"{"a":""#, #""}"#), (#"{""#, #"":1}"#)] {
            let document = Array(head.utf8) + content + Array(tail.utf8)
            guard isAccepted(document) != isPlain else { continue }
            // An escape that happens to be one: none of the letters behind it is an x.
            Issue.record("length \(length) place \(place) byte \(byte) in \(head)")
          }
        }
      }
    }
  }

  @Test func garbageNeverTraps() {
    for seed in 0..<UInt64(1500) {
      var random = SeededRandom(seed: seed)
      let alphabet = Array(#"{}[]:,"\u0019.eE+-truefalsn aps"#.utf8)
      let isWild = seed % 2 == 0
      let bytes = (0..<Int.random(in: 0...300, using: &random)).map { _ in
        isWild
          ? UInt8.random(in: 0...255, using: &random)
          : alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
      }
      for prefix in [[], Array(#"{"aps":{""#.utf8), Array(#"{"aps":{"alert":"#.utf8)] {
        do throws(PayloadError) {
          _ = try scanPayload((prefix + bytes).span)
        } catch {
          guard case .notJSON(let offset) = error else { continue }
          #expect((0...prefix.count + bytes.count).contains(offset), "seed \(seed)")
        }
      }
    }
  }

  @Test func knownDifferencesFromFoundation() {
    let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF] + Array("{}".utf8)
    #expect(!isAccepted(byteOrderMark))
    for text in [#"{"a":"\ud800"}"#, #"{"a":"\udc00x"}"#] {
      #expect(!isAccepted(Array(text.utf8)), "a lone surrogate names no character")
    }
    let deep =
      #"{"a":"# + String(repeating: "[", count: 70) + String(repeating: "]", count: 70) + "}"
    #expect(!isAccepted(Array(deep.utf8)))
    #expect(isObjectByFoundation(Array(deep.utf8)))
    #expect(!isAccepted(Array(#"{"a":1,}"#.utf8)), "no comma behind the last member")
    #expect(isAccepted(Array(#"{"a":1e999,"a":1}"#.utf8)), "any number that fits the grammar")
  }
}
