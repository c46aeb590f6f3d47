/// Errors of an HTTP/2 connection or of a call on it. The first group ends the connection (a GOAWAY
/// is queued where the peer can still read it); the second is about one call and leaves the
/// connection as it was.
package enum HTTP2Error: Error, Equatable, Sendable {
  /// The client did not open with the connection preface (RFC 9113 section 3.4).
  case badPreface
  /// PING, SETTINGS or CONTINUATION frames came faster than they could be answered, or the client
  /// had more than `HTTP2Configuration.maximumIdleWork` done for nothing: frames without effect,
  /// streams abandoned before their answers ("rapid reset", CVE-2023-44487).
  case flooded
  /// One `receive` would have kept more than `HTTP2Configuration.maximumArenaBytes`.
  case arenaFull
  /// Frames for a peer that does not read passed `maximumQueuedFrames`.
  case tooManyQueuedFrames
  /// The peer broke the protocol; code (RFC 9113 section 7) and text are in a GOAWAY.
  case connection(code: UInt32, reason: String)
  /// An error code of libnghttp2's (out of memory, mostly).
  case library(code: Int32)

  /// The stream is gone, or never was: a benign race with a peer that left.
  case streamClosed(StreamID)
  case headersAlreadySent(StreamID)
  case headersTooLarge(StreamID)
  /// Body bytes before headers, or after `finish`.
  case notWritable(StreamID)
  /// Above `maximumQueuedBytes` of the stream or `maximumQueuedConnectionBytes`.
  case queueFull(StreamID)
  /// `request` on a server session, `respond` on a client session.
  case wrongRole
  /// A GOAWAY was sent or received, or stream ids ran out.
  case noNewStreams
}

/// HTTP/2 error codes, RFC 9113 section 7.
package enum HTTP2ErrorCode {
  package static let noError: UInt32 = 0x0
  package static let protocolError: UInt32 = 0x1
  package static let internalError: UInt32 = 0x2
  package static let flowControlError: UInt32 = 0x3
  package static let streamClosed: UInt32 = 0x5
  package static let frameSizeError: UInt32 = 0x6
  /// The request was not processed; it may be sent again.
  package static let refusedStream: UInt32 = 0x7
  package static let cancel: UInt32 = 0x8
  package static let compressionError: UInt32 = 0x9
  package static let enhanceYourCalm: UInt32 = 0xb
}
