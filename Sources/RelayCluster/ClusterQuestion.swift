import RelayCore
package import RelayRecording
package import RelayStore

enum ClusterQuestion: Hashable, Sendable {
  case feedback(after: Int64, limit: Int)
  /// Which of these tokens are registered.
  case owned([DeviceToken])
  /// A question of the relay, opaque here.
  case relay([UInt8])
  /// Do the loops know the node of this number?
  case knows(UInt16)
}

/// Part of the listing of unregistered tokens, complete up to `end`.
package struct ListingPart: Hashable, Sendable {
  package var items: [FeedbackItem]
  package var end: Int64
}

extension ClusterQuestion: BinaryCodable {
  func write(to writer: inout ByteWriter) {
    switch self {
    case .feedback(let position, let limit): writer.put(tag: 1, position, limit)
    case .owned(let tokens): writer.put(tag: 2, tokens)
    case .relay(let question): writer.put(tag: 3, question)
    case .knows(let number): writer.put(tag: 4, number)
    }
  }

  init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 1: self = .feedback(after: try reader.read(), limit: try reader.read())
    case 2: self = .owned(try reader.read())
    case 3: self = .relay(try reader.read())
    case 4: self = .knows(try reader.read())
    default: throw reader.invalid(Self.self)
    }
  }
}

extension ListingPart: Composite {
  package static let fields = Fields(Self.init(items:end:)) { ($0.items, $0.end) }
}
