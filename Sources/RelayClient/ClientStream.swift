import DeviceLink
import RelayCore

/// Resets the stream once all readers and writers are gone.
final class StreamOwner: Sendable {
  let box: StreamBox
  let inbox: ClientInbox

  init(box: StreamBox, inbox: ClientInbox) {
    self.box = box
    self.inbox = inbox
  }

  deinit {
    inbox.send(.abandon(box))
  }
}

/// An open stream in both directions. Unread bytes are bounded (`ClientOptions.unreadStreamBytes`):
/// a slow reader stops its whole connection, so do not wait for another answer of the same
/// connection while leaving a busy stream unread.
package final class ClientStream: Sendable {
  package let status: Int
  package let headers: ClientHeaders
  private let owner: StreamOwner
  /// Stays open while the stream is in use.
  package let connection: RelayClient

  init(_ head: ClientResponse, owner: StreamOwner, connection: RelayClient) {
    status = head.status
    headers = head.headers
    self.owner = owner
    self.connection = connection
  }

  /// Returns the bytes that have arrived, waiting for some; nil at the end. Throws what broke the
  /// stream, or `cancelled`.
  package func read() async throws(ClientError) -> [UInt8]? {
    while true {
      switch owner.box.read() {
      case .bytes(let bytes, let wasOverfull):
        if wasOverfull { owner.inbox.send(.resumeReading) }
        return bytes
      case .end: return nil
      case .failure(let error): throw error
      case .nothing:
        guard !Task.isCancelled else { throw .cancelled }
        await owner.box.waitForBytes()
      }
    }
  }

  /// The first line without its line feed; it stays to be read. nil when none comes. Throws
  /// `cancelled`.
  package func firstLine() async throws(ClientError) -> [UInt8]? {
    while true {
      if let line = owner.box.firstLine { return line }
      guard owner.box.awaitsLine else { return nil }
      guard !Task.isCancelled else { throw .cancelled }
      await owner.box.waitForLine()
    }
  }

  /// Reads to the end. Throws `responseTooLarge` beyond the limit.
  package func readAll(limitBytes: Int = 1 << 20) async throws(ClientError) -> [UInt8] {
    var all: [UInt8] = []
    while let bytes = try await read() {
      guard all.count + bytes.count <= limitBytes else {
        throw .responseTooLarge(limitBytes: limitBytes)
      }
      all.append(contentsOf: bytes)
    }
    return all
  }

  /// The stream's lines, without line ends and empty lines.
  package var lines: Lines { Lines(stream: self) }

  /// Writes to the request's body; waits only if the server is slow to read. Up to `pieceBytes`
  /// arrive unmixed with other tasks' writes.
  package func write(_ bytes: [UInt8]) async throws(ClientError) {
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + Self.pieceBytes)
      while !(try owner.box.reserve(end - start)) {
        guard !Task.isCancelled else { throw .cancelled }
        await owner.box.waitForRoom()
      }
      let isWhole = start == 0 && end == bytes.count
      owner.inbox.send(.write(isWhole ? bytes : Array(bytes[start..<end]), owner.box))
      start = end
    }
  }

  /// Ends the request's body; the answer goes on.
  package func finish() {
    owner.box.finishWriting()
    owner.inbox.send(.finish(owner.box))
  }

  /// Ends both directions at once.
  package func cancel() {
    owner.inbox.send(.abandon(owner.box))
  }

  /// Bytes that one write hands over as one.
  package static let pieceBytes = 65_536
}

extension ClientStream {
  /// The lines of a stream, for one loop. Throws `lineTooLong` beyond `Limits.lineBytes`.
  package struct Lines: AsyncSequence, Sendable {
    package typealias Element = [UInt8]
    package typealias Failure = ClientError
    fileprivate let stream: ClientStream

    package struct AsyncIterator: AsyncIteratorProtocol {
      fileprivate let stream: ClientStream
      private var splitter = LineSplitter()
      /// Lines that arrived together, last first.
      private var waiting: [LineSplitter.Piece] = []
      private var hasEnded = false

      fileprivate init(stream: ClientStream) {
        self.stream = stream
      }

      package var hasMore: Bool { !waiting.isEmpty }

      package mutating func next(
        isolation actor: isolated (any Actor)?
      ) async throws(ClientError) -> [UInt8]? {
        while waiting.isEmpty {
          guard !hasEnded else { return nil }
          var pieces: [LineSplitter.Piece] = []
          if let bytes = try await stream.read() {
            splitter.receive(bytes.span) { pieces.append($0) }
          } else {
            hasEnded = true
            splitter.finish { pieces.append($0) }
          }
          pieces.reverse()
          waiting = pieces
        }
        switch waiting.popLast() {
        case .line(let line): return line
        case .tooLong: throw .lineTooLong(limitBytes: Limits.lineBytes)
        case nil: return nil
        }
      }
    }

    package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(stream: stream) }
  }
}
