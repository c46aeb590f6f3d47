import NIOCore
import NIOPosix
import SystemPackage

/// What an upload sends: a file, or as many bytes made up on the way. Read in blocks, when there is
/// room to send them.
struct UploadBody: AsyncSequence, Sendable {
  /// The file; nil for made up bytes.
  let path: String?
  let bytes: Int64
  let progress: ProgressReporter

  init(_ order: TransferOrder, _ progress: ProgressReporter) throws(TransferError) {
    self.progress = progress
    let stat: Stat
    do {
      stat = try FilePath(order.file).stat()
    } catch Errno.noSuchFileOrDirectory {
      path = nil
      bytes = order.bytes
      return
    } catch {
      throw TransferError(error)
    }
    guard stat.type == .regular else { throw .failed("\(order.file) is no file that can be sent") }
    path = order.file
    bytes = stat.size
  }

  func makeAsyncIterator() -> Iterator { Iterator(self) }

  struct Iterator: AsyncIteratorProtocol {
    private let body: UploadBody
    private var sent: Int64 = 0
    private var file: OpenFile?

    fileprivate init(_ body: UploadBody) { self.body = body }

    /// Every byte tells its place, modulo 256, so that a gap would show.
    private static let pattern = ByteBuffer(
      bytes: (0..<TransferOptions.blockSize).map { UInt8(truncatingIfNeeded: $0) })

    mutating func next() async throws -> ByteBuffer? {
      let count = Int(Swift.min(Int64(TransferOptions.blockSize), body.bytes - sent))
      guard count > 0 else { return nil }
      let block =
        body.path == nil ? Self.pattern.getSlice(at: 0, length: count) : try await read(count)
      // The end of a file that was cut meanwhile: whoever sends it sees that bytes are missing.
      guard let block, block.readableBytes > 0 else { return nil }
      sent += Int64(block.readableBytes)
      body.progress.moved(to: sent)
      return block
    }

    private mutating func read(_ count: Int) async throws -> ByteBuffer? {
      guard let path = body.path else { return nil }
      let file = try self.file ?? OpenFile(path)
      self.file = file
      return try await NonBlockingFileIO(threadPool: .singleton).read(
        fileHandle: file.handle, byteCount: count, allocator: ByteBufferAllocator())
    }
  }

  /// Closed when nobody reads it any more.
  private final class OpenFile: Sendable {
    let handle: NIOFileHandle

    init(_ path: String) throws {
      let file = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
      handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: file.rawValue)
    }

    deinit { try? handle.close() }
  }
}
