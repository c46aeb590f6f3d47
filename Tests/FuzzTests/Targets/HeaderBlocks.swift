import CNghttp2

@testable import HTTP2

/// Header blocks, by our decoder and by libnghttp2's: the same fields, or both refuse.
///
/// An input is a session: its first byte chooses the limit of a header list and whether repeated
/// fields are told; then come blocks, each behind a byte with its length, and new limits of the
/// table in between.
struct HeaderBlocks {
  private struct Field: Equatable {
    var name: [UInt8]
    var value: [UInt8]

    var listBytes: Int { name.count + value.count + HPACKDynamicTable.overheadBytes }
  }

  private static let restOfInput: UInt8 = 0xEF
  private static let limits = [0, 32, 33, 64, 100, 150, 256, 400, 1_000, 2_048, 4_096, 4_096]

  private var state: SessionState
  private var inflater: OpaquePointer?
  /// The fields of the block reported last.
  private var before: [Field] = []
  /// The limit of the table was changed since the last block.
  private var isLimitNew = false
  /// And lies below what libnghttp2 lets the peer have, which then insists on hearing of it.
  private var owesSize = false

  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    guard let first = input.first else { return }
    var session = HeaderBlocks(first)
    defer { session.destroy() }
    var rest = UnsafeRawBufferPointer(rebasing: input.dropFirst())
    while let byte = rest.first {
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
      if byte > restOfInput {
        session.limit(limits[Int(byte & 0xF) % limits.count])
        continue
      }
      let count = byte == restOfInput ? rest.count : min(Int(byte), rest.count)
      let block = UnsafeRawBufferPointer(rebasing: rest[..<count])
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      guard try session.take(block) else { return }
    }
  }

  private init(_ choices: UInt8) {
    var limits = HTTP2Configuration()
    limits.tellsRepeatedFields = choices & 1 != 0
    limits.maximumHeaderListBytes = choices & 2 != 0 ? 8_000 : 1 << 18
    state = SessionState(role: .server, limits: limits)
    nghttp2_hd_inflate_new(&inflater)
  }

  private mutating func destroy() {
    state.table.destroy()
    nghttp2_hd_inflate_del(inflater)
  }

  /// A new limit; one at most between two blocks, as the relay has it.
  private mutating func limit(_ bytes: Int) {
    guard !isLimitNew else { return }
    isLimitNew = true
    owesSize = nghttp2_hd_inflate_get_max_dynamic_table_size(inflater) > bytes
    state.table.limit(bytes)
    nghttp2_hd_inflate_change_table_size(inflater, bytes)
  }

  /// Whether the session goes on after this block.
  private mutating func take(_ block: UnsafeRawBufferPointer) throws(Finding) -> Bool {
    state.beginBatch(block.count)
    state.decodeBlock(block, of: 1)
    // We may be more patient than libnghttp2 with a peer that owes a size.
    let saysSize = block.first.map { $0 & 0xE0 == 0x20 } ?? false
    if owesSize, !saysSize { return false }
    (isLimitNew, owesSize) = (false, false)
    let expected = inflate(block)
    if state.failure == .arenaFull { return false }
    guard let expected else {
      guard state.failure != nil else { throw Finding("libnghttp2 refuses, we do not") }
      return false
    }
    guard state.failure == nil else { throw Finding("we refuse, libnghttp2 does not") }
    let listBytes = expected.reduce(0) { $0 + $1.listBytes }
    guard listBytes == state.blockListBytes else {
      throw Finding("list of \(listBytes) bytes, we say \(state.blockListBytes)")
    }
    if listBytes > state.limits.maximumHeaderListBytes {
      guard state.fields.isEmpty else { throw Finding("fields of a list that is too large") }
    } else {
      try compare(expected)
    }
    state.dropUntaken()
    return true
  }

  /// The end of a block as `SessionState.headersEnded` has it, and what was told then.
  private mutating func compare(_ expected: [Field]) throws(Finding) {
    if state.limits.tellsRepeatedFields {
      if !state.memory.closesShape() { state.spellOutRepeated(state.fields.count) }
      state.memory.end()
    }
    guard state.fields.count == expected.count else {
      throw Finding("\(expected.count) fields, we say \(state.fields.count)")
    }
    for (index, field) in state.fields.enumerated() {
      if field.isRepeated {
        guard index < before.count, before.count == expected.count else {
          throw Finding("field \(index) repeats one that is not there")
        }
        guard before[index] == expected[index] else {
          throw Finding("field \(index) is not repeated: \(expected[index])")
        }
      } else {
        let ours = Field(
          name: Array(state.arena[field.name]), value: Array(state.arena[field.value]))
        guard ours == expected[index] else {
          throw Finding("field \(index) is \(expected[index]), we say \(ours)")
        }
      }
    }
    before = expected
  }

  /// The fields by libnghttp2; nil when it refuses.
  private func inflate(_ block: UnsafeRawBufferPointer) -> [Field]? {
    var fields: [Field] = []
    var offset = 0
    let bytes = block.baseAddress?.assumingMemoryBound(to: UInt8.self)
    while true {
      var field = nghttp2_nv()
      var flags: Int32 = 0
      let count = nghttp2_hd_inflate_hd2(
        inflater, &field, &flags, bytes.map { $0 + offset }, block.count - offset, 1)
      guard count >= 0 else { return nil }
      offset += count
      let isField = flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0
      if isField {
        fields.append(
          Field(
            name: Array(UnsafeBufferPointer(start: field.name, count: field.namelen)),
            value: Array(UnsafeBufferPointer(start: field.value, count: field.valuelen))))
      }
      if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
        nghttp2_hd_inflate_end_headers(inflater)
        return fields
      }
      if !isField && count == 0 { return nil }
    }
  }
}
