/// Every number of the transfers in one place, all of them ours.
package struct TransferOptions: Hashable, Sendable {
  /// Until a connection stands, TLS included.
  package var connectTimeout = Duration.seconds(10)
  /// Without a byte in either direction.
  package var idleTimeout = Duration.seconds(60)
  /// Redirects of one request.
  package var redirects = 10
  /// How often it is tried again after the first time, and the wait before the first of these,
  /// which doubles each time up to the longest.
  package var retries = 6
  package var firstDelay = Duration.milliseconds(500)
  package var longestDelay = Duration.seconds(30)
  /// The largest file.
  package var maximumBytes: Int64 = 4 << 30
  /// Transfers at a time, of all phones; the others wait. Each takes a connection and a file.
  package var transfersAtOnce = 64
  /// Between two reports of progress.
  package var progressInterval = Duration.milliseconds(100)
  /// A file with certificates in PEM that are trusted beside the system's.
  package var trustRoots: String?

  package init() {}

  /// A server that sends an answer in parts has to give this much with each.
  static let leastPart: Int64 = 65_536
  /// What is written to and read from files at a time, in bytes.
  static let blockSize = 262_144
  /// What is read of an answer that nobody wants, in bytes.
  static let answerSize = 65_536
}
