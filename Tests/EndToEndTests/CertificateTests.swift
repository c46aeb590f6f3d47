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

  /// Whom a new connection is answered by.
  private static func subject(of relay: RelayProcess) async throws -> String {
    let outcome = try await Program.run(
      "openssl", ["s_client", "-connect", relay.provider, "-alpn", "h2"])
    return outcome.output.split(separator: "\n").first { $0.contains("subject=") }
      .map(String.init) ?? ""
  }
}
