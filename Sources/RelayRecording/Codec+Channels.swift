import Primitives
package import RelayCore

extension ChannelID: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(word: high)
    writer.put(word: low)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(high: try reader.word(), low: try reader.word())
  }
}

extension Broadcast: Composite {
  package static let fields = Fields(Self.init, \.channel, \.number, \.acceptedAt, \.notification)
}

extension Subscription: Composite, Vacating {
  package static let fields = Fields(
    of: Self.vacant, \.app, \.channel, \.place, \.next, \.registration, \.last)
}

extension ShardChannel: Composite {
  package static let fields = Fields(Self.init, \.subscribers, \.stored, \.delivered)
}

extension FanOut: Composite {
  package static let fields = Fields(Self.init, \.broadcast, \.rest)
}
