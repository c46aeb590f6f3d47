import DequeModule
import DeviceLink
import HTTP2
import NIOCore
import Primitives
import RelayCore
import Transport

/// A broadcast, and streams of one loop that are to get it.
struct BroadcastSlice: Sendable {
  let broadcast: Broadcast
  let streams: [StreamAddress]
}

/// Broadcasts that other loops and nodes have for the streams of this one.
///
/// Not written as it arrives: they have the next before this loop has written the last, and a loop
/// runs all that others hand it before it looks at its sockets. Providers would wait until the
/// whole broadcast is written.
struct BroadcastQueue {
  private var slices: Deque<BroadcastSlice> = []
  private var streamCount = 0
  private var isTurn = false

  var isEmpty: Bool { slices.isEmpty }

  /// Adds a slice; with too many streams the oldest ends where it is.
  mutating func append(_ slice: BroadcastSlice) {
    slices.append(slice)
    streamCount += slice.streams.count
    while streamCount > Limits.broadcastStreamsWaiting {
      streamCount -= slices.removeFirst().streams.count
    }
  }

  /// About as many streams as a step of this loop's own broadcasts has here; every other time
  /// none, so that those go on, too.
  mutating func next() -> [BroadcastSlice] {
    isTurn.toggle()
    guard isTurn else { return [] }
    var next: [BroadcastSlice] = []
    var count = 0
    while count < Limits.broadcastSlice / 2, let slice = slices.popFirst() {
      count += slice.streams.count
      next.append(slice)
    }
    streamCount -= count
    return next
  }
}

/// Broadcasts on their way to phones, and phones that subscribe.
extension ShardRunner {
  /// Writes to the streams of this loop, and passes the rest to the loops and nodes that have the
  /// streams.
  func send(_ broadcast: Broadcast, to addresses: [StreamAddress]) {
    if isNode, isStill { return addresses.forEach(withhold) }
    var here: [StreamAddress] = []
    var elsewhere: [HopSet.Place: [StreamAddress]] = [:]
    for address in addresses {
      guard address.loop != index || address.node != node else {
        here.append(address)
        continue
      }
      let place = HopSet.Place(node: address.node, loop: address.loop)
      elsewhere[place, default: []].append(address)
    }
    write(BroadcastSlice(broadcast: broadcast, streams: here))
    for (place, streams) in elsewhere {
      if place.node == node {
        peers.pass(BroadcastSlice(broadcast: broadcast, streams: streams), loop: place.loop)
      } else {
        hop(.sendBroadcast(broadcast, to: streams), to: streams[0])
      }
    }
  }

  /// Writes a broadcast's line once, and its bytes to each stream.
  func write(_ slice: BroadcastSlice) {
    if isNode, isStill { return slice.streams.forEach(withhold) }
    var bytes: [UInt8] = []
    let line = DownLine.broadcast(slice.broadcast, sentAt: now)
    for address in slice.streams {
      if clock.isVirtual { timers.followers.touch(address) }
      guard address.connection != .operators else {
        if adminPeers.mayBroadcast(to: address.stream) { adminPeers.send(line, to: address.stream) }
        continue
      }
      if bytes.isEmpty { line.write(to: &bytes) }
      connection(address.connection)?.sendBroadcast(bytes, to: address.stream)
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
