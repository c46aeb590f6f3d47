import Foundation
import Testing

/// An authority and what it has signed, in a folder.
private struct Authority {
  let folder: String
  let name: String
  var file: String { "\(folder)/\(name).pem" }

  init(_ name: String, in folder: String) async throws {
    (self.folder, self.name) = (folder, name)
    try await openssl(
      ["req", "-x509", "-days", "3", "-subj", "/CN=\(name)", "-out", file] + key(name))
  }

  /// Makes a certificate for these names, `NAME.pem`, and its key, `NAME.key`.
  func sign(_ leaf: String, for names: String) async throws {
    let extensions = "\(folder)/\(leaf).ext"
    try "subjectAltName=\(names)\n".write(
      toFile: extensions, atomically: true, encoding: .utf8)
    let request = "\(folder)/\(leaf).csr"
    try await openssl(["req", "-subj", "/CN=\(leaf)", "-out", request] + key(leaf))
    try await openssl([
      "x509", "-req", "-in", request, "-CA", file, "-CAkey", "\(folder)/\(name).key", "-days", "3",
      "-extfile", extensions, "-out", "\(folder)/\(leaf).pem",
    ])
  }

  private func key(_ name: String) -> [String] {
    [
      "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
      "\(folder)/\(name).key",
    ]
  }

  private func openssl(_ arguments: [String]) async throws {
    _ = try await Program.run("openssl", arguments).checked("openssl \(arguments[0])")
  }
}

/// How a relay and an engine that do not trust everybody come together, or do not.
@Suite("Access to the engine", .timeLimit(.minutes(5))) struct EngineAccessTests {
  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  /// With the library that makes keys of NATS.
  private static let python = Task<String?, any Error> {
    try await Program.environment(with: ["nkeys==0.2.1"]).map { $0 + "/bin/python3" }
  }

  /// What the server forbids is never answered: the log has the server's words.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func aRightThatIsMissingIsNamed() async throws {
    let scratch = try Scratch()
    var server = try await NATSServer(in: scratch.path)
    let shipped = Program.root.appending(path: "Docker/nats-rights.conf")
    let (all, less) = (#""_INBOX.pushrelay.>", "pushrelay.hop.>""#, #""_INBOX.pushrelay.>""#)
    let rights = try String(contentsOf: shipped, encoding: .utf8)
    try #require(rights.contains(all))
    server.settings = rights.replacing(all, with: less)
    let (_, log) = try await server.run { [server] _ in
      try await ClusterRelay.run("a", state: scratch.path + "/a", on: server) { _ in }
    }
    #expect(log.contains("Docker/nats-rights.conf") && log.contains("pushrelay.hop.1"), "\(log)")
  }

  /// A server that demands a certificate, a user and a password, and the files that fit.
  private static func closedServer(in folder: String) async throws -> NATSServer {
    let authority = try await Authority("authority", in: folder)
    try await authority.sign("server", for: "IP:127.0.0.1")
    try await authority.sign("relay", for: "DNS:relay")
    let stranger = try await Authority("stranger", in: folder)
    try await stranger.sign("unknown", for: "DNS:relay")
    var server = try await NATSServer(in: folder)
    (server.scheme, server.user) = ("tls", "relay:correct@")
    server.settings = """

      tls {
        cert_file: "\(folder)/server.pem", key_file: "\(folder)/server.key"
        ca_file: "\(folder)/authority.pem", verify: true
      }
      authorization { user: relay, password: correct }
      """
    return server
  }

  private static func options(
    _ folder: String, ca: String? = "authority", certificate: String? = "relay"
  ) -> [String] {
    (ca.map { ["--nats-ca", "\(folder)/\($0).pem"] } ?? [])
      + (certificate.map {
        ["--nats-certificate", "\(folder)/\($0).pem", "--nats-key", "\(folder)/\($0).key"]
      } ?? [])
  }

  /// What a relay says that does not start.
  private static func refusal(
    _ url: String, _ options: [String], in folder: String
  ) async throws -> String {
    let outcome = try await Program.run(
      Program.pushrelay,
      [
        "serve", "--state", folder + "/refused", "--plaintext", "--auth", "none", "--store",
        "jetstream", "--nats", url, "--node", "a", "--provider", "127.0.0.1:0", "--device",
        "127.0.0.1:0",
        // What else is logged may come in the midst of the line.
        "--log-level", "critical",
      ] + options)
    #expect(!outcome.succeeded)
    // Neither password is anybody's business.
    #expect(!outcome.errors.contains("correct") && !outcome.errors.contains("horse"))
    return outcome.errors
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func eachSideShowsACertificateThatTheOtherTrusts() async throws {
    let scratch = try Scratch()
    let folder = scratch.path
    let server = try await Self.closedServer(in: folder)
    try await server.run { _ in
      _ = try await ClusterRelay.run(
        "a", state: folder + "/a", on: server, Self.options(folder)
      ) { relay in
        let phone = try await Phone(on: relay.relay)
        let token = try await phone.register()
        #expect(try await relay.push(token, "kept").status == 200)
      }
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func whoIsNotTrustedIsSaid() async throws {
    let scratch = try Scratch()
    let folder = scratch.path
    let server = try await Self.closedServer(in: folder)
    try await server.run { _ in
      func refusal(_ options: [String], at url: String? = nil) async throws -> String {
        try await Self.refusal(url ?? server.url, options, in: folder)
      }
      var said = try await refusal(Self.options(folder, ca: "stranger"))
      #expect(said.contains("natsCA must name the PEM file of its authority"), "\(said)")
      #expect(said.contains("unable to get local issuer certificate"), "\(said)")
      said = try await refusal(Self.options(folder, ca: nil))
      #expect(said.contains("is not trusted"), "\(said)")
      let elsewhere = server.url.replacing("127.0.0.1", with: "localhost")
      said = try await refusal(Self.options(folder), at: elsewhere)
      #expect(said.contains("hostname mismatch"), "\(said)")
      said = try await refusal(Self.options(folder, certificate: nil))
      #expect(said.contains("if it demands a certificate, natsCertificate"), "\(said)")
      said = try await refusal(Self.options(folder, certificate: "unknown"))
      #expect(said.contains("may not accept the certificate \(folder)/unknown.pem"), "\(said)")
      said = try await refusal(
        Self.options(folder), at: server.url.replacing("correct", with: "horse"))
      #expect(said.contains("does not accept user and password"), "\(said)")
      said = try await refusal(["--nats-ca", folder + "/nothing.pem"])
      #expect(said.contains("nothing.pem (No such file or directory)"), "\(said)")
      said = try await refusal(["--nats-ca", folder + "/server.ext"])
      #expect(said.contains("cannot use \(folder)/server.ext"), "\(said)")
    }
  }

  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func nothingIsSaidInTheClearToAServerWithoutTLS() async throws {
    let scratch = try Scratch()
    let folder = scratch.path
    var server = try await NATSServer(in: folder)
    (server.scheme, server.user) = ("tls", "relay:correct@")
    try await server.run { _ in
      let said = try await Self.refusal(server.url, [], in: folder)
      #expect(said.contains("does not offer TLS"), "\(said)")
    }
  }

  @Test(
    .enabled("nats-server and nkeys cannot be had from PyPI") {
      let python = try await Self.python.value
      return try await Self.hasServer() && python != nil
    })
  func aUserIsKnownByItsCredentials() async throws {
    let scratch = try Scratch()
    let folder = scratch.path
    let python = try #require(try await Self.python.value)
    _ = try await Program.run(python, [Program.client("nats_credentials.py"), folder])
      .checked("nats_credentials.py")
    var server = try await NATSServer(in: folder)
    server.settings = try String(contentsOfFile: folder + "/engine.conf", encoding: .utf8)
    try await server.run { [server] _ in
      _ = try await ClusterRelay.run(
        "a", state: folder + "/a", on: server, ["--nats-credentials", folder + "/relay.creds"]
      ) { relay in
        let phone = try await Phone(on: relay.relay)
        let token = try await phone.register()
        #expect(try await relay.push(token, "kept").status == 200)
      }
      for (file, reason) in [
        ("stranger.creds", "does not accept user and password, or the credentials"),
        ("engine.conf", "cannot use \(folder)/engine.conf"), ("none", "No such file"),
      ] {
        let said = try await Self.refusal(
          server.url, ["--nats-credentials", "\(folder)/\(file)"], in: folder)
        #expect(said.contains(reason), "\(said)")
      }
    }
  }
}
