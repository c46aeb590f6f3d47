import Logging
package import Primitives
import ProviderCredentials
import RelayCluster
import RelayCore
import RelaySetup
import RelayStore
import TLS

extension Relay {
  /// Joins the cluster; returns when every stripe has a node, or when that takes too long.
  func join(_ cluster: ClusterJournal?, _ loops: LoopSet) async {
    guard let cluster else { return }
    let link = ClusterLink(
      loops, stripeCount: cluster.stripeCount,
      device: configuration.advertised(configuration.device),
      onSettings: { [weak self] in await self?.adopt($0) },
      policies: { [logger] in
        do throws(StoreError) {
          return try await cluster.devicePolicies()
        } catch {
          if error == .stopped { return [:] }
          logger.error(
            "policies of single devices cannot be read: the common one counts for those that come",
            metadata: ["problem": "\(error)"])
          return [:]
        }
      },
      onQuestion: { [inbox, feeds] question in
        guard let loops = inbox.loops else { return [] }
        return await NodeQuestions.answer(
          question, NodeView(inbox: inbox, loops: loops, feeds: feeds))
      })
    let director = ClusterDirector(
      cluster, loopCount: loops.count, delegate: link,
      onNotice: { [logger] in Self.say($0, to: logger) })
    inbox.director = director
    await director.begin()
    await director.settle(within: .milliseconds(configuration.lease.milliseconds * 3))
  }

  /// Gives all stripes here to other nodes, if there are any.
  func leave() async {
    guard let director = inbox.director else { return }
    logger.info("giving the stripes away")
    await director.leave(within: .milliseconds(configuration.shutdownTimeout.milliseconds))
  }

  /// All nodes and stripes as this node sees them; nil for a relay on its own.
  package func clusterStatus() async -> ClusterStatus? {
    guard let director = inbox.director, let table = inbox.loops?.table else { return nil }
    let (nodes, routes, form) = await director.status
    return ClusterStatus(nodes, routes, partitionCount: table.count, form: form)
  }

  /// The stripes that this node should have and cannot read.
  package var unreadStripes: [Int] {
    get async { await inbox.director?.unreadStripes ?? [] }
  }

  /// This node's name in a cluster; nil for a relay on its own.
  package var nodeName: String? { inbox.director == nil ? nil : configuration.node }

  /// `clusterStatus` with what each answering node reports about itself.
  package func clusterStatusOfAll() async -> ClusterStatus? {
    guard var status = await clusterStatus() else { return nil }
    status.add(inbox.standing, of: inbox.ownNumber)
    let others = await inbox.others
    await withTaskGroup(of: (UInt16, NodeStanding?).self) { [inbox] group in
      for number in others.keys {
        group.addTask { (number, await inbox.ask(number, NodeQuestions.standing, Nothing())) }
      }
      for await (number, standing) in group { status.add(standing, of: number) }
    }
    return status
  }

  /// An operator's order about a node.
  package enum NodeOrder: Sendable {
    /// Give all stripes away and take none.
    case drain
    /// Take stripes again.
    case undoDrain
    /// Leave the list of nodes.
    case forget
  }

  /// The reasons why an order to a node was not carried out.
  package enum NodeOrderError: Error {
    /// The relay is on its own, or not running.
    case noCluster
    case noSuchNode
    /// No sign of life for this long: there is nobody to give or take stripes.
    case gone(Interval)
    /// Only one that is gone can be forgotten.
    case atWork
    case engine(String)
  }

  package func order(_ order: NodeOrder, node name: String) async throws(NodeOrderError) {
    guard let cluster = inbox.journal as? ClusterJournal, let director = inbox.director else {
      throw .noCluster
    }
    guard let (node, age) = await director.node(name) else { throw .noSuchNode }
    switch (order, age) {
    case (.forget, nil): throw .atWork
    case (.forget, .some): guard await director.forget(node) else { throw .atWork }
    case (.drain, let age?), (.undoDrain, let age?): throw .gone(age)
    case (.drain, nil), (.undoDrain, nil):
      do throws(StoreError) {
        try await cluster.drain(node.stamp, undo: order == .undoDrain)
      } catch {
        throw .engine(error.description)
      }
    }
  }

  // MARK: What all nodes share

  /// The cluster's keys; the first node brings its own.
  func agree(on keys: ProviderKeys, _ cluster: ClusterJournal?) async throws -> ProviderKeys {
    guard let cluster, configuration.auth == .token else { return keys }
    let stored = try await cluster.providerKeys(elseFirst: keys.stored)
    guard stored != keys.stored.sorted(by: { $0.keyID < $1.keyID }) else { return keys }
    try keyDirectory.replace(with: stored)
    logger.notice(
      "provider keys of the cluster are in force", metadata: ["count": "\(stored.count)"])
    return try keyDirectory.load()
  }

  private func adopt(_ settings: SharedSettings) async {
    if let keys = settings.providerKeys { adopt(keys) }
    if let authorities = settings.authorities { adopt(authorities: authorities) }
    await channels?.adopt(settings.channels, at: self.settings.clock.now())
    if case .virtual(let time) = self.settings.clock, let now = settings.virtualTime {
      time.advance(to: now)
    }
    if let names = settings.names { self.names.all = DeviceName.dictionary(names) }
    if let shared = settings.budgets, await policy() != shared.budgets.policy {
      inbox.loops?.administer(
        .operated(.policyChanged(shared.budgets.policy, at: shared.changedAt)))
    }
  }

  private func adopt(_ stored: [StoredProviderKey]) {
    guard configuration.auth == .token, let loops = inbox.loops else { return }
    do throws(CredentialFileError) {
      let present = try keyDirectory.load().stored.sorted { $0.keyID < $1.keyID }
      guard present != stored else { return }
      try keyDirectory.replace(with: stored)
      loops.replaceKeys(try keyDirectory.load())
      logger.notice("provider keys changed by another node", metadata: ["count": "\(stored.count)"])
    } catch {
      logger.error("provider keys of the cluster cannot be kept", metadata: ["problem": "\(error)"])
    }
  }

  /// Trusts the cluster's authorities; the first node that has some brings them.
  func agreeOnAuthorities(_ cluster: ClusterJournal?) async throws {
    guard let cluster, !configuration.plaintext,
      let stored = try await cluster.authorities(elseFirst: contexts.authorities)
    else { return }
    adopt(authorities: stored)
  }

  private func adopt(authorities: String) {
    guard !configuration.plaintext, contexts.authorities != authorities else { return }
    do throws(TLSError) {
      try contexts.trust(authorities)
      logger.notice("certificates of providers are trusted as the cluster says")
    } catch {
      logger.error(
        "the cluster's authorities are not used: those in force stay",
        metadata: ["problem": "\(error)"])
    }
  }

  static func say(_ notice: ClusterJournal.Notice, to logger: Logger) {
    switch notice {
    case .waiting(let node):
      logger.notice(
        "waiting: a relay of this name is at work, or just was; if it stays, use another --node",
        metadata: ["node": "\(node)"])
    case .joined(let number, let stripes, let partitions, let replicas):
      logger.notice(
        "joined the cluster",
        metadata: [
          "number": "\(number)", "stripes": "\(stripes)", "partitions": "\(partitions)",
          "replicas": "\(replicas)",
        ])
    case .took(let stripe, let epoch):
      logger.notice("took a stripe", metadata: ["stripe": "\(stripe)", "epoch": "\(epoch)"])
    case .gave(let stripe, let node):
      logger.notice("gave a stripe", metadata: ["stripe": "\(stripe)", "to": "\(node)"])
    case .lost(let stripe, let node):
      logger.warning(
        "lost a stripe: this node was away for too long",
        metadata: [
          "stripe": "\(stripe)",
          "to": "\(node ?? "not known; 'pushrelay cluster restripe' and 'import' end all nodes")",
        ])
    case .lapsed:
      logger.warning(
        "the lease had run out before the engine took its renewal: new pushes were answered 503")
    case .clock(let node, let behind, let isFar):
      let text =
        isFar
        ? "another node's clock differs from this one's by too much: what one says to the other is "
          + "refused as too late; set the clocks right" : "another node's clock is right again"
      logger.log(
        level: isFar ? .error : .notice, "\(text)",
        metadata: ["node": "\(node)", "behindSeconds": "\(Double(behind.milliseconds) / 1000)"])
    case .unread(let stripe, let reason, let pause):
      logger.error(
        "a stripe cannot be read: pushes to its devices are answered 503",
        metadata: [
          "stripe": "\(stripe)", "reason": "\(reason)",
          "nextTrySeconds": "\(pause.milliseconds / 1000)",
        ])
    case .barred(let text):
      logger.error(
        """
        the engine bars this node: its user, password or credentials are not right, or lack the \
        rights of Docker/nats-rights.conf
        """,
        metadata: ["refusal": "\(text)"])
    }
  }
}
