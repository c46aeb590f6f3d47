import Logging
import NIOCore
import Primitives
import ProviderCredentials
import RelayCore
import RelayRequests
import RelaySetup
import TLS

/// The rights of a peer of the binary provider API, by its client certificate.
enum BinaryEntitlement {
  /// May push to this topic, which the subject names, and read the feedback on all topics of the
  /// certificate.
  case topic(Topic, ConnectionCredentials)
  /// The relay authenticates no providers: a token belongs to the topic that it was registered for.
  case everything
  case nothing(LastHead.ReadingError)

  fileprivate init(_ peer: TLSPeer?, of service: ProviderEnvironment?, _ runner: ShardRunner) {
    guard runner.settings.configuration.auth == .token else {
      self = .everything
      return
    }
    do throws(CredentialError) {
      let certificate = try ProviderCertificate.shown(
        by: peer, environment: service, now: runner.clock.wall(runner.now).milliseconds)
      guard let certificate else { throw .missing }
      guard let name = certificate.userID ?? certificate.impliedTopic else {
        self = .nothing(.request(.missingTopic))
        return
      }
      guard let topic = Topic(name) else {
        self = .nothing(.request(.badTopic))
        return
      }
      let credentials = ConnectionCredentials(certificate: certificate)
      try credentials.authorize(topic: topic.bytes.span, isLocationPush: false)
      self = .topic(topic, credentials)
    } catch {
      self = .nothing(.credentials(error))
    }
  }
}

/// A peer of the binary provider API, and which of Apple's services it asks: what the relay is, or
/// the name in its handshake, or the only one that its certificate is for; nil asks both.
struct BinaryPeer {
  let entitlement: BinaryEntitlement
  let service: ProviderEnvironment?

  init(_ peer: TLSPeer?, _ runner: ShardRunner) {
    let asked =
      runner.settings.configuration.environment
      ?? peer?.serverName.flatMap { ProviderEnvironment(host: $0.utf8) }
    entitlement = BinaryEntitlement(peer, of: asked, runner)
    guard asked == nil, case .topic(_, let credentials) = entitlement,
      case .certificate(let certificate) = credentials.binding, certificate.environments.count == 1
    else {
      service = asked
      return
    }
    service = certificate.environments.first
  }
}

extension BinaryEntitlement {
  fileprivate func proof(_ keys: ProviderKeys) -> RequestSource.Proof {
    if case .topic(_, let credentials) = self { credentials.shown(by: keys) } else { .none }
  }
}

/// The pushes of one connection, one after the other, with the same checks and shards as HTTP/2
/// requests.
final class BinaryPushes {
  private var conversation = BinaryConversation(at: RelayClock.steady)
  private var entitlement = BinaryEntitlement.everything
  private var service: ProviderEnvironment?
  private var stream: Int32 = 0
  private var uniqueID = UniqueID(high: 0, low: 0)
  private var takenAt = RelayClock.steady
  /// Of the journal of requests: the connection, its requests so far, the newest one's row.
  private var source: RequestSource?
  private var count: UInt32 = 0
  private var row: UInt64 = 0

  var wantsBytes: Bool { conversation.wantsBytes }

  func opened(_ peer: BinaryPeer, on handler: BinaryConnectionHandler) {
    (entitlement, service) = (peer.entitlement, peer.service)
    conversation = BinaryConversation(at: RelayClock.steady)
  }

  func receive(_ bytes: some Collection<UInt8>, on handler: BinaryConnectionHandler) {
    conversation.receive(bytes)
    advance(handler)
  }

  func peerClosed(on handler: BinaryConnectionHandler) {
    conversation.peerClosed()
    advance(handler)
  }

  func drain(on handler: BinaryConnectionHandler) {
    if let ending = conversation.shutDown() { handler.end(saying: ending.packet) }
  }

  func sweep(at now: Instant, on handler: BinaryConnectionHandler) {
    let runner = handler.runner
    if runner.isNode, conversation.isAwaiting, now - takenAt >= Limits.hopPatience {
      // Another node has not answered in time: its outcome is unknown.
      return refuse(.serviceUnavailable, nil, handler)
    }
    let ending = conversation.sweep(
      at: now, requestTimeout: runner.settings.configuration.requestTimeout,
      idleTimeout: runner.settings.configuration.idleTimeout)
    if let ending { handler.end(saying: ending.packet) }
  }

  /// Handles a shard's decision, then the next pushes.
  func judged(_ stream: Int32, _ answer: ProviderAnswer, on handler: BinaryConnectionHandler) {
    guard stream == self.stream else { return }
    let runner = handler.runner
    if let rejection = answer.rejection {
      runner.history.refused(rejection, uniqueID, from: handler.peerText, at: runner.now)
    }
    settle(answer, handler)
    advance(handler)
  }

  // MARK: Details

  /// Handles pushes until one waits for its verdict.
  private func advance(_ handler: BinaryConnectionHandler) {
    while true {
      switch conversation.next(at: RelayClock.steady) {
      case .wait: return
      case .judge(let request): submit(request, handler)
      case .refuse(let refusal, let ending):
        begin(handler)
        let row = refusal.problem.row
        let runner = handler.runner
        runner.history.refused(
          row.rejection, uniqueID, .frame(refusal.problem), from: handler.peerText, at: runner.now)
        runner.history.answered(.rejected(row.rejection), to: 0, uniqueID, after: .zero)
        return handler.end(saying: ending.packet)
      case .end(let ending): return handler.end(saying: ending.packet)
      }
    }
  }

  private func begin(_ handler: BinaryConnectionHandler) {
    stream = stream == .max ? 1 : stream + 1
    uniqueID = handler.runner.ids.makeUniqueID()
    takenAt = handler.runner.clock.batchTime
    row = 0
  }

  private func keep(
    _ content: SentRequest.Content, bodyBytes: Int, _ handler: BinaryConnectionHandler
  ) {
    let runner = handler.runner
    guard runner.history.requests != nil else { return }
    let source =
      source
      ?? RequestSource(
        .binary, peer: handler.peerText, isEncrypted: !runner.settings.configuration.plaintext,
        entitlement.proof(runner.verifier.keys), service: service,
        connection: handler.number?.value ?? 0)
    self.source = source
    count &+= 1
    row = runner.history.keep(
      SentRequest(
        at: runner.now, uniqueID, RequestHead([], source), ordinal: count, content,
        bodyBytes: bodyBytes))
  }

  private func submit(_ request: BinaryRequest, _ handler: BinaryConnectionHandler) {
    begin(handler)
    switch entitlement {
    case .topic(let topic, _): submit(request, topic, handler)
    case .everything: findTopic(of: request, handler)
    case .nothing(let problem): refuse(problem.rejection, problem.cause, handler)
    }
  }

  private func submit(
    _ request: BinaryRequest, _ topic: Topic, _ handler: BinaryConnectionHandler
  ) {
    let runner = handler.runner
    let now = runner.now
    var head = ProviderRequestHead(request)
    head.environment = service
    var warnings = CaseSet<PayloadWarning>()
    do throws(Rejection) {
      let notification = try head.notification(
        topic: topic, body: request.payload, uniqueID: uniqueID,
        isStrict: runner.settings.configuration.strict, at: now, warnings: &warnings)
      keep(.push(notification, warnings: warnings), bodyBytes: notification.payload.count, handler)
      if !warnings.isEmpty { runner.remember(PushNote(warnings), on: notification) }
      let address = handler.address(stream)
      guard runner.mayIntervene(notification) else {
        return runner.submit(notification, from: address, at: now)
      }
      switch runner.intervene(notification, from: address, peer: handler.peerText, at: now) {
      case .none: runner.submit(notification, from: address, at: now)
      case .answer(let answer): settle(answer, handler)
      case .taken: break
      // Silence is this protocol's yes: the next push is read, and the end of the connection seen.
      case .dropped: judged(nil, isDropped: true, handler)
      case .reset: handler.abort()
      }
    } catch {
      keep(.unusable(body: request.payload), bodyBytes: request.payload.count, handler)
      let own = error == .badDeviceToken ? request.token.environment : nil
      refuse(error, own.map { .tokenOf($0) }, handler)
    }
  }

  /// Asks the loops for a token's topic; the shard refuses a token without one.
  private func findTopic(of request: BinaryRequest, _ handler: BinaryConnectionHandler) {
    let runner = handler.runner
    if let app = runner.core.shard.app(with: request.token) {
      return submit(request, app.topic, handler)
    }
    guard runner.peers.runners.count > 1 else { return submit(request, .vacant, handler) }
    let found = runner.peers.runners.map { peer in
      peer.eventLoop.submit { peer.runner.value.core.shard.app(with: request.token)?.topic }
    }
    let bound = NIOLoopBound((pushes: self, handler: handler), eventLoop: runner.eventLoop)
    EventLoopFuture.whenAllSucceed(found, on: runner.eventLoop).whenSuccess { topics in
      let (pushes, handler) = bound.value
      pushes.submit(request, topics.compactMap(\.self).first ?? .vacant, handler)
      pushes.advance(handler)
      handler.runner.finishBatch()
    }
  }

  private func refuse(
    _ rejection: Rejection, _ cause: RefusedRequest.Cause?, _ handler: BinaryConnectionHandler
  ) {
    handler.runner.history.refused(
      rejection, uniqueID, cause, from: handler.peerText, at: handler.runner.now)
    settle(.rejected(rejection), handler)
  }

  private func settle(_ answer: ProviderAnswer, _ handler: BinaryConnectionHandler) {
    let runner = handler.runner
    runner.history.answered(answer, to: row, uniqueID, after: runner.clock.batchTime - takenAt)
    judged(answer.rejection, handler)
  }

  private func judged(
    _ rejection: Rejection?, isDropped: Bool = false, _ handler: BinaryConnectionHandler
  ) {
    let ending = conversation.judged(rejection, isDropped: isDropped, at: RelayClock.steady)
    if let ending {
      handler.end(saying: ending.packet)
    }
  }
}
