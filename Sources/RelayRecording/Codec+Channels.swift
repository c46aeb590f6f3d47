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
  package static let fields = Fields(
    Self.init(channel:number:acceptedAt:notification:)
  ) { ($0.channel, $0.number, $0.acceptedAt, $0.notification) }
}

extension Subscription: Composite, Vacating {
  package static let fields = Fields(
    of: Self.vacant, \.app, \.channel, \.place, \.next, \.registration, \.last)
}

extension ShardChannel: Composite {
  package static let fields = Fields(Self.init(subscribers:stored:delivered:)) {
    ($0.subscribers, $0.stored, $0.delivered)
  }
}

extension FanOut: Composite {
  package static let fields = Fields(Self.init(broadcast:rest:)) { ($0.broadcast, $0.rest) }
}
