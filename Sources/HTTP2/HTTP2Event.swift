/// An HTTP/2 stream identifier (RFC 9113 section 5.1.1): odd, opened by the client, never reused.
package typealias StreamID = Int32

package enum HTTP2Role: Sendable {
  case server
  case client
}

/// One header field: two ranges into `HTTP2Session.arena`. Names are lower case (RFC 9113 8.2.1).
package struct HeaderField: Equatable, Sendable {
  package let name: Range<Int>
  package let value: Range<Int>

  /// Same name and value as the field at this place in the connection's last reported block; the
  /// ranges are empty. Then all names of both blocks are the same, in order. Needs
  /// `HTTP2Configuration.tellsRepeatedFields`.
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

/// An event on a connection. Only numbers: ranges point into the session's `arena` or `fields` and
/// are valid until the next `receive`.
package enum HTTP2Event: Equatable, Sendable {
  /// A request (server) or a final response (client; 1xx are skipped); `fields` indexes
  /// `HTTP2Session.fields`.
  case headers(StreamID, fields: Range<Int>, endStream: Bool)
  /// The header list passed `maximumHeaderListBytes` (RFC 9113 section 6.5.2). It is dropped, and
  /// the body too, without events: a server answers 431, a client resets. `closed` follows as
  /// usual.
  case headersTooLarge(StreamID)
  /// Body bytes; adjacent pieces of a batch are joined. An empty range carries only the end.
  case data(StreamID, bytes: Range<Int>, endStream: Bool)
  /// The body passed `maximumBodyBytes`. Reported once; later bytes are dropped, and the end comes
  /// as `.data(empty, endStream: true)` unless `endStream` is true here.
  case bodyTooLarge(StreamID, endStream: Bool)
  /// All bytes written to this stream are sent, and it is open for more.
  case drained(StreamID)
  /// The stream is gone; `errorCode` 0 is the ordinary end.
  case closed(StreamID, errorCode: UInt32)
  /// The peer ends the connection; streams above `lastStream` were not processed and follow as
  /// `closed` with `refusedStream`.
  case goAwayReceived(lastStream: StreamID, errorCode: UInt32, debugData: Range<Int>)
  /// PINGs arrived; they are answered already.
  case pingReceived
  /// The peer's SETTINGS arrived; `peerMaximumConcurrentStreams` is up to date.
  case settingsReceived
}
