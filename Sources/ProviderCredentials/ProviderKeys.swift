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
    /// nil for a key that was not read from a directory.
    package let source: ProviderKeyDirectory.Source?

    /// A bundle ID in the entry's topics covers its suffixed topics too.
    package init(
      _ entry: ProviderKeyDirectory.Entry, publicKey: P256.PublicKey,
      source: ProviderKeyDirectory.Source? = nil
    ) {
      self.entry = entry
      self.source = source
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
  let registry: ProviderKeyDirectory.RegistryContents?

  private let indexByKeyID: [String: Int]

  /// Of several keys with one ID, the first counts.
  package init(
    keys: [Key] = [], broken: [Broken] = [], notices: [String] = [],
    stamp: ProviderKeyDirectory.Stamp? = nil,
    registry: ProviderKeyDirectory.RegistryContents? = nil
  ) {
    self.keys = keys
    self.broken = broken
    self.notices = notices
    self.stamp = stamp
    self.registry = registry
    indexByKeyID = Dictionary(
      keys.indices.map { (keys[$0].entry.keyID, $0) }, uniquingKeysWith: { first, _ in first })
  }

  package func index(ofKeyID keyID: String) -> Int? {
    indexByKeyID[keyID]
  }

  func key(ofKeyID keyID: String) -> Key? { index(ofKeyID: keyID).map { keys[$0] } }

  /// Returns whether these are the same keys with the same rights: that a directory has not
  /// changed.
  package func areSame(as other: ProviderKeys) -> Bool {
    broken == other.broken
      && keys.elementsEqual(other.keys) { one, other in
        one.entry == other.entry
          && (one.source?.stands(for: other.source) == true
            || one.publicKey.pem == other.publicKey.pem)
      }
  }
}
