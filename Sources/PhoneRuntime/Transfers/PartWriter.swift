import NIOCore
import NIOPosix
import SystemPackage

/// Writes a download to its part file, in blocks, and never more of it than has come without a gap.
struct PartWriter: ~Copyable {
  private let descriptor: SystemPackage.FileDescriptor
  private var pending = ByteBuffer()
  /// What is there, with what is not written yet.
  private(set) var bytes: Int64

  /// From the first byte on, or behind those that are there.
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

  /// Takes a chunk; a full block is written by a thread that may wait for the disk.
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

  /// Writes what is left, less than a block. At once, since a cancelled task waits for nothing.
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
