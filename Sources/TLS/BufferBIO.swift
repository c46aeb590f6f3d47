internal import COpenSSL
internal import NIOCore

/// OpenSSL's transport during one call of a session: the caller's own buffers, swapped in. Between
/// calls both are empty and own no memory, so an idle connection costs little, and no byte is
/// copied on the way.
struct BufferBIO {
  var input = ByteBuffer()
  var output = ByteBuffer()

  /// A BIO over `state`, which must outlive it.
  static func makeBIO(over state: UnsafeMutablePointer<BufferBIO>) -> OpaquePointer? {
    guard let method, let bio = BIO_new(method) else { return nil }
    BIO_set_data(bio, state)
    BIO_set_init(bio, 1)
    return bio
  }

  /// Made once and never freed. `nonisolated(unsafe)`: written once by the initialiser, read-only
  /// for OpenSSL afterwards.
  private nonisolated(unsafe) static let method: OpaquePointer? = {
    let kind = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
    guard let method = BIO_meth_new(kind, "push-relay") else { return nil }
    BIO_meth_set_read_ex(method) { read($0, $1, $2, $3) }
    BIO_meth_set_write_ex(method) { write($0, $1, $2, $3) }
    // Flushing succeeds: there is nothing behind us. Everything else is answered "no".
    BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
    return method
  }()

  private static func state(of bio: OpaquePointer?) -> UnsafeMutablePointer<BufferBIO>? {
    BIO_get_data(bio)?.assumingMemoryBound(to: BufferBIO.self)
  }

  /// Gives OpenSSL the next input, or "later" when there is none.
  private static func read(
    _ bio: OpaquePointer?, _ target: UnsafeMutablePointer<CChar>?, _ capacity: Int,
    _ count: UnsafeMutablePointer<Int>?
  ) -> Int32 {
    pushrelay_BIO_clear_retry_flags(bio)
    guard let state = state(of: bio), let target else { return -1 }
    let available = min(capacity, state.pointee.input.readableBytes)
    guard available > 0 else {
      pushrelay_BIO_set_retry_read(bio)
      return -1
    }
    state.pointee.input.readWithUnsafeReadableBytes { source in
      UnsafeMutableRawBufferPointer(start: target, count: available)
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: source.prefix(available)))
      return available
    }
    count?.pointee = available
    return 1
  }

  private static func write(
    _ bio: OpaquePointer?, _ source: UnsafePointer<CChar>?, _ length: Int,
    _ count: UnsafeMutablePointer<Int>?
  ) -> Int32 {
    pushrelay_BIO_clear_retry_flags(bio)
    guard let state = state(of: bio), let source else { return -1 }
    state.pointee.output.writeBytes(UnsafeRawBufferPointer(start: source, count: length))
    count?.pointee = length
    return 1
  }
}
