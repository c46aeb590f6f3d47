import HTTP2
import Primitives
import RelayCore
import Transport

/// With a cluster, a device's shard may be on another node, which may go away.
extension DeviceConnection {
  /// The relay ends: says so to phones whose shard is on another node, which does not. Those that
  /// are connecting are told behind their `hello`.
  func sayGoodBye(on handler: ConnectionHandler) {
    for (stream, state) in streams.all {
      if case .listening(let listener) = state {
        leave(stream, listener.device, .shutdown, on: handler)
      }
    }
  }

  /// Ends a phone's stream, and tells its shard.
  func leave(
    _ stream: StreamID, _ device: DeviceID, _ reason: CloseReason, on handler: ConnectionHandler
  ) {
    handler.runner.raise(
      .stream(handler.address(stream), .disconnected), for: device, at: handler.runner.now)
    close(stream, reason, on: handler)
  }

  /// Ends the streams of devices that have moved to another node. Devices not greeted yet were
  /// announced to their new node.
  func endMoved(_ hasMoved: (DeviceID) -> Bool, on handler: ConnectionHandler) {
    for (stream, state) in streams.all {
      guard case .listening(let listener) = state, hasMoved(listener.device) else { continue }
      leave(stream, listener.device, .moved, on: handler)
    }
  }

  func refuseOverdue(at now: Instant, on handler: ConnectionHandler) {
    for (stream, state) in streams.all {
      switch state {
      case .asked, .connecting, .proving:
        guard let since = askedSince[stream] else {
          askedSince[stream] = now
          continue
        }
        guard now - since >= Limits.hopPatience else { continue }
        if case .connecting(let listener) = state {
          handler.runner.raise(
            .stream(handler.address(stream), .disconnected), for: listener.device,
            at: handler.runner.now)
        }
        answer(stream, .refused(.unavailable), on: handler)
      case .collecting, .listening, .takingOrders, .ending: askedSince[stream] = nil
      }
    }
    for stream in askedSince.keys where streams[stream] == nil { askedSince[stream] = nil }
  }
}
