import FoundationEssentials
import Glibc
package import RelayCore
package import RelayStore
import SystemPackage
import TLS

/// The directory `keys/`: one file per key, and `keys.json` with their owners.
///
/// ```
/// keys/AuthKey_ABC123DEFG.p8        private half, PKCS#8 in PEM, as Apple issues it
/// keys/AuthKey_ABC123DEFG.pem       or only the public half (also .pub.pem)
/// keys/keys.json                    {"keys":[{"keyID":"ABC123DEFG","teamID":"TEAM123456",
///                                    "topics":["com.example.app"],"environment":"sandbox"}]}
/// ```
///
/// A key without `topics` covers every topic of its team; without `environment` it is valid in
/// both. Everything here blocks: not for event loops.
package struct ProviderKeyDirectory: Sendable {
  /// A key's entry in `keys.json`. IDs are ten letters or digits.
  package struct Entry: Codable, Sendable, Equatable {
    package var keyID: String
    package var teamID: String
    /// The topics of a topic-specific key, at most 400; `nil` for a team key.
    package var topics: [String]?
    /// `nil` for both, as older team keys have it.
    package var environment: ProviderEnvironment?
    /// The other topic-specific key that may share a connection with this one.
    package var relatedKeyID: String?

    /// The values are checked when the entry is added or loaded.
    package init(
      keyID: String, teamID: String, topics: [String]? = nil,
      environment: ProviderEnvironment? = nil, relatedKeyID: String? = nil
    ) {
      self.keyID = keyID
      self.teamID = teamID
      self.topics = topics
      self.environment = environment
      self.relatedKeyID = relatedKeyID
    }
  }

  private struct Registry: Encodable {
    var keys: [Entry]
  }

  /// Reads `keys.json` so that an invalid entry does not spoil the others.
  private struct LenientRegistry: Decodable {
    struct Item: Decodable {
      private struct Identity: Decodable { var keyID: String }

      let keyID: String?
      let entry: Result<Entry, any Error>

      init(from decoder: any Decoder) throws {
        keyID = (try? Identity(from: decoder))?.keyID
        entry = Result { try Entry(from: decoder) }
      }
    }

    var keys: [Item]
  }

  /// Tells whether the directory has changed, without reading it: adding, removing or replacing a
  /// file changes it, and so does writing `keys.json` in place.
  package struct Stamp: Equatable, Sendable {
    private let directory: Stat?
    private let registry: Stat?

    fileprivate init(directory: String, registry: String) {
      self.directory = Self.look(directory)
      self.registry = Self.look(registry)
    }

    fileprivate static func look(_ path: String) -> Stat? {
      guard var file = try? FilePath(path).stat() else { return nil }
      // Reading changes the access time: not compared.
      file.st_atim = file.st_mtim
      return file
    }
  }

  /// A key's file as it was before it was read. What it says of one that has not changed since need
  /// not be read again.
  package struct Source: Sendable {
    let path: String
    private let file: Stat
    /// False for a file that may be written once more without another time of change: file systems
    /// count in milliseconds.
    private let isSettled: Bool

    /// nil when there is none.
    fileprivate init?(_ path: String) {
      guard let file = Stamp.look(path) else { return nil }
      (self.path, self.file) = (path, file)
      let changed = Double(file.st_ctim.tv_sec) + Double(file.st_ctim.tv_nsec) / 1e9
      isSettled = Date().timeIntervalSince1970 - changed > 1
    }

    /// Returns whether the file is still as it was.
    func stands(for now: Source?) -> Bool {
      isSettled && path == now?.path && file == now?.file
    }

    fileprivate var isOpenToOthers: Bool { file.permissions.rawValue & 0o077 != 0 }
  }

  package let path: String
  /// The owner of keys that were added without a team.
  package static let defaultTeamID = "DEVELOPER1"
  /// Apple, "Establishing a token-based connection to APNs".
  package static let maximumTopicsPerKey = 400

  /// The directory need not exist yet.
  package init(path: String) {
    self.path = path
  }

  /// Two system calls; reads no file.
  package var stamp: Stamp { Stamp(directory: path, registry: registryPath) }

  /// The usable entries of `keys.json`; none if there is no such file.
  package func list() throws(CredentialFileError) -> [Entry] { try register().entries }

  /// Reads everything into a snapshot. Unusable keys are left out and reported: an error for all
  /// would keep the old keys in force, revoked ones among them. Not for want of descriptors or
  /// memory, which says nothing of a key.
  ///
  /// - Parameter before: what was read earlier; keys whose files are the same are taken from it.
  package func load(
    after before: ProviderKeys? = nil
  ) throws(CredentialFileError) -> ProviderKeys {
    // Taken before reading, so that the next look notices a change in between.
    let stamp = stamp
    var keys: [ProviderKeys.Key] = []
    var notices: [String] = []
    let registry = try registry(after: before?.registry)
    var broken = registry.broken
    for entry in registry.entries {
      let publicKey: P256.PublicKey
      let source: Source
      do throws(CredentialFileError) {
        (publicKey, source) = try self.publicKey(
          ofKeyID: entry.keyID, after: before?.key(ofKeyID: entry.keyID))
      } catch {
        if case .passing = error { throw error }
        broken.append(.init(keyID: entry.keyID, problem: error))
        continue
      }
      if source.path.hasSuffix(".p8"), source.isOpenToOthers {
        notices.append("\(source.path): other users can read this private key; chmod 600 it")
      }
      keys.append(ProviderKeys.Key(entry, publicKey: publicKey, source: source))
    }
    let known = Set(keys.map(\.entry.keyID) + broken.map(\.keyID))
    for name in try CredentialFiles.names(inDirectory: path) {
      guard let keyID = Self.keyID(ofFileName: name), !known.contains(keyID) else { continue }
      notices.append(
        "\(path)/\(name): has no entry in keys.json and is not used; `pushrelay key add` makes one")
    }
    return ProviderKeys(
      keys: keys, broken: broken, notices: notices, stamp: stamp, registry: registry)
  }

  /// Makes the first key of a development relay; nil when the directory exists, for an empty one
  /// means that all keys were revoked.
  package func createFirst() throws(CredentialFileError) -> Entry? {
    guard !CredentialFiles.exists(path) else { return nil }
    var generator = SystemRandomNumberGenerator()
    let entry = Entry(keyID: Self.randomKeyID(using: &generator), teamID: Self.defaultTeamID)
    try create(entry)
    return entry
  }

  /// Makes a key pair, writes its `.p8` file and registers it; returns the file's path.
  @discardableResult
  package func create(_ entry: Entry) throws(CredentialFileError) -> String {
    try add(entry, pem: P256.PrivateKey().pem, isPrivate: true)
  }

  /// Copies a key file, private or public half, into the directory and registers it; returns the
  /// copy's path.
  @discardableResult
  package func add(_ entry: Entry, copying source: String) throws(CredentialFileError) -> String {
    guard let text = try CredentialFiles.readText(source) else {
      throw .file(path: source, problem: "does not exist", advice: "name a .p8 or .pem file")
    }
    if (try? P256.PrivateKey(pem: text)) != nil {
      return try add(entry, pem: text, isPrivate: true)
    }
    if (try? P256.PublicKey(pem: text)) != nil {
      return try add(entry, pem: text, isPrivate: false)
    }
    throw .file(
      path: source, problem: "holds no P-256 key in PEM",
      advice: "wanted is a .p8 file as Apple issues it, or its public half")
  }

  /// Registers a key by its public half.
  package func add(_ entry: Entry, publicKeyPEM: String) throws(CredentialFileError) {
    guard (try? P256.PublicKey(pem: publicKeyPEM)) != nil else {
      throw .value(
        name: "public key of", value: entry.keyID, advice: "wanted is a P-256 key in PEM")
    }
    try add(entry, pem: publicKeyPEM, isPrivate: false)
  }

  /// A signer with the private half of a registered key.
  package func signer(forKeyID keyID: String) throws(CredentialFileError) -> ProviderTokenSigner {
    guard let entry = try list().first(where: { $0.keyID == keyID }) else {
      throw .value(
        name: "key ID", value: keyID,
        advice: "it is not in \(registryPath); see `pushrelay key list`")
    }
    return try ProviderTokenSigner(
      keyID: entry.keyID, teamID: entry.teamID, keyFile: file(keyID, ".p8"))
  }

  /// Ten letters and digits, as Apple's are.
  package static func randomKeyID(using generator: inout some RandomNumberGenerator) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)
    let bytes = (0..<10).map { _ in
      alphabet[Int.random(in: alphabet.indices, using: &generator)]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The key ID in a name like `AuthKey_ABC123DEFG.p8`, as Apple names downloads.
  package static func keyID(ofFileName name: String) -> String? {
    guard name.hasPrefix("AuthKey_") else { return nil }
    let rest = name.dropFirst("AuthKey_".count)
    for suffix in suffixes where rest.hasSuffix(suffix) {
      let keyID = String(rest.dropLast(suffix.count))
      if ProviderToken.isIdentifier(keyID) { return keyID }
    }
    return nil
  }

  // MARK: Details

  private static let suffixes = [".p8", ".pub.pem", ".pem"]

  /// Makes these the only registered keys; files of others stay.
  package func replace(with keys: [StoredProviderKey]) throws(CredentialFileError) {
    let wanted = keys.map(Entry.init)
    let present = try list()
    let kept = present.compactMap { entry in wanted.first { $0.keyID == entry.keyID } }
    if kept != present { try save(kept) }
    for (key, entry) in zip(keys, wanted) where !kept.contains(entry) {
      try add(entry, publicKeyPEM: key.publicKey)
    }
  }

  private var registryPath: String { path + "/keys.json" }

  private func file(_ keyID: String, _ suffix: String) -> String {
    "\(path)/AuthKey_\(keyID)\(suffix)"
  }

  @discardableResult
  private func add(
    _ entry: Entry, pem: String, isPrivate: Bool
  ) throws(CredentialFileError) -> String {
    try check(entry)
    var (entries, broken) = try register()
    // Saving would lose the broken entry.
    if let first = broken.first { throw first.problem }
    guard !entries.contains(where: { $0.keyID == entry.keyID }) else {
      throw .value(
        name: "key ID", value: entry.keyID,
        advice: "it is registered already; remove its entry from \(registryPath) first")
    }
    try CredentialFiles.makePrivateDirectory(path)
    let target = file(entry.keyID, isPrivate ? ".p8" : ".pem")
    // A file without an entry may be the only copy of a key that Apple lets one download once. The
    // same contents are fine: the file to add may already be in the directory.
    if let present = try CredentialFiles.read(target), present != Array(pem.utf8) {
      throw .file(
        path: target, problem: "exists already with another key",
        advice: "move it away or choose another key ID")
    }
    try CredentialFiles.write(
      Array(pem.utf8), to: target,
      mode: isPrivate ? CredentialFiles.privateMode : CredentialFiles.publicMode)
    entries.append(entry)
    try save(entries)
    return target
  }

  /// `keys.json` as it was read.
  package struct RegistryContents: Sendable {
    let source: Source?
    let entries: [Entry]
    let broken: [ProviderKeys.Broken]
  }

  private func registry(
    after before: RegistryContents?
  ) throws(CredentialFileError) -> RegistryContents {
    let source = Source(registryPath)
    if let source, let before, before.source?.stands(for: source) == true { return before }
    let (entries, broken) = try register()
    return RegistryContents(source: source, entries: entries, broken: broken)
  }

  /// The valid entries, and the problems of the others.
  private func register() throws(CredentialFileError) -> (
    entries: [Entry], broken: [ProviderKeys.Broken]
  ) {
    guard let bytes = try CredentialFiles.read(registryPath) else { return ([], []) }
    let registry: LenientRegistry
    do {
      registry = try JSONDecoder().decode(LenientRegistry.self, from: Data(bytes))
    } catch {
      throw unusable(error)
    }
    var entries: [Entry] = []
    var broken: [ProviderKeys.Broken] = []
    var known: Set<ProviderKeys.Broken> = []
    let counts = Dictionary(registry.keys.map { ($0.keyID, 1) }, uniquingKeysWith: +)
    for (index, item) in registry.keys.enumerated() {
      do throws(CredentialFileError) {
        let entry: Entry
        switch item.entry {
        case .success(let good): entry = good
        case .failure(let error): throw unusable(error)
        }
        try check(entry)
        // Which of the two was meant is unknown.
        guard counts[entry.keyID] == 1 else {
          throw .file(
            path: registryPath, problem: "has two entries for key \(entry.keyID)",
            advice: "remove one of them")
        }
        entries.append(entry)
      } catch {
        let found = ProviderKeys.Broken(keyID: item.keyID ?? "keys[\(index)]", problem: error)
        if known.insert(found).inserted { broken.append(found) }
      }
    }
    return (entries, broken)
  }

  private func unusable(_ error: any Error) -> CredentialFileError {
    .file(
      path: registryPath, problem: Self.explain(error),
      advice: #"wanted is {"keys":[{"keyID":"…","teamID":"…","topics":["…"]}]}"#)
  }

  private func save(_ entries: [Entry]) throws(CredentialFileError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    do {
      let data = try encoder.encode(Registry(keys: entries))
      try CredentialFiles.write(
        Array(data) + [UInt8(ascii: "\n")], to: registryPath, mode: CredentialFiles.privateMode)
    } catch let error as CredentialFileError {
      throw error
    } catch {
      throw .file(
        path: registryPath, problem: "cannot be encoded", advice: "check the names of the topics")
    }
  }

  private func check(_ entry: Entry) throws(CredentialFileError) {
    guard ProviderToken.isIdentifier(entry.keyID) else { throw .badKeyID(entry.keyID) }
    guard ProviderToken.isIdentifier(entry.teamID) else { throw .badTeamID(entry.teamID) }
    if let related = entry.relatedKeyID, !ProviderToken.isIdentifier(related) {
      throw .badKeyID(related)
    }
    guard let topics = entry.topics else { return }
    guard topics.count <= Self.maximumTopicsPerKey else {
      throw .value(
        name: "topics of key", value: entry.keyID,
        advice: "at most \(Self.maximumTopicsPerKey) are possible")
    }
    guard !topics.isEmpty, !topics.contains("") else {
      throw .value(
        name: "topics of key", value: entry.keyID,
        advice: "name at least one, or leave `topics` out to cover all of the team")
    }
  }

  private func publicKey(
    ofKeyID keyID: String, after before: ProviderKeys.Key?
  ) throws(CredentialFileError) -> (key: P256.PublicKey, source: Source) {
    for suffix in Self.suffixes {
      let path = file(keyID, suffix)
      // Before it is read, so that a change in between is seen the next time.
      guard let source = Source(path) else { continue }
      if let before, before.source?.stands(for: source) == true {
        return (before.publicKey, source)
      }
      guard let text = try CredentialFiles.readText(path) else { continue }
      if suffix == ".p8", let key = try? P256.PrivateKey(pem: text) {
        return (key.publicKey, source)
      }
      if suffix != ".p8", let key = try? P256.PublicKey(pem: text) {
        return (key, source)
      }
      throw .file(
        path: path,
        problem: "holds no \(suffix == ".p8" ? "private" : "public") P-256 key in PEM",
        advice: "put the right file there, or remove the key's entry from keys.json")
    }
    throw .file(
      path: file(keyID, ".p8"), problem: "does not exist although keys.json lists the key",
      advice: "put the key file there (or AuthKey_\(keyID).pem), or remove the entry")
  }

  private static func explain(_ error: any Error) -> String {
    let context: DecodingError.Context
    switch error {
    case DecodingError.keyNotFound(let key, let found):
      return "misses \"\(key.stringValue)\"\(place(found))"
    case DecodingError.typeMismatch(_, let found), DecodingError.valueNotFound(_, let found),
      DecodingError.dataCorrupted(let found):
      context = found
    default:
      return "is not the JSON that is wanted"
    }
    return context.codingPath.isEmpty
      ? "is not the JSON object that is wanted" : "has an unusable value\(place(context))"
  }

  private static func place(_ context: DecodingError.Context) -> String {
    let steps = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }
    return steps.isEmpty ? "" : " at \(steps.joined().drop { $0 == "." })"
  }
}

extension ProviderKeyDirectory.Entry {
  package init(_ key: StoredProviderKey) {
    self.init(
      keyID: key.keyID, teamID: key.teamID, topics: key.topics.isEmpty ? nil : key.topics,
      environment: key.environment.flatMap(ProviderEnvironment.init(rawValue:)),
      relatedKeyID: key.relatedKeyID)
  }
}

extension ProviderKeys {
  /// The public halves, as a journal keeps them.
  package var stored: [StoredProviderKey] {
    keys.map { key in
      StoredProviderKey(
        keyID: key.entry.keyID, teamID: key.entry.teamID, topics: key.topics?.names ?? [],
        environment: key.entry.environment?.rawValue, relatedKeyID: key.entry.relatedKeyID,
        publicKey: key.publicKey.pem)
    }
  }
}
