package import DeviceModel

/// One HTTP transfer to be performed.
package struct TransferOrder: Hashable, Sendable {
  /// `http://` or `https://`.
  package var url: String
  package var direction: TransferRequest.Direction
  /// Whether a download goes on where it was interrupted. Where that was, the file beside `file`
  /// tells, not the phone, which may have been stopped before it heard of the last bytes.
  package var resumes: Bool
  /// The value of the field `Authorization`; nil for none.
  package var authorization: String?
  /// Where a finished download is kept, and what an upload sends if there is such a file. One
  /// transfer at a time may use it.
  package var file: String
  /// What an upload sends when there is no such file: so many bytes, made up on the way.
  package var bytes: Int64

  package init(
    url: String, direction: TransferRequest.Direction = .download, resumes: Bool = true,
    authorization: String? = nil, file: String, bytes: Int64 = 0
  ) {
    self.url = url
    self.direction = direction
    self.resumes = resumes
    self.authorization = authorization
    self.file = file
    self.bytes = max(0, bytes)
  }

  /// What is to be done when the phone says that a transfer has started; nil for one whose bytes
  /// the model moves. What the app provides goes along once the server has asked.
  package init?(_ transfer: Transfer, file: String) {
    guard transfer.isPerformed, let url = transfer.request.url else { return nil }
    self.init(
      url: url, direction: transfer.request.direction, resumes: transfer.request.resumes,
      authorization: transfer.hasCredentials ? transfer.request.authorization : nil, file: file,
      bytes: transfer.request.bytes)
  }
}

/// What is told of a transfer: `progressed` any number of times, and then one of the others, unless
/// it was cancelled.
package enum TransferReport: Hashable, Sendable {
  /// So many bytes in all; fewer than before when it had to start over.
  case progressed(bytes: Int64)
  /// The server wants to know who asks: status 401 or 407.
  case challenged
  /// A download is in its file, an upload was taken.
  case finished(bytes: Int64)
  /// And why.
  case failed(String)

  /// What the phone is to be told.
  package func events(of transfer: TransferID) -> [PhoneEvent] {
    switch self {
    case .progressed(let bytes): [.transferProgressed(transfer, bytes: bytes)]
    case .challenged: [.transferChallenged(transfer)]
    case .finished(let bytes):
      [.transferProgressed(transfer, bytes: bytes), .transferEnded(transfer, .finished)]
    case .failed: [.transferEnded(transfer, .failed)]
    }
  }
}

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
}
