/// The limits of one HTTP/2 connection. Every buffer of a session is bounded by one of these.
package struct HTTP2Configuration: Sendable {
  /// SETTINGS_MAX_CONCURRENT_STREAMS as told to the peer (server only; APNs: 1, later 1,000).
  package var maximumConcurrentStreams: UInt32 = 1_000
  /// Streams really accepted at once, when more than advertised. Clients with prior knowledge open
  /// many streams before they have read our SETTINGS; up to this number they are served, above it
  /// they are refused. 0: what is advertised.
  package var toleratedConcurrentStreams: UInt32 = 0
  /// SETTINGS_INITIAL_WINDOW_SIZE: bytes a peer may send on a stream before we let it go on.
  package var initialWindowSize: UInt32 = 65_535
  /// Bytes a peer may send on the whole connection before we let it go on (at least 65,535).
  package var connectionWindowSize: UInt32 = 1 << 20
  /// SETTINGS_MAX_HEADER_LIST_SIZE, counted as RFC 9113 section 6.5.2 does (8,000 was seen at
  /// Apple's, jchambers/pushy issue 878).
  package var maximumHeaderListBytes = 8_000
  /// HPACK dynamic table, both directions: SETTINGS_HEADER_TABLE_SIZE for what we receive, and the
  /// most we use for what we send. Costs up to this much memory twice per connection.
  package var headerTableBytes = 4_096
  /// Body bytes of one stream that are reported; what comes above is counted, not kept.
  package var maximumBodyBytes = 65_536
  /// Dropped body bytes of one stream after which the stream is reset. Larger than the window, so
  /// that there is always time to answer 413 first.
  package var maximumDiscardedBytes = 1 << 20
  /// Bytes that may wait on one stream for the peer's window; `write` fails above it.
  package var maximumQueuedBytes = 1 << 20
  /// Bytes that may wait on all streams together, as much memory as they take; `write` and
  /// `respond` with a body fail above it.
  package var maximumQueuedConnectionBytes = 64 << 20
  /// Header and body bytes of one batch, and the memory of its fields. HPACK turns one byte into
  /// thousands, so this is not bounded by the bytes received; it is 32 times a read of 64 KiB, of
  /// which requests as short as they can be make 26 times as much.
  package var maximumArenaBytes = 2 << 20
  /// Control frames that may wait for a peer that does not read (server only; responses count).
  package var maximumQueuedFrames = 20_000
  /// Streams a client may abandon unanswered, beyond one for each one it let finish.
  package var maximumUnansweredResets = 1_000

  /// Whether `HeaderField.isRepeated` is told. For peers that send nearly the same head again and
  /// again; costs the memory of one header block for each connection.
  package var tellsRepeatedFields = false

  package init() {}

  /// Bytes of a request's header block in all its frames, and how many frames may continue it: both
  /// far beyond what a header list within its limit needs ("CONTINUATION flood", CVE-2024-27316).
  static let maximumBlockBytes = 65_536
  static let maximumContinuations = 8
  /// Bytes of an answer's head: it fits a frame.
  static let maximumAnswerHeadBytes = 8_000

  /// What libnghttp2 enforces: the larger of the advertised and the tolerated number.
  var enforcedConcurrentStreams: UInt32 {
    max(maximumConcurrentStreams, toleratedConcurrentStreams)
  }
}
