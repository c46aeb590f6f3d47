import NIOCore
import Synchronization

enum ClientCommand: Sendable {
  /// With a body it is a request, whose answer is wanted whole.
  case open(RequestHead, body: [UInt8]?, StreamBox)
  case write([UInt8], StreamBox)
  case finish(StreamBox)
  case abandon(StreamBox)
  case resumeReading
  case close(CheckedContinuation<Void, Never>?)
}

/// Commands of tasks to the event loop; those of one wake-up are performed and flushed together.
final class ClientInbox: Sendable {
  private struct State {
    var commands: [ClientCommand] = []
    var spare: [ClientCommand] = []
    var isScheduled = false
  }

  private let state = Mutex(State())
  private let eventLoop: any EventLoop
  private let handler: NIOLoopBound<ClientHandler>

  /// Call on the event loop.
  init(_ handler: ClientHandler, eventLoop: any EventLoop) {
    self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
    self.eventLoop = eventLoop
  }

  func send(_ command: ClientCommand) {
    let mustSchedule = state.withLock { state in
      state.commands.append(command)
      defer { state.isScheduled = true }
      return !state.isScheduled
    }
    if mustSchedule { eventLoop.execute { self.drain() } }
  }

  private func drain() {
    var batch: [ClientCommand] = state.withLock { state in
      var batch: [ClientCommand] = []
      swap(&batch, &state.commands)
      swap(&state.commands, &state.spare)
      state.isScheduled = false
      return batch
    }
    handler.value.perform(batch)
    batch.removeAll(keepingCapacity: batch.capacity <= 4096)
    state.withLock { swap(&$0.spare, &batch) }
  }
}
