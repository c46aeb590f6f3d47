import NIOCore
import RelayCore

/// All loops of the relay as one of them sees them: their partitions, and what this loop has for
/// them at the end of a batch.
struct LoopPeers {
  private let index: Int
  /// In the order of their indices, itself included.
  let runners: [ShardRunner.Peer]
  private var outboxes: [LoopMessage]
  /// Fulfilled when the partition that the shard drops has left.
  var departure: EventLoopPromise<Void>?
  /// The number of returns to a checkpoint.
  var epoch: UInt32 = 0
  private(set) var sentCount = 0
  private(set) var receivedCount = 0

  init(_ index: UInt16, _ runners: [ShardRunner.Peer]) {
    self.index = Int(index)
    self.runners = runners
    outboxes = runners.map { _ in LoopMessage() }
  }

  mutating func tell(_ event: Event, loop: Int) { outboxes[loop].events.append(event) }

  mutating func tellOthers(_ event: Event) {
    for loop in outboxes.indices where loop != index { tell(event, loop: loop) }
  }

  /// No effect for a loop that there is not: another node may name one.
  mutating func pass(_ effect: Effect, loop: UInt16) {
    guard outboxes.indices.contains(Int(loop)) else { return }
    outboxes[Int(loop)].effects.append(effect)
  }

  mutating func pass(_ slice: BroadcastSlice, loop: UInt16) {
    guard outboxes.indices.contains(Int(loop)) else { return }
    outboxes[Int(loop)].broadcasts.append(slice)
  }

  /// Sends each loop at most one message.
  mutating func send() {
    for loop in outboxes.indices where !outboxes[loop].isEmpty {
      outboxes[loop].epoch = epoch
      let message = exchange(&outboxes[loop], with: LoopMessage())
      let peer = runners[loop]
      sentCount += 1
      peer.eventLoop.execute { peer.runner.value.receive(message) }
    }
  }

  /// Returns whether a message was sent before the relay went back.
  mutating func isStale(_ message: LoopMessage) -> Bool {
    receivedCount += 1
    return message.epoch != epoch
  }
}

/// One loop's message to another at the end of a batch.
struct LoopMessage: Sendable {
  var events: [Event] = []
  var effects: [Effect] = []
  var broadcasts: [BroadcastSlice] = []
  /// The sender's `epoch`.
  var epoch: UInt32 = 0

  var isEmpty: Bool { events.isEmpty && effects.isEmpty && broadcasts.isEmpty }
}
