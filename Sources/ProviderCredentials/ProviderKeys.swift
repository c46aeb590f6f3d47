package import TLS

/// The registered provider keys: an immutable snapshot that every event loop may hold. Verifiers
/// get a new one with ``ProviderTokenVerifier/replaceKeys(_:)``.
package struct ProviderKeys: Sendable {
  /// A registered key: its entry in `keys.json` and its public half.
  package struct Key: Sendable {
    package let entry: ProviderKeyDirectory.Entry
    /// The topics of a topic-specific key; `nil` for a team key, which covers all (Apple,
    /// "Establishing a token-based connection to APNs").
    package let topics: TopicList?
    package let publicKey: P256.PublicKey

    /// A bundle ID in the entry's topics covers its suffixed topics too.
    package init(_ entry: ProviderKeyDirectory.Entry, publicKey: P256.PublicKey) {
      self.entry = entry
      topics = entry.topics.map { TopicList($0, coversSuffixes: true) }
      self.publicKey = publicKey
    }

    /// Returns whether a connection bound to one of them may use the other.
    package func isRelated(toKeyID other: String, relatedKeyID otherRelated: String?) -> Bool {
      entry.keyID == other || entry.relatedKeyID == other || otherRelated == entry.keyID
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
      keys.indices.map { (keys[$0].entry.keyID, $0) }, uniquingKeysWith: { first, _ in first })
  }

  package func index(ofKeyID keyID: String) -> Int? {
    indexByKeyID[keyID]
  }

  /// Equal for equal keys with equal rights: tells whether a directory has changed.
  package var fingerprint: [String] {
    broken.map { "\($0)" }
      + keys.map { key in
        "\(key.entry.keyID) \(key.entry.teamID) \(String(describing: key.topics)) "
          + "\(String(describing: key.entry.environment)) "
          + "\(String(describing: key.entry.relatedKeyID)) "
          + key.publicKey.pem
      }
  }
}
