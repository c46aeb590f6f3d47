/// HPACK's static table (RFC 7541, Appendix A).
struct HPACKStaticTable {
  static let count = 61

  /// Made once, never changed, hence safe to share; index 0 is unused.
  private nonisolated(unsafe) static let shared: UnsafePointer<HPACKDynamicTable.Field> =
    makeTable()

  private let entries: UnsafePointer<HPACKDynamicTable.Field>

  init() { entries = Self.shared }

  subscript(index: Int) -> HPACKDynamicTable.Field { entries[index] }

  private static func makeTable() -> UnsafePointer<HPACKDynamicTable.Field> {
    let table = UnsafeMutablePointer<HPACKDynamicTable.Field>.allocate(capacity: count + 1)
    var nameIndex = 0
    for (place, (name, value)) in ([fields[0]] + fields).enumerated() {
      let text = (bytes(name), bytes(value))
      if place <= 1 || !table[place - 1].name.elementsEqual(text.0) { nameIndex = place }
      let kind = FieldKind(name: text.0)
      (table + place).initialize(
        to: HPACKDynamicTable.Field(
          name: text.0, value: text.1, kind: kind,
          traits: FieldTraits(kind, value: text.1), nameIdentity: nameIndex))
    }
    return UnsafePointer(table)
  }

  private static func bytes(_ text: StaticString) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
  }

  private static let fields: [(StaticString, StaticString)] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""),
    ("via", ""), ("www-authenticate", ""),
  ]
}
