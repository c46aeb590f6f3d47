import Foundation
import Testing

/// APNs client libraries as they are on PyPI, with nothing changed but host, port and CA.
@Suite("Client libraries", .timeLimit(.minutes(5))) struct ClientLibraryTests {
  /// Package, script, and the HTTP/2 stack under it.
  private static let libraries = [
    ("aioapns", "aioapns_client.py"),  // its own protocol over h2 and asyncio
    ("pyapns-client", "pyapns_client.py"),  // httpx, httpcore
    ("kalyke-apns", "kalyke_client.py"),  // httpx2, httpcore2
    ("apns2-up", "apns2_client.py"),  // hyper
  ]

  /// The interpreter of the environment with the libraries; nil when they cannot be had here.
  private static let python = Task<String?, any Error> { try await install() }

  @Test func theyWorkByChangingHostPortAndAuthority() async throws {
    guard let python = try await Self.python.value else {
      print("SKIPPED: PyPI cannot be reached, so no client library was tried")
      return
    }
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let goneToken = try await phone.register("com.example.gone")
      try await phone.unregister("com.example.gone")
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        for (library, script) in Self.libraries {
          let outcome = try await Program.run(
            python, [Program.client(script)],
            environment: [
              "RELAY": relay.provider, "RELAY_CA": relay.certificateAuthority,
              "TOPIC": Phone.topic, "TOKEN": token, "GONE_TOKEN": goneToken,
              "GONE_TOPIC": "com.example.gone", "KEY_ID": RelaySetup.keyID,
              "TEAM_ID": RelaySetup.teamID,
              "KEY": "\(relay.state)/keys/AuthKey_\(RelaySetup.keyID).p8",
            ])
          #expect(outcome.succeeded, "\(library): \(outcome)")
          let expected = ["accepted", "BadDeviceToken", "Unregistered"]
          let said = outcome.output.split(separator: "\n").map(String.init)
          #expect(said == expected, "\(library): \(outcome)")
          try await lines.expect("visible 0 via direct")
        }
      }
    }
  }

  /// A virtual environment that later runs find again, in the temporary directory.
  private static func install() async throws -> String? {
    let packages = libraries.map(\.0)
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "pushrelay-clients-\(packages.joined(separator: "-"))")
      .path(percentEncoded: false)
    let python = folder + "/bin/python3"
    let stamp = folder + "/complete"
    if FileManager.default.fileExists(atPath: stamp) { return python }
    _ = try await Program.run("python3", ["-m", "venv", folder]).checked("python3 -m venv")
    let pip = ["-m", "pip", "install", "--quiet", "--retries", "1"]
    let reach = try await Program.run(
      python,
      [
        "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "0", "--timeout", "10",
        "--dest", folder, packages[0],
      ])
    guard reach.succeeded else { return nil }
    // From here on the registry is there, and whatever goes wrong is a failure.
    _ = try await Program.run(python, pip + packages).checked("pip install")
    try "".write(toFile: stamp, atomically: true, encoding: .utf8)
    return python
  }
}
