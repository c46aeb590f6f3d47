import Foundation
import Primitives
import RelayCore
import RelayStore
import TLS
import TestSupport
import Testing

@testable import ProviderCredentials

@Suite struct ProviderKeyDirectoryTests {
  let temporary: TemporaryDirectory
  let directory: ProviderKeyDirectory

  init() throws {
    temporary = try TemporaryDirectory()
    directory = ProviderKeyDirectory(path: temporary.path + "/keys")
  }

  let entry = ProviderKeyDirectory.Entry(keyID: TestProvider.keyID, teamID: TestProvider.team)

  @Test func nothingThereIsNoKeys() throws {
    let keys = try directory.load()
    #expect(keys.keys.isEmpty && keys.notices.isEmpty)
    #expect(try directory.list().isEmpty)
    #expect(!FileManager.default.fileExists(atPath: directory.path))
  }

  @Test func createdKeysSignWhatTheyVerify() throws {
    let specific = ProviderKeyDirectory.Entry(
      keyID: "TOPICKEY01", teamID: TestProvider.team, topics: ["com.example/ä", "com.example.app"],
      environment: .sandbox, relatedKeyID: "TOPICKEY02")
    let path = try directory.create(entry)
    try directory.create(specific)
    #expect(path == directory.path + "/AuthKey_ABC123DEFG.p8")
    #expect(try directory.list() == [entry, specific])
    #expect(try temporary.mode(of: "keys") == 0o700)
    #expect(try temporary.mode(of: "keys/keys.json") == 0o600)
    #expect(try temporary.mode(of: "keys/AuthKey_ABC123DEFG.p8") == 0o600)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).count == 3)

    let keys = try directory.load()
    #expect(keys.notices.isEmpty)
    #expect(keys.keys.map(\.entry.keyID) == [TestProvider.keyID, "TOPICKEY01"])
    #expect(keys.keys[0].topics == nil && keys.keys[0].entry.environment == nil)
    #expect(keys.keys[1].topics?.names == ["com.example.app", "com.example/ä"])
    #expect(keys.keys[1].entry.environment == .sandbox)
    #expect(keys.keys[1].entry.relatedKeyID == "TOPICKEY02")
    #expect(keys.index(ofKeyID: "TOPICKEY01") == 1 && keys.index(ofKeyID: "X") == nil)

    let text = try directory.signer(forKeyID: "TOPICKEY01").token(issuedAtSeconds: 1)
    let bytes = Array(text.utf8)
    #expect(try ProviderToken(parsing: bytes.span).isSigned(by: keys.keys[1].publicKey))
  }

  /// As a node of a cluster takes over what the others have.
  @Test func allKeysAreReplaced() throws {
    func stored(_ keyID: String, _ key: P256.PrivateKey, topics: [String] = [])
      -> StoredProviderKey
    {
      StoredProviderKey(
        keyID: keyID, teamID: TestProvider.team, topics: topics, environment: nil,
        relatedKeyID: nil, publicKey: key.publicKey.pem)
    }
    let (first, second) = (P256.PrivateKey(), P256.PrivateKey())
    let (one, two) = (stored("KEYNUMBER1", first), stored("KEYNUMBER2", second, topics: ["a.b"]))
    try directory.replace(with: [one])
    try directory.replace(with: [one, two])
    #expect(try directory.list().map(\.keyID) == ["KEYNUMBER1", "KEYNUMBER2"])
    let keys = try directory.load()
    #expect(keys.broken.isEmpty && keys.keys.map(\.topics?.names) == [nil, ["a.b"]])
    #expect(keys.keys.map(\.publicKey.pem) == [first.publicKey.pem, second.publicKey.pem])
    let registry = directory.path + "/keys.json"
    let before = try FileManager.default.attributesOfItem(atPath: registry)[.systemFileNumber]
    try directory.replace(with: [one, two])
    let after = try FileManager.default.attributesOfItem(atPath: registry)[.systemFileNumber]
    #expect(before as? Int == after as? Int, "nothing is written again")
    try directory.replace(with: [two])
    #expect(try directory.list().map(\.keyID) == ["KEYNUMBER2"])
  }

  @Test func addsPrivateAndPublicHalves() throws {
    let key = P256.PrivateKey()
    let publicFile = try temporary.write(key.publicKey.pem, to: "x.pem")
    let privateFile = try temporary.write(key.pem, to: "x.p8")
    #expect(try directory.add(entry, copying: publicFile).hasSuffix("AuthKey_ABC123DEFG.pem"))
    #expect(try temporary.mode(of: "keys/AuthKey_ABC123DEFG.pem") == 0o644)
    let second = ProviderKeyDirectory.Entry(keyID: "SECONDKEY1", teamID: TestProvider.team)
    #expect(try directory.add(second, copying: privateFile).hasSuffix("AuthKey_SECONDKEY1.p8"))
    let keys = try directory.load()
    #expect(keys.keys.map(\.publicKey) == [key.publicKey, key.publicKey] && keys.notices.isEmpty)
    #expect(
      fileProblem { () throws(CredentialFileError) in
        _ = try directory.signer(forKeyID: TestProvider.keyID)
      }?.contains("AuthKey_ABC123DEFG.p8: does not exist") == true)
  }

  @Test func addingRefuses() throws {
    try directory.create(entry)
    let file = try temporary.write(P256.PrivateKey().pem, to: "x.p8")
    let text = try temporary.write("hello", to: "hello.txt")
    func refusal(_ entry: ProviderKeyDirectory.Entry, _ path: String? = nil) -> String {
      fileProblem { () throws(CredentialFileError) in
        try directory.add(entry, copying: path ?? file)
      } ?? "accepted"
    }
    var other = entry
    #expect(refusal(entry).contains("registered already"))
    other.keyID = "../../root"
    #expect(refusal(other).contains("ten letters or digits"))
    other = ProviderKeyDirectory.Entry(keyID: "SECONDKEY1", teamID: "short")
    #expect(refusal(other).contains("team ID \"short\""))
    other.teamID = TestProvider.team
    other.topics = []
    #expect(refusal(other).contains("at least one"))
    other.topics = (0...400).map { "com.example.app\($0)" }
    #expect(refusal(other).contains("at most 400"))
    other.topics = nil
    #expect(refusal(other, text).contains("no P-256 key"))
    #expect(refusal(other, temporary.path + "/none").contains("does not exist"))
    _ = try temporary.write("precious", to: "keys/AuthKey_SECONDKEY1.p8")
    #expect(refusal(other).contains("exists already with another key"))
    #expect(try temporary.read("keys/AuthKey_SECONDKEY1.p8") == "precious")
    #expect(try directory.list() == [entry])
  }

  /// The file to add may be the one that lies in the directory without an entry.
  @Test func addsWhatLiesThereAlready() throws {
    try FileManager.default.createDirectory(
      atPath: directory.path, withIntermediateDirectories: true)
    let name = "keys/AuthKey_ABC123DEFG.p8"
    let path = try temporary.write(P256.PrivateKey().pem, to: name)
    let stray = try directory.load()
    #expect(stray.keys.isEmpty)
    #expect(stray.notices.count == 1 && stray.notices[0].contains("no entry in keys.json"))
    try directory.add(entry, copying: path)
    #expect(try directory.load().notices.isEmpty)
    #expect(try temporary.mode(of: name) == 0o600)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    let open = try directory.load().notices
    #expect(open.count == 1 && open[0].contains("chmod 600"))
  }

  @Test(arguments: [
    ("", "not the JSON object"), ("[]", "not the JSON object"), ("{}", "misses \"keys\""),
    (#"{"keys":{}}"#, "unusable value at keys"),
  ])
  func unusableRegistriesAreExplained(json: String, expected: String) throws {
    try FileManager.default.createDirectory(
      atPath: directory.path, withIntermediateDirectories: true)
    _ = try temporary.write(json, to: "keys/keys.json")
    let text = fileProblem { () throws(CredentialFileError) in _ = try directory.load() }
    #expect(text?.contains(expected) == true, "\(text ?? "loaded")")
  }

  /// Whatever is wrong with one key, the others are in force and it is not; nor is it lost when
  /// another is added.
  @Test(arguments: [
    (#"{"keyID":"BROKENKEY1"}"#, "BROKENKEY1", "misses \"teamID\" at keys[1]"),
    (#"{"keyID":1,"teamID":"TEAM123456"}"#, "keys[1]", "unusable value at keys[1].keyID"),
    (#""BROKENKEY1""#, "keys[1]", "unusable value at keys[1]"),
    (
      #"{"keyID":"BROKENKEY1","teamID":"TEAM123456","environment":"test"}"#, "BROKENKEY1",
      "unusable value at keys[1].environment"
    ),
    (#"{"keyID":"ABC","teamID":"TEAM123456"}"#, "ABC", "key ID \"ABC\""),
    (
      #"{"keyID":"BROKENKEY1","teamID":"TEAM123456"},"#
        + #"{"keyID":"BROKENKEY1","teamID":"TEAM654321"}"#, "BROKENKEY1",
      "two entries for key BROKENKEY1"
    ),
    (
      #"{"keyID":"BROKENKEY1","teamID":"TEAM123456"}"#, "BROKENKEY1",
      "AuthKey_BROKENKEY1.p8: does not exist"
    ),
  ])
  func aBrokenKeyIsLeftOutAndTold(item: String, keyID: String, expected: String) throws {
    try directory.create(entry)
    let good = #"{"keyID":"\#(entry.keyID)","teamID":"\#(entry.teamID)"}"#
    let json = #"{"keys":[\#(good),\#(item)]}"#
    _ = try temporary.write(json, to: "keys/keys.json")
    let keys = try directory.load()
    #expect(keys.keys.map(\.entry.keyID) == [entry.keyID])
    #expect(keys.broken.map(\.keyID) == [keyID])
    let problem = keys.broken.first?.problem.description ?? ""
    #expect(problem.contains(expected), "\(problem)")
    #expect(try directory.signer(forKeyID: entry.keyID).keyID == entry.keyID)
    let isWhole = try directory.list().count == 2
    let second = ProviderKeyDirectory.Entry(keyID: "SECONDKEY1", teamID: TestProvider.team)
    if isWhole {
      try directory.create(second)
      #expect(try directory.load().broken == keys.broken)
    } else {
      #expect(throws: keys.broken[0].problem) { try directory.create(second) }
      #expect(try temporary.read("keys/keys.json") == json)
    }
  }

  /// The finding: a key whose file was taken away stayed in force, for nothing could be read.
  @Test func aKeyWhoseFileIsTakenAwayIsRevoked() throws {
    try directory.create(entry)
    try directory.create(.init(keyID: "SECONDKEY1", teamID: TestProvider.team))
    let before = try directory.load()
    try FileManager.default.removeItem(atPath: directory.path + "/AuthKey_ABC123DEFG.p8")
    let after = try directory.load()
    #expect(after.keys.map(\.entry.keyID) == ["SECONDKEY1"])
    #expect(after.broken.map(\.keyID) == [entry.keyID])
    #expect(!before.areSame(as: after))
  }

  /// A file that cannot be read now says nothing of its key: those in force stay.
  @Test func aFailingDiskOrNoDescriptorRevokesNoKey() throws {
    try directory.create(entry)
    let path = directory.path + "/AuthKey_ABC123DEFG.p8"
    try FileManager.default.removeItem(atPath: path)
    // Its first byte is an I/O error (proc_pid_mem(5)).
    try FileManager.default.createSymbolicLink(
      atPath: path, withDestinationPath: "/proc/self/mem")
    #expect(throws: CredentialFileError.passing(path: path, problem: "try again")) {
      try directory.load()
    }
  }

  /// A file that is as it was is not read again; one that was changed in place is.
  @Test func whatIsReadAgainIsTheSameUnlessItHasChanged() throws {
    try directory.create(entry)
    let first = try directory.load()
    let second = try directory.load(after: first)
    #expect(
      first.areSame(as: second) && second.keys[0].publicKey.pem == first.keys[0].publicKey.pem)
    _ = try temporary.write(P256.PrivateKey().pem, to: "keys/AuthKey_ABC123DEFG.p8")
    let third = try directory.load(after: second)
    #expect(!third.areSame(as: second))
    #expect(third.keys[0].publicKey.pem != first.keys[0].publicKey.pem)
    _ = try temporary.write("garbage", to: "keys/AuthKey_ABC123DEFG.p8")
    #expect(try directory.load(after: third).broken.map(\.keyID) == [entry.keyID])
    _ = try temporary.write(#"{"keys":[]}"#, to: "keys/keys.json")
    let last = try directory.load(after: third)
    #expect(last.keys.isEmpty && last.broken.isEmpty)
  }

  @Test func unusableKeyFilesAreExplained() throws {
    try directory.create(entry)
    for (name, contents, expected) in [
      ("AuthKey_ABC123DEFG.p8", "garbage", "no private P-256 key"),
      ("AuthKey_ABC123DEFG.pem", "garbage", "no public P-256 key"),
    ] {
      try FileManager.default.removeItem(atPath: directory.path + "/AuthKey_ABC123DEFG.p8")
      _ = try temporary.write(contents, to: "keys/" + name)
      let keys = try directory.load()
      let text = keys.broken.first?.problem.description ?? "loaded"
      #expect(keys.keys.isEmpty && text.contains(expected), "\(text)")
      _ = try temporary.write("", to: "keys/AuthKey_ABC123DEFG.p8")
    }
  }

  @Test func theStampTellsWhetherAnythingChanged() throws {
    let nothing = directory.stamp
    #expect(nothing == directory.stamp)
    try directory.create(entry)
    let one = directory.stamp
    #expect(one != nothing && one == directory.stamp)
    // Reading changes the time of access, which is no change.
    let keys = try directory.load()
    #expect(keys.stamp == one && directory.stamp == one)
    try directory.create(.init(keyID: "SECONDKEY1", teamID: TestProvider.team))
    #expect(directory.stamp != one)
  }

  /// In development a newcomer has a key; an empty directory says that all were revoked.
  @Test func theFirstKeyIsMadeWhereThereIsNoDirectory() throws {
    let first = try #require(try directory.createFirst())
    #expect(first.teamID == ProviderKeyDirectory.defaultTeamID)
    #expect(try directory.list() == [first])
    #expect(try directory.createFirst() == nil)
    for name in try FileManager.default.contentsOfDirectory(atPath: directory.path) {
      try FileManager.default.removeItem(atPath: directory.path + "/" + name)
    }
    #expect(try directory.createFirst() == nil)
    #expect(try directory.load().keys.isEmpty)
  }

  @Test func keyIDs() {
    #expect(ProviderKeyDirectory.keyID(ofFileName: "AuthKey_ABC123DEFG.p8") == "ABC123DEFG")
    #expect(ProviderKeyDirectory.keyID(ofFileName: "AuthKey_ABC123DEFG.pub.pem") == "ABC123DEFG")
    #expect(ProviderKeyDirectory.keyID(ofFileName: "AuthKey_ABC123DEFG.pem") == "ABC123DEFG")
    for name in ["AuthKey_ABC.p8", "ABC123DEFG.p8", "AuthKey_ABC123DEFG.txt", "keys.json", ""] {
      #expect(ProviderKeyDirectory.keyID(ofFileName: name) == nil)
    }
    var generator = SeededRandom(seed: 1)
    let made = (0..<100).map { _ in ProviderKeyDirectory.randomKeyID(using: &generator) }
    #expect(Set(made).count == 100 && made.allSatisfy(ProviderToken.isIdentifier))
  }

  @Test(.enabled(if: OpenSSL.isInstalled, "needs the openssl program"))
  func opensslReadsTheKey() throws {
    let path = try directory.create(entry)
    let result = try OpenSSL.run("pkey", "-in", path, "-noout", "-text")
    #expect(result.status == 0 && result.output.contains("prime256v1"), "\(result.output)")
    #expect(try temporary.read("keys/AuthKey_ABC123DEFG.p8").hasPrefix("-----BEGIN PRIVATE KEY"))
  }
}
