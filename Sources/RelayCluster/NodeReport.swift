package import RelayRecording

/// What a node says of itself in its key, with every renewal of its lease.
package struct NodeReport: Hashable, Sendable {
  /// What a node does with a stripe that is its own.
  package enum Phase: UInt8, CaseIterable, Sendable {
    /// It is being read; what comes for it waits.
    case loading
    case live
    /// It is being let go, for somebody else.
    case leaving
  }

  package struct Holding: Hashable, Sendable {
    package var stripe: UInt8
    package var epoch: UInt64
    package var phase: Phase

    package init(stripe: UInt8, epoch: UInt64, phase: Phase) {
      self.stripe = stripe
      self.epoch = epoch
      self.phase = phase
    }
  }

  /// A stripe that the node has let go, and the run of the node that is to take it.
  package struct Offer: Hashable, Sendable {
    package var stripe: UInt8
    package var run: UInt64

    package init(stripe: UInt8, run: UInt64) {
      self.stripe = stripe
      self.run = run
    }
  }

  /// What nodes tell each other changes with this: a node of another form is no one to hop to.
  package static let form: UInt16 = 3

  /// 0 where the report cannot be read: what the node has is not known then.
  package var form = Self.form
  /// The node in addresses of streams.
  package var number: UInt16
  package var loopCount: UInt16
  /// It takes no stripes, and gives its own away.
  package var isDraining = false
  package var holdings: [Holding] = []
  package var offers: [Offer] = []
  /// Stripes that it could not read, and tries again after a pause.
  package var unread: [UInt8] = []
  /// Where it listens, for people.
  package var provider = ""
  package var device = ""
  package var admin = ""

  package init(number: UInt16, loopCount: UInt16) {
    self.number = number
    self.loopCount = loopCount
  }

  /// What another version says, in a form that this one does not know.
  package static let unreadable = {
    var report = NodeReport(number: 0, loopCount: 0)
    report.form = 0
    return report
  }()
}

extension NodeReport.Phase: BinaryCodable {}

extension NodeReport.Holding: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(stripe, epoch, phase) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(stripe: try reader.read(), epoch: try reader.read(), phase: try reader.read())
  }
}

extension NodeReport.Offer: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(stripe, run) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(stripe: try reader.read(), run: try reader.read())
  }
}

extension NodeReport: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(
      form, number, loopCount, isDraining, holdings, offers, unread, provider, device, admin)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    let form: UInt16 = try reader.read()
    self.init(number: try reader.read(), loopCount: try reader.read())
    self.form = form
    isDraining = try reader.read()
    holdings = try reader.read()
    offers = try reader.read()
    unread = try reader.read()
    provider = try reader.read()
    device = try reader.read()
    admin = try reader.read()
  }
}
