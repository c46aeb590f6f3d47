import NIOCore
import NIOPosix
import Transport

/// What all connections of one event loop share for the time of one call: an idle connection has no
/// buffers of its own.
final class LoopBuffers {
  var transport = TransportBuffers()
  var output = ByteBufferAllocator().buffer(capacity: 131_072)

  private static let perThread = ThreadSpecificVariable<NIOLoopBoundBox<LoopBuffers>>()

  /// Those of this event loop, which must be the one that asks.
  static func current(on eventLoop: any EventLoop) -> LoopBuffers {
    if let present = perThread.currentValue { return present.value }
    let made = LoopBuffers()
    perThread.currentValue = NIOLoopBoundBox(made, eventLoop: eventLoop)
    return made
  }
}
