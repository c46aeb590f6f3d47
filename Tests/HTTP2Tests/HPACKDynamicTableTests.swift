import Primitives
import Testing

@testable import HTTP2

@Suite struct HPACKDynamicTableTests {
  private func text(_ bytes: UnsafeRawBufferPointer) -> String {
    String(decoding: bytes, as: UTF8.self)
  }

  private func insert(_ name: String, _ value: String, into table: inout HPACKDynamicTable) -> Int?
  {
    Array(name.utf8).withUnsafeBytes { name in
      Array(value.utf8).withUnsafeBytes { value in
        table.insert(
          name: name, value: value, kind: .regular, traits: .regular, nameIdentity: nil)?.field
      }
    }
  }

  @Test func theStaticTableIsThatOfTheStandard() {
    let table = HPACKStaticTable()
    // The first, the last, and where names come again (RFC 7541, Appendix A).
    for (index, name, value, nameIndex) in [
      (1, ":authority", "", 1), (2, ":method", "GET", 2), (3, ":method", "POST", 2),
      (5, ":path", "/index.html", 4), (7, ":scheme", "https", 6), (8, ":status", "200", 8),
      (14, ":status", "500", 8), (16, "accept-encoding", "gzip, deflate", 16),
      (31, "content-type", "", 31), (61, "www-authenticate", "", 61),
    ] {
      #expect(text(table[index].name) == name)
      #expect(text(table[index].value) == value)
      #expect(table[index].nameIdentity == nameIndex)
    }
    // All of it, as libnghttp2 decodes it.
    let inflater = Inflater()
    for index in 1...HPACKStaticTable.count {
      let expected = inflater.decode([0x80 | UInt8(index)])
      #expect(expected == [Field(Array(table[index].name), Array(table[index].value))])
    }
    #expect(table[57].kind == .connectionSpecific && table[28].kind == .contentLength)
  }

  @Test func indicesCountFromTheNewest() {
    var table = HPACKDynamicTable()
    defer { table.destroy() }
    #expect(table.identity(at: 0) == nil)
    #expect(table.identity(at: 61) == 61)
    #expect(table.identity(at: 62) == nil)
    let first = insert("a", "1", into: &table)
    let second = insert("b", "2", into: &table)
    #expect(table.identity(at: 62) == second)
    #expect(table.identity(at: 63) == first)
    #expect(table.identity(at: 64) == nil)
    #expect(text(table.field(second!).name) == "b")
    #expect(text(table.field(first!).value) == "1")
  }

  /// Against a plain list, through thousands of inserts and changes of size.
  @Test func anyHistoryIsThatOfAPlainList() {
    for seed in UInt64(0)..<20 {
      var random = SeededRandom(seed: seed)
      var table = HPACKDynamicTable()
      defer { table.destroy() }
      var list: [(name: String, value: String)] = []
      func size() -> Int { list.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 } }
      for _ in 0..<200 {
        if Int.random(in: 0..<20, using: &random) == 0 {
          let bytes = Int.random(in: 0...4_200, using: &random)
          #expect(table.resize(bytes) == (bytes <= 4_096))
        } else {
          let name = "n\(Int.random(in: 0..<9, using: &random))"
          let value = String(
            repeating: "v", count: [0, 3, 70, 900, 5_000].randomElement(using: &random)!)
          let identity = insert(name, value, into: &table)
          list.insert((name, value), at: 0)
          let bytes = name.utf8.count + value.utf8.count + 32
          #expect((identity != nil) == (bytes <= table.maximumBytes))
        }
        while size() > table.maximumBytes { list.removeLast() }
        #expect(table.count == list.count && table.sizeBytes == size(), "seed \(seed)")
        for place in list.indices {
          guard let identity = table.identity(at: 62 + place) else {
            Issue.record("seed \(seed)")
            return
          }
          let field = table.field(identity)
          #expect(text(field.name) == list[place].name, "seed \(seed)")
          #expect(field.value.count == list[place].value.utf8.count, "seed \(seed)")
        }
      }
    }
  }
}
