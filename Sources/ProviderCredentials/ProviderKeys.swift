package import TLS

/// The registered provider keys: an immutable snapshot that every event loop may hold. Verifiers
/// get a new one with ``ProviderTokenVerifier/replaceKeys(_:)``.
package struct ProviderKeys: Sendable {
  /// A registered key: its entry in `keys.json` and its public half.
  package struct Key: Sendable {
    /// Ten letters or digits: the `kid` of tokens.
    package let keyID: String
    /// Ten letters or digits: the `iss` of tokens.
    package let teamID: String
    /// The topics of a topic-specific key; `nil` for a team key, which covers all (Apple,
    /// "Establishing a token-based connection to APNs").
    package let topics: TopicList?
    /// `nil` for both (older team keys).
    package let environment: ProviderEnvironment?
    /// The topic-specific key that may share a connection with this one (same page).
    package let relatedKeyID: String?
    package let publicKey: P256.PublicKey

    /// A bundle ID in `topics` covers its suffixed topics too.
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

    /// Returns whether a connection bound to one of them may use the other.
    package func isRelated(toKeyID other: String, relatedKeyID otherRelated: String?) -> Bool {
      keyID == other || relatedKeyID == other || otherRelated == keyID
    }
  }

  /// A registered key that cannot be used.
  package struct Broken: Hashable, Sendable {
    /// Its key ID, or the position of an entry without one.
    package let keyID: String
    package let problem: CredentialFileError
  }

  /// In the order of registration; ``VerifiedToken/keyIndex`` is an index into this.
  package let keys: [Key]
  /// Registered keys that are not among ``keys``: errors of the operator, to be logged.
  package let broken: [Broken]
  /// Minor problems for the log, one sentence each: key files without an entry, private keys that
  /// others may read.
  package let notices: [String]

  /// The state of the directory when the keys were read.
  package let stamp: ProviderKeyDirectory.Stamp?

  private let indexByKeyID: [String: Int]

  /// Of several keys with one ID, the first counts.
  package init(
    keys: [Key] = [], broken: [Broken] = [], notices: [String] = [],
    stamp: ProviderKeyDirectory.Stamp? = nil
  ) {
    self.keys = keys
    self.broken = broken
    self.notices = notices
    self.stamp = stamp
    indexByKeyID = Dictionary(
      keys.indices.map { (keys[$0].keyID, $0) }, uniquingKeysWith: { first, _ in first })
  }

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
