import Primitives
import RelayCore

@testable import RelayStore

/// Stored notifications as the journal reads them: a damaged row is nothing, never a trap, and what
/// is read is written as the same bytes again.
///
/// The first byte of an input says whether its end is replaced by the right checksum: no fuzzer
/// finds one by itself.
enum JournalRows {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    guard let first = input.first else { return }
    let sequence = UInt64(first)
    var bytes = [UInt8](input.dropFirst())
    if first & 1 == 0 {
      let checksum = Checksum.crc32C(of: sequence, then: bytes.span)
      for shift in stride(from: 0, to: 32, by: 8) {
        bytes.append(UInt8(truncatingIfNeeded: checksum >> UInt32(shift)))
      }
    }
    var topics = TopicCache()
    guard let row = RecordCodec.decode(bytes.span, sequence: sequence, topics: &topics) else {
      return
    }
    var written: [UInt8] = []
    RecordCodec.encode(
      row.notification, acceptedAt: row.acceptedAt, sequence: sequence, into: &written)
    guard written == bytes else { throw Finding("written again it is \(written)") }
    let again = RecordCodec.decode(bytes.span, sequence: sequence, topics: &topics)
    guard again?.notification == row.notification, again?.acceptedAt == row.acceptedAt else {
      throw Finding("with a topic that is known it is another")
    }
    guard RecordCodec.decode(bytes.span, sequence: sequence &+ 1, topics: &topics) == nil else {
      throw Finding("it passes for the row of another sequence")
    }
  }
}
