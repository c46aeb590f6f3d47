package import TLS

/// The registered provider keys: an immutable snapshot that every event loop may hold.
///
/// Reloading the key directory makes a new snapshot; verifiers take it over with
/// ``ProviderTokenVerifier/replaceKeys(_:)``.
package struct ProviderKeys: Sendable {
  /// One registered key: what `keys.json` says of it and its public half.
  package struct Key: Sendable {
    /// Ten letters or digits: the `kid` of tokens.
    package let keyID: String
    /// Ten letters or digits: the `iss` of tokens.
    package let teamID: String
    /// The topics of a topic-specific key; `nil` for a team key, which covers all (Apple,
    /// "Establishing a token-based connection to APNs").
    package let topics: TopicList?
    /// The one environment that the key is for; `nil` for both (older team keys).
    package let environment: ProviderEnvironment?
    /// The topic-specific key that may be used on the same connection as this one (Apple,
    /// "Establishing a token-based connection to APNs").
    package let relatedKeyID: String?
    /// Verifies the signatures.
    package let publicKey: P256.PublicKey

    /// A key as registered. A bundle ID in `topics` covers its suffixed topics too.
    package init(
      keyID: String,
      teamID: String,
      topics: [String]? = nil,
      environment: ProviderEnvironment? = nil,
      relatedKeyID: String? = nil,
      publicKey: P256.PublicKey
    ) {
      self.keyID = keyID
      self.teamID = teamID
      self.topics = topics.map { TopicList($0, coversSuffixes: true) }
      self.environment = environment
      self.relatedKeyID = relatedKeyID
      self.publicKey = publicKey
    }

    /// Whether both may be used on one connection that is bound to one of them.
    package func isRelated(toKeyID other: String, relatedKeyID otherRelated: String?) -> Bool {
      keyID == other || relatedKeyID == other || otherRelated == keyID
    }
  }

  /// A registered key that cannot be used, so that nothing is let in by it.
  package struct Broken: Hashable, Sendable {
    /// Its key ID, or where its entry stands when that does not tell one.
    package let keyID: String
    /// What is wrong, and what to do about it.
    package let problem: CredentialFileError

    /// A key that cannot be used because of `problem`.
    package init(keyID: String, problem: CredentialFileError) {
      self.keyID = keyID
      self.problem = problem
    }
  }

  /// All keys, in the order of registration; ``VerifiedToken/keyIndex`` counts in here.
  package let keys: [Key]
  /// What is registered and not among ``keys``: an error of the operator's, to be told.
  package let broken: [Broken]
  /// Things that are not wrong enough to stop for, one sentence each, for the log: key files
  /// without an entry, private keys that others may read.
  package let notices: [String]

  /// How the directory looked when the keys were read from it.
  package let stamp: ProviderKeyDirectory.Stamp?

  private let indexByKeyID: [String: Int]

  /// A snapshot of `keys`; of several with one key ID the first counts.
  package init(keys: [Key] = [], broken: [Broken] = [], notices: [String] = []) {
    self.init(keys: keys, broken: broken, notices: notices, stamp: nil)
  }

  init(
    keys: [Key], broken: [Broken], notices: [String], stamp: ProviderKeyDirectory.Stamp?
  ) {
    self.keys = keys
    self.broken = broken
    self.notices = notices
    self.stamp = stamp
    indexByKeyID = Dictionary(
      keys.indices.map { (keys[$0].keyID, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The index of the key with this ID in ``keys``.
  package func index(ofKeyID keyID: String) -> Int? {
    indexByKeyID[keyID]
  }

  /// Equal for equal keys with equal rights: tells whether a directory has changed.
  package var fingerprint: [String] {
    broken.map { "\($0)" }
      + keys.map { key in
        "\(key.keyID) \(key.teamID) \(String(describing: key.topics)) "
          + "\(String(describing: key.environment)) \(String(describing: key.relatedKeyID)) "
          + key.publicKey.pem
      }
  }
}
