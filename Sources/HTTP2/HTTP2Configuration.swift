/// The limits of one HTTP/2 connection. Every buffer of a session is bounded by one of these.
package struct HTTP2Configuration: Sendable {
  /// SETTINGS_MAX_CONCURRENT_STREAMS as announced (server only; APNs: 1, later 1,000).
  package var maximumConcurrentStreams: UInt32 = 1_000
  /// Streams accepted at once, if more than announced: clients with prior knowledge open many
  /// before they have read our SETTINGS. 0 for what is announced.
  package var toleratedConcurrentStreams: UInt32 = 0
  /// SETTINGS_INITIAL_WINDOW_SIZE, in bytes.
  package var initialWindowSize: UInt32 = 65_535
  /// The connection's window in bytes (at least 65,535).
  package var connectionWindowSize: UInt32 = 1 << 20
  /// SETTINGS_MAX_HEADER_LIST_SIZE, counted as in RFC 9113 section 6.5.2 (8,000 was seen at
  /// Apple's, jchambers/pushy issue 878).
  package var maximumHeaderListBytes = 8_000
  /// Bytes of each HPACK dynamic table: SETTINGS_HEADER_TABLE_SIZE for receiving, and our maximum
  /// for sending.
  package var headerTableBytes = 4_096
  /// Body bytes of one stream that are reported; more are counted, not kept.
  package var maximumBodyBytes = 65_536
  /// Dropped body bytes until the stream is reset. Above the window, to leave time to answer 413
  /// first.
  package var maximumDiscardedBytes = 1 << 20
  /// Bytes that may wait on one stream; `write` fails above it.
  package var maximumQueuedBytes = 1 << 20
  /// Memory that may wait on all streams, in bytes; `write` and `respond` with a body fail above
  /// it.
  package var maximumQueuedConnectionBytes = 64 << 20
  /// Header and body bytes of a batch, and its fields' memory. HPACK turns one byte into thousands,
  /// so this is a limit of its own: 32 times a read of 64 KiB; the shortest requests need 26 times.
  package var maximumArenaBytes = 2 << 20
  /// Control frames that may wait for a peer that does not read (server only; responses count).
  package var maximumQueuedFrames = 20_000
  /// Work that a client may have done for nothing, in frames without effect (server only; see
  /// `SessionState.charge`). Above half of it `HTTP2Session.isTiresome`, above all it is flooded.
  package var maximumIdleWork = 10_000

  /// Reports `HeaderField.isRepeated`; costs the memory of a header block per connection.
  package var tellsRepeatedFields = false

  package init() {}

  /// Bytes of a request's header block in all frames, and CONTINUATION frames in it: far beyond
  /// what a header list in its limit needs ("CONTINUATION flood", CVE-2024-27316).
  static let maximumBlockBytes = 65_536
  static let maximumContinuations = 8
  /// A stream that ends unanswered, in frames without effect: its request was read and decoded. An
  /// answer makes good for one.
  static let abandonedStreamWork = 10
  /// DATA frames with fewer bytes, not the last of their stream, are as good as empty.
  static let smallestUsefulBytes = 8
  /// Bytes of an answer's head: it fits a frame.
  static let maximumAnswerHeadBytes = 8_000

  var enforcedConcurrentStreams: UInt32 {
    max(maximumConcurrentStreams, toleratedConcurrentStreams)
  }
}
