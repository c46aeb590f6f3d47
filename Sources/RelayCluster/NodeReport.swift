package import RelayRecording

/// A node's report in its key, written with every renewal of its lease.
package struct NodeReport: Hashable, Sendable {
  /// The state of a stripe on its owner.
  package enum Phase: UInt8, CaseIterable, Sendable {
    /// Being read; traffic waits.
    case loading
    case live
    case leaving
  }

  package struct Holding: Hashable, Sendable {
    package var stripe: UInt8
    package var epoch: UInt64
    package var phase: Phase
  }

  /// A released stripe, and the run of the node that is to claim it.
  package struct Offer: Hashable, Sendable {
    package var stripe: UInt8
    package var run: UInt64
  }

  /// The newest that the node reads; 0 when the report is unreadable and its holdings are unknown.
  package var form = ClusterForm.newest
  /// The node in addresses of streams.
  package var number: UInt16
  package var loopCount: UInt16
  /// The node claims no stripes and gives its own away.
  package var isDraining = false
  package var holdings: [Holding] = []
  package var offers: [Offer] = []
  /// Stripes that it could not read lately: it tries those that are free again after a pause, and
  /// is given none of the others.
  package var unread: [UInt8] = []
  /// Addresses, for people; phones are led to that of `device`.
  package var provider = ""
  package var device = ""
  package var admin = ""

  /// Stands for a report of another version.
  package static let unreadable = NodeReport(form: 0, number: 0, loopCount: 0)
}

extension NodeReport.Phase: BinaryCodable {}

extension NodeReport.Holding: Composite {
  package static let fields = Fields(Self.init(stripe:epoch:phase:)) {
    ($0.stripe, $0.epoch, $0.phase)
  }
}

extension NodeReport.Offer: Composite {
  package static let fields = Fields(Self.init(stripe:run:)) { ($0.stripe, $0.run) }
}

extension NodeReport: Composite {
  package static let fields = Fields(
    of: unreadable, \.form, \.number, \.loopCount, \.isDraining, \.holdings, \.offers, \.unread,
    \.provider, \.device, \.admin)
}
