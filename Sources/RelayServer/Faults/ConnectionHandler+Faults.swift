import Glibc
import HTTP2
import NIOCore
import NIOPosix
import Primitives
import RelayFaults
import Transport

/// A connection on which nothing passes.
struct Muting {
  /// In the machine's time.
  let since: Instant
  let input: Input

  enum Input { case taken, lost, leftInSocket }
}

extension ConnectionHandler {
  /// Ends it with a TCP reset, as a router or a crashed peer does.
  func resetConnection() {
    guard let context else { return }
    // With no time to linger, the kernel sends RST instead of FIN (socket(7), SO_LINGER).
    (context.channel as? any SocketOptionProvider)?
      .setSoLinger(linger(l_onoff: 1, l_linger: 0))
      .whenComplete { [channel = context.channel] _ in channel.close(promise: nil) }
  }

  func sayGoAway(_ goAway: Fault.GoAway) {
    guard transport.isEstablished else { return }
    let debugData = Array(#"{"reason":"Shutdown"}"#.utf8)
    switch goAway {
    case .once: transport.http2.goAway(errorCode: 0, debugData: debugData)
    case .twice:
      transport.http2.announceGoAway()
      transport.http2.goAway(errorCode: 0, debugData: debugData)
    case .bare: transport.http2.goAway(errorCode: 0, debugData: [])
    }
    markDirty()
  }

  /// The peer sees the end of the stream, but may still send.
  func closeOutput() {
    muting = Muting(since: RelayClock.steady, input: .taken)
    context?.close(mode: .output, promise: nil)
  }

  func mute(isForGood: Bool) {
    muting = Muting(since: RelayClock.steady, input: isForGood ? .lost : .leftInSocket)
    endTurn()
  }

  func unmute() {
    guard muting != nil else { return }
    muting = nil
    endTurn()
    markDirty()
  }
}
