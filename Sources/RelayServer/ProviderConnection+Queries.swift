import HTTP2
import NIOCore
import Primitives
import RelayCore
import RelayStore
import Transport

/// Questions of providers: what became of a push, and which tokens are no good any more.
///
/// People and nightly jobs ask; a question may look at every loop and at the disk, and its answer
/// comes back to the loop of the connection.
extension ProviderConnection {
  /// Tokens of one page of feedback.
  static let feedbackPageCount = 1000

  /// Sets out to find the answer; `answer` of the handler is called when it is there.
  mutating func ask(_ query: ProviderQuery, _ stream: StreamID, on handler: ConnectionHandler) {
    guard let question = questions.begin(stream) else {
      return respond(stream, .rejected(.serviceUnavailable), on: handler)
    }
    let runner = handler.runner
    let loop = runner.eventLoop
    let bound = NIOLoopBound(handler, eventLoop: loop)
    switch query {
    case .notification(let id):
      let peers = runner.peers
      Self.life(id, peers, question, on: loop)
        .flatMap { life in
          // Only the loop that accepted it knows what its provider calls it.
          guard let uniqueID = life.first?.uniqueID, uniqueID != id else {
            return loop.makeSucceededFuture(life)
          }
          return Self.life(uniqueID, peers, question, on: loop)
        }
        .whenSuccess { bound.value.answer(stream, .life($0)) }
    case .feedback(let position):
      let storage = runner.settings.storage
      let limit = Self.feedbackPageCount
      loop.makeFutureWithTask {
        try await storage.feedback(since: position, limit: limit + 1) { !question.isCancelled }
      }.whenComplete { result in
        bound.value.answer(stream, .feedback(result, since: position))
      }
    }
  }

  /// What all loops know of a notification.
  private static func life(
    _ id: UniqueID, _ peers: [ShardRunner.Peer], _ question: Question, on loop: any EventLoop
  ) -> EventLoopFuture<[LifeEvent]> {
    let found = peers.map { peer in
      peer.eventLoop.submit {
        question.isCancelled ? [] : peer.runner.value.lifeLog.steps(of: id)
      }
    }
    return EventLoopFuture.whenAllSucceed(found, on: loop).map(LifeLog.join)
  }

  /// The answer is there; what the provider's credentials do not cover is not shown.
  mutating func answer(
    _ stream: StreamID, _ answer: QueryAnswer, on handler: ConnectionHandler
  ) {
    questions.end(stream)
    guard waiting[stream] != nil else { return }
    switch answer {
    case .life(let events):
      guard let life = NotificationLife(events), covers(life.topic) else {
        return respond(
          stream, 404,
          DeviceAnswerBody.Refused(
            reason: "UnknownNotification",
            message: "no such notification in the relay's log, or not one of your topics"),
          on: handler)
      }
      respond(stream, 200, life, on: handler)
    case .feedback(.success(let items), let position):
      let page = items.prefix(Self.feedbackPageCount)
      let tokens = page.filter { covers($0.topic.description) }.map {
        FeedbackPage.Token(
          token: $0.token.hexadecimal, topic: $0.topic.description, timestamp: $0.at.milliseconds)
      }
      let body = FeedbackPage(
        tokens: tokens, cursor: page.last?.position ?? position, hasMore: items.count > page.count)
      respond(stream, 200, body, on: handler)
    case .feedback(.failure, _):
      respond(stream, .rejected(.serviceUnavailable), on: handler)
    }
  }

  private func covers(_ topic: String) -> Bool {
    let bytes = Array(topic.utf8)
    do throws(CredentialProblem) {
      try credentials.authorize(topic: bytes.span, isLocationPush: false)
      return true
    } catch {
      return false
    }
  }

  private mutating func respond(
    _ stream: StreamID, _ status: Int, _ body: some Encodable, on handler: ConnectionHandler
  ) {
    writer.respond(stream, status, DeviceAnswerBody.encode(body), on: handler)
    handler.runner.markDirty(handler)
  }
}

/// What was found.
enum QueryAnswer {
  case life([LifeEvent])
  case feedback(Result<[FeedbackItem], any Error>, since: Int64)
}
