/// An HTTP/2 stream identifier (RFC 9113 section 5.1.1): odd, opened by the client, never reused.
package typealias StreamID = Int32

/// Which end of the connection a session is.
package enum HTTP2Role: Sendable {
  /// Accepts requests.
  case server
  /// Makes requests.
  case client
}

/// One header field: two ranges into `HTTP2Session.arena`. Names are lower case (RFC 9113 8.2.1).
package struct HeaderField: Equatable, Sendable {
  /// Bytes of the name, a leading colon included for pseudo-header fields.
  package let name: Range<Int>
  /// Bytes of the value, as they came.
  package let value: Range<Int>

  /// The same name and value as the field at this place of the header block reported before on
  /// this connection; the ranges are empty. Then all names of the block are the same, in the same
  /// order. Only with `HTTP2Configuration.tellsRepeatedFields`.
  package let isRepeated: Bool

  package init(name: Range<Int>, value: Range<Int>) {
    self.name = name
    self.value = value
    self.isRepeated = false
  }

  init(repeatedAt place: Int) {
    self.name = Range(uncheckedBounds: (place, place))
    self.value = self.name
    self.isRepeated = true
  }
}

/// What happened on a connection, in order. Only numbers: ranges point into the session's `arena`
/// or `fields` and hold until the next `receive`.
package enum HTTP2Event: Equatable, Sendable {
  /// A whole header block: a request (server) or a final response (client; 1xx are skipped).
  /// `fields` is a range of indices into `HTTP2Session.fields`.
  case headers(StreamID, fields: Range<Int>, endStream: Bool)
  /// The header list passed `maximumHeaderListBytes` (names + values + 32 per field, RFC 9113
  /// section 6.5.2). Nothing of it is kept and the body is swallowed without further events: a
  /// server answers 431, a client resets. `closed` ends it as usual.
  case headersTooLarge(StreamID)
  /// Body bytes; neighbouring pieces of one batch are joined. An empty range carries only the end.
  case data(StreamID, bytes: Range<Int>, endStream: Bool)
  /// The body passed `maximumBodyBytes`. Reported once; later bytes are counted and dropped, and
  /// the end comes as `.data(empty, endStream: true)` unless `endStream` says it is here already.
  case bodyTooLarge(StreamID, endStream: Bool)
  /// Everything written to this stream has been handed out by `send`, and it is open for more.
  case drained(StreamID)
  /// The stream is gone, whatever the reason; `errorCode` 0 is the ordinary end.
  case closed(StreamID, errorCode: UInt32)
  /// The peer ends the connection; streams above `lastStream` were not looked at and are reported
  /// `closed` with `refusedStream`.
  case goAwayReceived(lastStream: StreamID, errorCode: UInt32, debugData: Range<Int>)
  /// One or more PINGs arrived; they are answered already.
  case pingReceived
  /// The answer to `ping` with the same number.
  case pingAcknowledged(UInt64)
  /// The peer's SETTINGS arrived; `peerMaximumConcurrentStreams` now says what it allows.
  case settingsReceived
}
