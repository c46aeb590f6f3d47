/// What can go wrong with an HTTP/2 connection or with a call made on it.
///
/// The first group ends the connection (a GOAWAY is queued where the peer can still understand
/// one); the second group is about one call and leaves the connection as it was.
package enum HTTP2Error: Error, Equatable, Sendable {
  /// The client did not open with the connection preface (RFC 9113 section 3.4).
  case badPreface
  /// PING, SETTINGS or CONTINUATION frames came faster than they could be answered.
  case flooded
  /// The peer abandons streams instead of waiting for answers ("rapid reset", CVE-2023-44487).
  case excessiveResets
  /// One `receive` would have had to keep more than `HTTP2Configuration.maximumArenaBytes`.
  case arenaFull
  /// Frames queued for a peer that does not read them passed `maximumQueuedFrames`.
  case tooManyQueuedFrames
  /// The peer broke the protocol; the code (RFC 9113 section 7) and text went out in a GOAWAY.
  case connection(code: UInt32, reason: String)
  /// libnghttp2 gave up with this code of its own (out of memory, mostly).
  case library(code: Int32)

  /// The stream is gone, or never was: a benign race with a peer that left.
  case streamClosed(StreamID)
  /// Headers were already sent on this stream.
  case headersAlreadySent(StreamID)
  /// The head of an answer is longer than a frame.
  case headersTooLarge(StreamID)
  /// Body bytes were written before headers, or after the end of the stream was asked for.
  case notWritable(StreamID)
  /// More than `HTTP2Configuration.maximumQueuedBytes` would wait on this stream, or more than
  /// `maximumQueuedConnectionBytes` on all.
  case queueFull(StreamID)
  /// `request` on a server session, `respond` on a client session.
  case wrongRole
  /// No new stream may be opened: a GOAWAY was sent or received, or stream ids ran out.
  case noNewStreams
}

/// HTTP/2 error codes, RFC 9113 section 7.
package enum HTTP2ErrorCode {
  /// Graceful end.
  package static let noError: UInt32 = 0x0
  /// The peer broke a rule that has no code of its own.
  package static let protocolError: UInt32 = 0x1
  /// Our own fault.
  package static let internalError: UInt32 = 0x2
  /// More bytes than the window allowed.
  package static let flowControlError: UInt32 = 0x3
  /// A frame for a stream that is half closed.
  package static let streamClosed: UInt32 = 0x5
  /// A frame of the wrong length.
  package static let frameSizeError: UInt32 = 0x6
  /// Nothing of the request was looked at; it may be sent again.
  package static let refusedStream: UInt32 = 0x7
  /// The stream is no longer wanted.
  package static let cancel: UInt32 = 0x8
  /// HPACK state is lost.
  package static let compressionError: UInt32 = 0x9
  /// The peer behaves in a way that costs too much.
  package static let enhanceYourCalm: UInt32 = 0xb
}
