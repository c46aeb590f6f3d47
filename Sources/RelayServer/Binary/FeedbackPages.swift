import Logging
import NIOCore
import Primitives
import ProviderCredentials
import RelayCore
import RelayStore

/// The feedback service of the binary provider API: the tokens unregistered since the same
/// provider's last connection, then the end (Apple, "Local and Remote Notification Programming
/// Guide", archived, "Binary Provider API", "The Feedback Service").
///
/// Each page waits until the socket has taken the one before. The listing counts as read only when
/// all were taken: an interrupted reader gets everything again.
final class FeedbackPages {
  private static let pageCount = 1000

  private let question = Question()
  /// When the current page was requested.
  private var pageSince = RelayClock.steady

  func opened(_ peer: BinaryPeer, on handler: BinaryConnectionHandler) {
    if case .nothing(let problem) = peer.entitlement {
      let runner = handler.runner
      runner.history.refused(
        problem.rejection, runner.ids.makeUniqueID(), problem.cause, from: handler.peerText,
        at: runner.now)
      return handler.end(saying: [])
    }
    let (storage, reader) = (handler.runner.settings.storage.feedbackStore, peer.reader)
    let bound = NIOLoopBound((pages: self, handler: handler), eventLoop: handler.runner.eventLoop)
    handler.runner.eventLoop.makeFutureWithTask {
      try await storage.feedbackCursor(of: reader)
    }.whenComplete { result in
      let (pages, handler) = bound.value
      switch result {
      case .success(let position): pages.list(since: position, reader, peer, handler)
      case .failure(let error): pages.fail(error, handler)
      }
    }
  }

  func ended() { question.cancel() }

  /// Ends the connection of a peer that reads nothing.
  func sweep(at now: Instant, on handler: BinaryConnectionHandler) {
    if now - pageSince > Limits.stalled { handler.abort() }
  }

  private func list(
    since position: Int64, _ reader: String, _ peer: BinaryPeer, _ handler: BinaryConnectionHandler
  ) {
    pageSince = RelayClock.steady
    let storage = handler.runner.settings.storage.feedbackStore
    let question = question
    let bound = NIOLoopBound(
      (pages: self, handler: handler, peer: peer), eventLoop: handler.runner.eventLoop)
    handler.runner.eventLoop.makeFutureWithTask {
      try await storage.feedback(since: position, limit: Self.pageCount) { !question.isCancelled }
    }.flatMap { items in
      let (_, handler, peer) = bound.value
      var bytes: [UInt8] = []
      for item in items where peer.covers(item) { Self.append(item, to: &bytes) }
      return handler.write(bytes).map { items }
    }.whenComplete { result in
      let (pages, handler, peer) = bound.value
      switch result {
      case .success(let items) where items.count == Self.pageCount:
        pages.list(since: items[items.count - 1].position, reader, peer, handler)
      case .success(let items): pages.finish(at: items.last?.position ?? position, reader, handler)
      case .failure(let error): pages.fail(error, handler)
      }
    }
  }

  private func finish(at position: Int64, _ reader: String, _ handler: BinaryConnectionHandler) {
    let storage = handler.runner.settings.storage.feedbackStore
    let bound = NIOLoopBound(handler, eventLoop: handler.runner.eventLoop)
    handler.runner.eventLoop.makeFutureWithTask {
      try await storage.setFeedbackCursor(of: reader, to: position)
    }.whenComplete { _ in bound.value.end(saying: []) }
  }

  private func fail(_ error: any Error, _ handler: BinaryConnectionHandler) {
    handler.runner.logger.debug(
      "feedback not listed", metadata: ["peer": "\(handler.remoteAddress)", "error": "\(error)"])
    handler.abort()
  }

  /// Time, length, token; big-endian.
  private static func append(_ item: FeedbackItem, to bytes: inout [UInt8]) {
    let token = item.token.bytes
    let seconds = UInt32(clamping: item.at.milliseconds / 1000)
    for shift in stride(from: 24, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: seconds >> shift))
    }
    bytes.append(UInt8(truncatingIfNeeded: token.count >> 8))
    bytes.append(UInt8(truncatingIfNeeded: token.count))
    bytes.append(contentsOf: token)
  }
}

extension BinaryPeer {
  /// Whose cursor it is. Of two certificates for one app each has read what its own topics are, and
  /// of the two services each what is its own.
  fileprivate var reader: String {
    let topics: [String] =
      switch entitlement {
      case .everything, .nothing: []
      case .topic(let topic, let credentials):
        if case .certificate(let shown) = credentials.binding, !shown.topics.isEmpty {
          shown.topics.map(\.name).sorted()
        } else {
          [topic.description]
        }
      }
    return (topics + [service?.rawValue].compactMap(\.self)).joined(separator: " ")
  }

  fileprivate func covers(_ item: FeedbackItem) -> Bool {
    switch entitlement {
    case .everything: item.token.isThere(for: service)
    case .nothing: false
    case .topic(_, let credentials):
      item.token.isThere(for: service) && credentials.covers(topic: item.topic.bytes.span)
    }
  }
}
