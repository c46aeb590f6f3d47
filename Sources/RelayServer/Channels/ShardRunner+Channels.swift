import DeviceLink
import HTTP2
import NIOCore
import Primitives
import RelayCore
import Transport

/// Broadcasts on their way to phones, and phones that subscribe.
extension ShardRunner {
  /// Writes a broadcast's line once, and its bytes to each stream of this loop; the rest goes to
  /// the loops and nodes that have the streams.
  func send(_ broadcast: Broadcast, to addresses: [StreamAddress]) {
    if isNode, isStill { return addresses.forEach(withhold) }
    var bytes: [UInt8] = []
    var elsewhere: [HopSet.Place: [StreamAddress]] = [:]
    let line = DownLine.broadcast(broadcast, sentAt: now)
    for address in addresses {
      guard address.loop == index, address.node == node else {
        let place = HopSet.Place(node: address.node, loop: address.loop)
        elsewhere[place, default: []].append(address)
        continue
      }
      if clock.isVirtual { timers.followers.touch(address) }
      guard address.connection != .operators else {
        if adminPeers.mayBroadcast(to: address.stream) { adminPeers.send(line, to: address.stream) }
        continue
      }
      if bytes.isEmpty { line.write(to: &bytes) }
      connection(address.connection)?.sendBroadcast(bytes, to: address.stream)
    }
    for (place, streams) in elsewhere {
      let effect = Effect.sendBroadcast(broadcast, to: streams)
      if place.node == node {
        peers.pass(effect, loop: place.loop)
      } else {
        hop(effect, to: streams[0])
      }
    }
  }

  /// A subscription is there. Its channel may have been deleted since the owner of all channels was
  /// asked, and the shard may have heard of that before: then it hears it again.
  func confirm(_ channel: ChannelID) {
    guard let channels = settings.channels else { return }
    Task { await channels.confirm(channel) }
  }
}

extension ConnectionHandler {
  /// Not to a phone that does not read: nothing else bounds what is written without an
  /// acknowledgement.
  func sendBroadcast(_ bytes: [UInt8], to stream: StreamID) {
    guard let device, transport.http2.queuedBytes(of: stream) <= Limits.broadcastUnsentBytes
    else { return }
    device.send(bytes.span, to: stream, on: self)
    markDirty()
  }
}

extension DeviceConnection {
  /// Asks the owner of all channels whether there is this one, then the device's shard.
  func subscribe(
    _ stream: StreamID, _ topic: Topic, _ channel: ChannelID, _ credential: DeviceCredential,
    on handler: ConnectionHandler
  ) {
    streams[stream] = .asked(secret: nil)
    let runner = handler.runner
    guard let channels = runner.settings.channels else {
      return answer(stream, .refused(.unknownChannel), on: handler)
    }
    let bound = NIOLoopBound(handler, eventLoop: runner.eventLoop)
    runner.eventLoop.makeFutureWithTask { await channels.has(channel, for: topic.bundle) }
      .whenSuccess { isKnown in
        let handler = bound.value
        guard let device = handler.device, case .asked = device.streams[stream] else { return }
        if isKnown {
          handler.runner.raise(
            .asked(.subscribed(topic, channel), credential, from: handler.address(stream)),
            for: credential.device, at: handler.runner.now)
        } else {
          device.answer(stream, .refused(.unknownChannel), on: handler)
        }
        handler.runner.finishBatch()
      }
  }
}
