package import Primitives
package import RelayCore

/// Why the store could not be opened, read or written; each says what to do about it.
package enum StoreError: Error, Hashable, Sendable {
  /// Another relay owns the state directory; `owner` is what its lock file says.
  case locked(directory: String, owner: String)
  /// The file is not a journal of a relay.
  case foreign(path: String, reason: String)
  /// A newer relay wrote the file.
  case newerSchema(path: String, found: Int, known: Int)
  /// The journal is damaged.
  case damaged(path: String, reason: String)
  /// The file or its directory cannot be opened, read or written.
  case unusable(path: String, reason: String)
  /// There is no journal at this path.
  case missing(path: String)
  /// No relay of this version has used the journal yet.
  case neverServed(path: String)
  /// A backup would overwrite something.
  case exists(path: String)
  /// The journal was stopped.
  case stopped
  /// Somebody wanted this write to fail.
  case fault
  /// None of the engine's servers can be reached.
  case unreachable(servers: [String], reason: String)
  /// We do not trust the engine, or it does not let us in; the text says why and what would do.
  case engineBarred(String)
  /// The engine is older than what the journal needs.
  case engineTooOld(server: String, level: Int)
  /// The engine does not do what the journal needs.
  case engineRefuses(reason: String)
  /// What is in the engine has a form that another version of the relay writes.
  case otherForm(of: String, found: String, _ known: String)
  /// A setting that all nodes must share has another value on those that are at work.
  case otherSetting(key: String, here: String, there: String)
  /// No cluster keeps its journal in the engine.
  case noCluster(servers: [String])
  /// A cluster keeps its journal where another one was to go; what shows that.
  case occupied(by: String)
  /// A journal was brought there in part.
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
    case .exists(let path):
      "\(path) exists already and is not overwritten; choose another name"
    case .stopped:
      "the journal was stopped"
    case .fault:
      "a fault was asked for"
    case .unreachable(let servers, let reason):
      "no answer from \(servers.joined(separator: ", ")) (\(reason)); see that nats-server runs "
        + "there and that --nats names it"
    case .engineBarred(let text): text
    case .engineTooOld(let server, let level):
      "\(server) is too old: its JetStream has API level \(level), that of nats-server 2.12 is 2 "
        + "and the oldest that will do; run a newer nats-server"
    case .engineRefuses(let reason):
      "the engine cannot keep the journal: \(reason)"
    case .otherForm(let name, let found, let known):
      "\(name) has form \(found), this version of the relay knows form \(known), and nothing was "
        + "written: start the version that wrote it; to change versions, end all nodes, run its "
        + "'pushrelay cluster export' and, on an engine that has nothing, 'pushrelay cluster "
        + "import' of this one"
    case .otherSetting(let key, let here, let there):
      "\(key) is \(here) here and \(there) on the nodes that are at work, and must be the same on "
        + "all: set it so, or end all of them before this one starts"
    case .noCluster(let servers):
      "no relay keeps a journal on \(servers.joined(separator: ", ")); see that --nats names the "
        + "servers of the cluster"
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

/// What an operator should hear while the relay runs. Said when it begins and when it ends, not
/// for every batch.
package enum StoreNotice: Hashable, Sendable {
  /// The journal cannot write: new notifications are refused until it can.
  case writingFailed(String)
  /// It can again, after so many batches that failed.
  case recovered(failedBatches: Int)
  /// So much of what it owes it could not write before it was stopped.
  case leftUnwritten(Int)
  /// The file could not be made smaller; nothing else is wrong.
  case compactionFailed(String)
  /// The file was of an earlier version; a copy of it is there.
  case migrated(backup: String)
}

/// A token that is no longer registered, as the feedback listing shows it.
package struct FeedbackItem: Hashable, Sendable {
  /// The cursor of this item: ask for those `since` it to go on. Positions only grow.
  package var position: Int64
  package var token: DeviceToken
  package var topic: Topic
  /// From when on the token has been invalid.
  package var at: Instant

  package init(position: Int64, token: DeviceToken, topic: Topic, at: Instant) {
    self.position = position
    self.token = token
    self.topic = topic
    self.at = at
  }
}

/// The public half of a provider's signing key, and whom it may speak for.
package struct StoredProviderKey: Hashable, Sendable {
  /// `kid` of the provider's tokens.
  package var keyID: String
  /// `iss` of the provider's tokens.
  package var teamID: String
  /// The topics that it may push to; empty for every topic.
  package var topics: [String]
  /// The only environment that the key is good in; nil for both.
  package var environment: String?
  /// The other key that may share a connection with this one.
  package var relatedKeyID: String?
  /// The key as PEM text.
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
