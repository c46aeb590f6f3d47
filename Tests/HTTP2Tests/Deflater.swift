import CNghttp2

@testable import HTTP2

/// libnghttp2's HPACK, which judges ours: it encodes what we decode, and decodes what we encode.
final class Deflater {
  private var deflater: OpaquePointer?

  init(tableBytes: Int = 4_096) { nghttp2_hd_deflate_new(&deflater, tableBytes) }

  deinit { nghttp2_hd_deflate_del(deflater) }

  func resize(_ bytes: Int) { nghttp2_hd_deflate_change_table_size(deflater, bytes) }

  func encode(_ fields: [Field]) -> [UInt8] {
    var block = [UInt8](repeating: 0, count: 64 + fields.reduce(0) { $0 + $1.bytes.count * 4 + 32 })
    var storage = fields.map(\.bytes)
    var values: [nghttp2_nv] = []
    return storage.withUnsafeMutableBufferPointer { storage in
      for index in fields.indices {
        let field = fields[index]
        // The arrays live in `storage` until the call is over.
        let base = storage[index].withUnsafeMutableBufferPointer { $0.baseAddress }
        values.append(
          nghttp2_nv(
            name: base, value: base.map { $0 + field.name.count }, namelen: field.name.count,
            valuelen: field.value.count,
            flags: field.isIndexed ? 0 : UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)))
      }
      let count = nghttp2_hd_deflate_hd(deflater, &block, block.count, &values, values.count)
      return Array(block[..<max(0, count)])
    }
  }
}

/// A field to encode, or one that was decoded.
struct Field: Equatable {
  var name: [UInt8]
  var value: [UInt8]
  var isIndexed = true

  init(_ name: String, _ value: String, isIndexed: Bool = true) {
    (self.name, self.value) = (Array(name.utf8), Array(value.utf8))
    self.isIndexed = isIndexed
  }

  init(_ name: [UInt8], _ value: [UInt8]) { (self.name, self.value) = (name, value) }

  var bytes: [UInt8] { name + value }

  static func == (left: Field, right: Field) -> Bool {
    left.name == right.name && left.value == right.value
  }
}

/// libnghttp2's decoder.
final class Inflater {
  private var inflater: OpaquePointer?

  init() { nghttp2_hd_inflate_new(&inflater) }

  deinit { nghttp2_hd_inflate_del(inflater) }

  func resize(_ bytes: Int) { nghttp2_hd_inflate_change_table_size(inflater, bytes) }

  /// The fields of a block; nil when it is wrong.
  func decode(_ block: [UInt8]) -> [Field]? {
    var fields: [Field] = []
    var offset = 0
    while true {
      var value = nghttp2_nv()
      var flags: Int32 = 0
      let count = block.withUnsafeBufferPointer {
        nghttp2_hd_inflate_hd2(
          inflater, &value, &flags, $0.baseAddress.map { $0 + offset }, block.count - offset, 1)
      }
      guard count >= 0 else { return nil }
      offset += count
      if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
        fields.append(
          Field(
            Array(UnsafeBufferPointer(start: value.name, count: value.namelen)),
            Array(UnsafeBufferPointer(start: value.value, count: value.valuelen))))
      }
      if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
        nghttp2_hd_inflate_end_headers(inflater)
        return fields
      }
      if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) == 0 && count == 0 { return nil }
    }
  }
}

/// Our decoder, as a server's session runs it.
struct RequestDecoder {
  private var state: SessionState

  init() {
    var limits = HTTP2Configuration()
    limits.maximumHeaderListBytes = 1 << 24
    state = SessionState(role: .server, limits: limits)
  }

  mutating func limitTable(_ bytes: Int) { state.table.limit(bytes) }

  /// The fields of a block and what they amount to; nil when it is wrong.
  mutating func decode(_ block: [UInt8]) -> (fields: [Field], traits: FieldTraits)? {
    state.beginBatch(block.count)
    block.withUnsafeBytes { state.decodeBlock($0, of: 1) }
    guard state.failure == nil else { return nil }
    let fields = state.fields.map {
      Field(Array(state.arena[$0.name]), Array(state.arena[$0.value]))
    }
    let traits = state.blockTraits
    state.dropUntaken()
    return (fields, traits)
  }

  mutating func destroy() { state.table.destroy() }
}
