import Foundation
import Testing

/// Certificates that are replaced while the relay runs.
@Suite("Certificates", .timeLimit(.minutes(2))) struct CertificateTests {
  @Test func newConnectionsGetTheNewCertificateAndOthersGoOn() async throws {
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        #expect(!(try await Self.subject(of: relay)).contains("replaced"))
        // The key first, as one file replaces the other: for a moment they do not fit.
        _ = try await Program.run(
          "openssl",
          [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "3", "-subj", "/CN=replaced", "-keyout", relay.state + "/server.key", "-out",
            relay.state + "/server.pem",
          ]
        ).checked("openssl req")
        var subject = ""
        for _ in 0..<100 where !subject.contains("replaced") {
          subject = try await Self.subject(of: relay)
        }
        #expect(subject.contains("replaced"), "\(subject)")
        let push = try await relay.command(
          "push", "--to", phone.id, "--payload", #"{"aps":{"alert":"Hello"}}"#)
        #expect(push.succeeded, "\(push)")
        try await lines.expect("visible 0 via direct")
        // What is no certificate changes nothing.
        try "nonsense".write(
          toFile: relay.state + "/server.pem", atomically: true, encoding: .utf8)
        for _ in 0..<20 {
          #expect(try await Self.subject(of: relay).contains("replaced"))
        }
      }
    }
  }

  /// As a phone that comes back does not send another certificate's worth of bytes and signatures.
  @Test func aClientIsKnownAgainAfterARestart() async throws {
    let scratch = try Scratch()
    let (state, ticket) = (scratch.path + "/state", scratch.path + "/ticket")
    for (start, expected) in ["New, TLSv1.3", "Reused, TLSv1.3", "New, TLSv1.3"].enumerated() {
      if start == 2 {
        try FileManager.default.removeItem(atPath: state + "/tickets.keys")
      }
      try await RelayProcess.run(RelaySetup(keys: []), state: state) { relay in
        let known = start == 0 ? [] : ["-sess_in", ticket]
        // What is no HTTP/2 is the end, after the ticket.
        let outcome = try await Program.run(
          "openssl",
          ["s_client", "-connect", relay.device, "-alpn", "h2", "-ign_eof", "-sess_out", ticket]
            + known, input: "nonsense, and more than a preface has\n")
        #expect(outcome.output.contains(expected), "start \(start): \(outcome)")
        let mode = try FileManager.default.attributesOfItem(atPath: state + "/tickets.keys")
        #expect(mode[.posixPermissions] as? Int == 0o600)
      }
    }
  }

  private static let hasServer: @Sendable () async throws -> Bool = {
    try await NATSServer.program.value != nil
  }

  /// The first node of a cluster brings whom it trusts, another changes it, and a node that starts
  /// with other files trusts the same.
  @Test(.enabled("nats-server cannot be had from PyPI", hasServer))
  func allNodesTrustTheSameAuthorities() async throws {
    let scratch = try Scratch()
    let server = try await NATSServer(in: scratch.path)
    let (a, b) = (scratch.path + "/a", scratch.path + "/b")
    try await server.run { _ in
      _ = try await ClusterRelay.run("a", state: a, on: server, plaintext: false) { first in
        let mine = try await Self.providerCertificate(of: a)
        let theirs = try await Self.providerCertificate(of: b)
        #expect(try await Self.isTaken(mine, by: first.relay))
        let (_, log) = try await ClusterRelay.run("b", state: b, on: server, plaintext: false) {
          second in
          #expect(try await Self.isTaken(mine, by: second.relay))
          #expect(try await !Self.isTaken(theirs, by: second.relay))
          // What one node trusts from now on, all trust; and not the others any more.
          try FileManager.default.removeItem(atPath: a + "/ca.pem")
          try FileManager.default.copyItem(atPath: b + "/ca.pem", toPath: a + "/ca.pem")
          for relay in [first.relay, second.relay] {
            while try await !Self.isTaken(theirs, by: relay) {}
            #expect(try await !Self.isTaken(mine, by: relay))
          }
        }
        #expect(log.contains("trusted as the cluster says"), "\(log)")
      }
    }
  }

  /// A provider's certificate by the authority that a state directory has.
  private static func providerCertificate(of state: String) async throws -> String {
    let path = state + "-provider"
    _ = try await Program.run(
      Program.pushrelay,
      ["certs", "client", "--topic", Phone.topic, "--out", path + ".pem", "--state", state]
    ).checked("certs client")
    return path
  }

  /// Whether a push with the certificate is answered as one of somebody who is known: the token is
  /// nobody's.
  private static func isTaken(
    _ certificate: String, by relay: RelayProcess
  ) async throws -> Bool {
    let answer = try await relay.curl(
      relay.providerURL + "/3/device/" + String(repeating: "5d", count: 32),
      [
        "-H", "apns-topic: \(Phone.topic)", "-H", "apns-push-type: alert", "-k", "--cert",
        certificate + ".pem", "--key", certificate + ".key", "--data-binary",
        #"{"aps":{"alert":"Hello"}}"#,
      ])
    try #require(["BadDeviceToken", "BadCertificate"].contains(answer.reason), "\(answer)")
    return answer.reason == "BadDeviceToken"
  }

  /// Whom a new connection is answered by.
  private static func subject(of relay: RelayProcess) async throws -> String {
    let outcome = try await Program.run(
      "openssl", ["s_client", "-connect", relay.provider, "-alpn", "h2"])
    return outcome.output.split(separator: "\n").first { $0.contains("subject=") }
      .map(String.init) ?? ""
  }
}
