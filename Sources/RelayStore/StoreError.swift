package import Primitives
package import RelayCore

/// Why the store failed; each description says what to do.
package enum StoreError: Error, Hashable, Sendable {
  /// Another relay owns the state directory; `owner` is what its lock file says.
  case locked(directory: String, owner: String)
  case foreign(path: String, reason: String)
  case newerSchema(path: String, found: Int, known: Int)
  case damaged(path: String, reason: String)
  case unusable(path: String, reason: String)
  case missing(path: String)
  /// No relay of this version has used the journal yet.
  case neverServed(path: String)
  case exists(path: String)
  case stopped
  /// An injected fault.
  case fault
  case unreachable(servers: [String], reason: String)
  /// The engine is not trusted or refuses us; the text says why and what to do.
  case engineBarred(String)
  case engineTooOld(server: String, level: Int)
  /// Lacks what the journal needs.
  case engineRefuses(reason: String)
  /// A version of the relay that is too far from this one wrote the engine's contents.
  case otherForm(of: String, found: String, _ readable: ClosedRange<UInt8>)
  /// A setting that all nodes must share differs from that of the running nodes.
  case otherSetting(key: String, here: String, there: String)
  case noCluster(servers: [String])
  /// A cluster's journal is already there; `by` shows how it was found.
  case occupied(by: String)
  /// A node renews its lease, and none may be at work.
  case nodeAtWork(String)
  case halfImported
}

extension StoreError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .locked(let directory, let owner):
      "another relay, \(owner), uses the state directory \(directory); stop it or pass another "
        + "--state"
    case .foreign(let path, let reason):
      "\(path) is not a relay's journal (\(reason)); it is left as it is: move it away, or pass "
        + "another --state"
    case .newerSchema(let path, let found, let known):
      "\(path) has schema version \(found), this relay knows \(known); run a newer relay, or "
        + "restore a backup made by this one"
    case .damaged(let path, let reason):
      "\(path) is damaged (\(reason)); it is left as it is: see what 'pushrelay store check' says, "
        + "then move it away and restore a backup"
    case .unusable(let path, let reason):
      "cannot use \(path) (\(reason)); make it readable and writable for this user, and see that "
        + "the disk has room"
    case .missing(let path):
      "there is no journal at \(path); pass the state directory of a relay that has run"
    case .neverServed(let path):
      "\(path) was not used by a relay of this version yet; start one on it with 'pushrelay serve "
        + "--store sqlite --state DIRECTORY', end it, and try again"
    case .exists(let path): "\(path) exists already and is not overwritten; choose another name"
    case .stopped: "the journal was stopped"
    case .fault: "a fault was asked for"
    case .unreachable(let servers, let reason):
      "no answer from \(servers.joined(separator: ", ")) (\(reason)); see that nats-server runs "
        + "there and that --nats names it"
    case .engineBarred(let text): text
    case .engineTooOld(let server, let level):
      "\(server) is too old: its JetStream has API level \(level), that of nats-server 2.12 is 2 "
        + "and the oldest that will do; run a newer nats-server"
    case .engineRefuses(let reason): "the engine cannot keep the journal: \(reason)"
    case .otherForm(let name, let found, let readable):
      "\(name) has form \(found), this version of the relay reads forms \(readable.lowerBound) to "
        + "\(readable.upperBound), and nothing was written: start the version that wrote it, and "
        + "upgrade by one version after the other; or end all nodes, run its 'pushrelay cluster "
        + "export' and, on an engine that has nothing, 'pushrelay cluster import' of this one"
    case .otherSetting(let key, let here, let there):
      "\(key) is \(here) here and \(there) on the nodes that are at work, and must be the same on "
        + "all: set it so, or end all of them before this one starts"
    case .noCluster(let servers):
      "no relay keeps a journal on \(servers.joined(separator: ", ")); see that --nats names the "
        + "servers of the cluster"
    case .nodeAtWork(let node): "node \(node) is at work: end all nodes first; nothing was changed"
    case .occupied(let reason):
      "the engine has a cluster's journal already (\(reason)); name servers that have none, or end "
        + "all relays there and remove what they have: 'nats stream rm pushrelay' and 'nats stream "
        + "rm KV_pushrelay'"
    case .halfImported:
      "only part of a journal is in the engine: an import is at work or was interrupted; let it "
        + "end, or run 'pushrelay cluster import' again, which begins from the start"
    }
  }
}

/// A message for the operator when a condition begins and when it ends, not for every batch.
package enum StoreNotice: Hashable, Sendable {
  /// New notifications are refused until the journal can write.
  case writingFailed(String)
  /// Writing works again.
  case recovered(failedBatches: Int)
  /// Records owed but not written before the stop.
  case leftUnwritten(Int)
  /// The file could not be shrunk; nothing else is wrong.
  case compactionFailed(String)
  /// In a cluster: the engine had lost some of a stripe, which was all written again.
  case rewritten(stripe: Int)
  /// An earlier version was migrated; a copy is kept.
  case migrated(backup: String)
}

/// An unregistered token in the feedback listing.
package struct FeedbackItem: Hashable, Sendable {
  /// The item's cursor: continue with those `since` it. Positions only grow.
  package var position: Int64
  package var token: DeviceToken
  package var topic: Topic
  /// When the token became invalid.
  package var at: Instant

  package init(position: Int64, token: DeviceToken, topic: Topic, at: Instant) {
    self.position = position
    self.token = token
    self.topic = topic
    self.at = at
  }
}

/// The public half of a provider's signing key and its scope.
package struct StoredProviderKey: Hashable, Sendable {
  /// `kid` of the provider's tokens.
  package var keyID: String
  /// `iss` of the provider's tokens.
  package var teamID: String
  /// Empty for every topic.
  package var topics: [String]
  /// The key's only environment; nil for both.
  package var environment: String?
  /// The other key allowed on the same connection.
  package var relatedKeyID: String?
  /// PEM text.
  package var publicKey: String

  package init(
    keyID: String, teamID: String, topics: [String], environment: String? = nil,
    relatedKeyID: String? = nil, publicKey: String
  ) {
    self.keyID = keyID
    self.teamID = teamID
    self.topics = topics
    self.environment = environment
    self.relatedKeyID = relatedKeyID
    self.publicKey = publicKey
  }
}
