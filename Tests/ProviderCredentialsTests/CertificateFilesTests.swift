import Foundation
import ProviderCredentials
import TLS
import TestSupport
import Testing

@Suite struct CertificateFilesTests {
  let temporary: TemporaryDirectory
  let files: CertificateFiles
  let now = TestProvider.now
  let names = ["localhost", "127.0.0.1"]
  static let day: Int64 = 86_400_000

  init() throws {
    temporary = try TemporaryDirectory()
    files = CertificateFiles(directory: temporary.path + "/state")
  }

  func remove(_ name: String) throws {
    try FileManager.default.removeItem(atPath: temporary.path + "/state/" + name)
  }

  func problem(names: [String]? = nil, daysLater: Int64 = 0) -> String {
    fileProblem { () throws(CredentialFileError) in
      try files.ensure(names: names ?? self.names, now: now + daysLater * Self.day)
    } ?? "accepted"
  }

  @Test func makesWhatIsMissingOnce() throws {
    #expect(try files.ensure(names: names, now: now) == [.madeAuthority, .madeServer])
    for (name, mode) in [
      ("state", 0o700), ("state/ca.key", 0o600), ("state/server.key", 0o600),
      ("state/ca.pem", 0o644), ("state/server.pem", 0o644),
    ] {
      #expect(try temporary.mode(of: name) == mode, "\(name)")
    }
    let before = try temporary.read("state/server.pem")
    #expect(try files.ensure(names: names, now: now + Self.day) == [])
    #expect(try temporary.read("state/server.pem") == before)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: temporary.path + "/state").sorted()
        == ["ca.key", "ca.pem", "certificates.lock", "server.key", "server.pem"])
  }

  /// A relay and `certs client` may find an empty directory at the same time.
  @Test func manyAtOnceMakeOneAuthority() async throws {
    let made = try await withThrowingTaskGroup(of: [CertificateFiles.Action].self) { group in
      for _ in 0..<8 {
        group.addTask { [files, names, now] in try files.ensure(names: names, now: now) }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(made == [.madeAuthority, .madeServer])
    let authority = try Certificate(pem: try temporary.read("state/ca.pem"))
    let server = try Certificate(pem: try temporary.read("state/server.pem"))
    #expect(server.isIssued(by: authority))
    _ = try files.authority(now: now)
  }

  @Test(
    arguments: [(366, []), (368, [.renewedServer]), (500, [.renewedServer])]
      as [(Int64, [CertificateFiles.Action])])
  func renewsItsOwnInTime(days: Int64, expected: [CertificateFiles.Action]) throws {
    try files.ensure(names: names, now: now)
    let key = try temporary.read("state/server.key")
    let authority = try temporary.read("state/ca.pem")
    #expect(try files.ensure(names: names, now: now + days * Self.day) == expected)
    #expect(try temporary.read("state/server.key") == key)
    #expect(try temporary.read("state/ca.pem") == authority)
    #expect(try files.ensure(names: names, now: now + days * Self.day) == [])
  }

  @Test func newNamesNeedANewCertificate() throws {
    try files.ensure(names: names, now: now)
    #expect(try files.ensure(names: ["localhost"], now: now) == [])
    #expect(try files.ensure(names: names + ["10.0.0.7"], now: now) == [.renewedServer])
    #expect(try files.ensure(names: names + ["10.0.0.7"], now: now) == [])
    // Who asks for one name more does not take those away that others have asked for.
    #expect(try files.ensure(names: ["fd00::1", "a.example"], now: now) == [.renewedServer])
    #expect(try files.ensure(names: names + ["10.0.0.7", "fd00::1"], now: now) == [])
    #expect(try files.ensure(names: ["b.example"], now: now) == [.renewedServer])
    let certificate = try Certificate(pem: temporary.read("state/server.pem"))
    #expect(
      certificate.alternativeNames == [
        "b.example", "a.example", "localhost", "fd00:0:0:0:0:0:0:1", "127.0.0.1", "10.0.0.7",
      ])
  }

  /// Each file may be lost; a key without its certificate is kept.
  @Test func lostFiles() throws {
    try files.ensure(names: names, now: now)
    let key = try temporary.read("state/server.key")
    try remove("server.pem")
    #expect(try files.ensure(names: names, now: now) == [.madeServer])
    #expect(try temporary.read("state/server.key") == key)

    try remove("server.key")
    #expect(problem().contains("server.pem: is there, but its key"))
    try remove("server.pem")
    #expect(try files.ensure(names: names, now: now) == [.madeServer])
    #expect(try temporary.read("state/server.key") != key)

    try remove("ca.key")
    #expect(try files.ensure(names: names, now: now) == [])
    #expect(try files.ensure(names: names + ["other"], now: now) == [.cannotRenew])
    #expect(try files.ensure(names: names, now: now + 380 * Self.day) == [.cannotRenew])
    #expect(problem(daysLater: 397).contains("ca.key: is missing"))
    try remove("ca.pem")
    #expect(try files.ensure(names: names, now: now) == [])
    #expect(problem(daysLater: 397).contains("server.pem: has expired"))
  }

  /// A start that was cut off between key and certificate goes on where it was.
  @Test func interruptedStart() throws {
    try files.ensure(names: names, now: now)
    try remove("server.pem")
    try remove("server.key")
    let key = try temporary.read("state/ca.key")
    try remove("ca.pem")
    #expect(try files.ensure(names: names, now: now) == [.madeAuthority, .madeServer])
    #expect(try temporary.read("state/ca.key") == key)
  }

  @Test func foreignCertificatesAreLeftAlone() throws {
    let foreign = try DevelopmentAuthority(now: now).issueServer(names: ["example.com"], now: now)
    try files.ensure(names: names, now: now)
    _ = try temporary.write(foreign.certificate, to: "state/server.pem")
    #expect(problem().contains("server.key: does not belong"))
    #expect(throws: CredentialFileError.self) { try files.checkServer() }
    _ = try temporary.write(foreign.privateKey, to: "state/server.key")
    try files.checkServer()
    #expect(try files.ensure(names: names, now: now) == [])
    #expect(try files.ensure(names: names, now: now + 390 * Self.day) == [])
    #expect(problem(daysLater: 400).contains("server.pem: has expired"))
    #expect(try temporary.read("state/server.pem") == foreign.certificate)
  }

  @Test(arguments: ["ca.pem", "ca.key", "server.pem", "server.key"])
  func garbageIsExplained(name: String) throws {
    try files.ensure(names: names, now: now)
    _ = try temporary.write("garbage", to: "state/" + name)
    let text = problem(names: names + ["other"])
    #expect(text.contains(name.hasPrefix("ca") ? "ca.pem: " : name + ": "), "\(text)")
    #expect(try temporary.read("state/" + name) == "garbage")
  }

  @Test func unusablePlaces() throws {
    let path = try temporary.write("", to: "file")
    for (directory, expected) in [
      (path, "is not a directory"), (path + "/below", "cannot be made"),
    ] {
      let text = fileProblem { () throws(CredentialFileError) in
        try CertificateFiles(directory: directory).ensure(names: names, now: now)
      }
      #expect(text?.contains(expected) == true, "\(text ?? "accepted")")
    }
  }

  @Test func theAuthorityIsTheOneOnDisk() throws {
    let made = try files.authority(now: now)
    #expect(try files.authority(now: now).certificate == made.certificate)
    #expect(try Certificate(pem: temporary.read("state/ca.pem")) == made.certificate)
    let local = CertificateFiles.localNames(and: ["relay.example.com", "localhost"])
    #expect(local.starts(with: ["localhost", "127.0.0.1", "::1"]))
    #expect(local.contains("relay.example.com") && Set(local).count == local.count)
  }
}
