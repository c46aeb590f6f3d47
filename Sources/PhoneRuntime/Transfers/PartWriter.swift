import NIOCore
import NIOPosix
import SystemPackage

/// Writes a download to its part file in blocks, without gaps.
struct PartWriter: ~Copyable {
  private let descriptor: SystemPackage.FileDescriptor
  private var pending = ByteBuffer()
  /// Including pending bytes.
  private(set) var bytes: Int64

  /// Appends after `bytes`; 0 starts a new file.
  init(_ path: String, behind bytes: Int64) throws(TransferError) {
    do {
      descriptor = try SystemPackage.FileDescriptor.open(
        FilePath(path), .writeOnly, options: bytes == 0 ? [.create, .truncate] : [.append],
        permissions: [.ownerReadWrite])
    } catch {
      throw TransferError(error)
    }
    self.bytes = bytes
  }

  deinit { try? descriptor.close() }

  /// Full blocks are written on a thread that may block.
  mutating func append(_ chunk: ByteBuffer) async throws(TransferError) {
    pending.writeImmutableBuffer(chunk)
    bytes += Int64(chunk.readableBytes)
    guard pending.readableBytes >= TransferOptions.blockSize else { return }
    let block = pending
    pending = ByteBuffer()
    let descriptor = descriptor
    do {
      _ = try await NIOThreadPool.singleton.runIfActive {
        try descriptor.writeAll(block.readableBytesView)
      }
    } catch {
      throw TransferError(error)
    }
  }

  /// Writes the rest, less than a block, synchronously: a cancelled task cannot wait.
  mutating func finish() throws(TransferError) {
    let block = pending
    pending = ByteBuffer()
    do {
      try descriptor.writeAll(block.readableBytesView)
    } catch {
      throw TransferError(error)
    }
  }
}
