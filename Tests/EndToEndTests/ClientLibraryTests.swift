import Foundation
import Testing

/// APNs client libraries as they are on PyPI, with nothing changed but host, port and CA.
@Suite("Client libraries", .timeLimit(.minutes(5))) struct ClientLibraryTests {
  private struct Library {
    /// Its name on PyPI.
    let package: String
    let script: String
    /// The first minor version of Python 3 that it does not run on.
    var brokenSince = Int.max
  }

  /// Each with another HTTP/2 stack under it.
  private static let libraries = [
    // Its own protocol over h2 and asyncio.
    Library(package: "aioapns", script: "aioapns_client.py"),
    // httpx, httpcore.
    Library(package: "pyapns-client", script: "pyapns_client.py"),
    // httpx2, httpcore2.
    Library(package: "kalyke-apns", script: "kalyke_client.py"),
    // hyper, which needs `ssl.match_hostname`.
    Library(package: "apns2-up", script: "apns2_client.py", brokenSince: 12),
  ]

  /// For the binary provider API; needs `ssl.wrap_socket`.
  private static let legacy = Library(
    package: "pushjack", script: "pushjack_client.py", brokenSince: 12)

  /// The interpreter of the environment with the libraries; nil when they cannot be had here.
  static let python = Task<String?, any Error> { try await install() }

  @Test(
    .enabled("PyPI cannot be reached, so no client library is tried") {
      try await Self.python.value != nil
    })
  func theyWorkByChangingHostPortAndAuthority() async throws {
    let python = try #require(try await Self.python.value)
    let minor = try await Self.minorVersion(python)
    let usable = Self.libraries.filter { $0.brokenSince > minor }
    #expect(usable.count >= 3)
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let goneToken = try await phone.register("com.example.gone")
      try await phone.unregister("com.example.gone")
      try await phone.talk(["--ack"]) { lines, _ in
        try await lines.expect("hello", "empty")
        for library in usable {
          let outcome = try await Program.run(
            python, [Program.client(library.script)],
            environment: [
              "RELAY": relay.provider, "RELAY_CA": relay.certificateAuthority,
              "TOPIC": Phone.topic, "TOKEN": token, "GONE_TOKEN": goneToken,
              "GONE_TOPIC": "com.example.gone", "KEY_ID": RelaySetup.keyID,
              "TEAM_ID": RelaySetup.teamID,
              "KEY": "\(relay.state)/keys/AuthKey_\(RelaySetup.keyID).p8",
            ])
          #expect(outcome.succeeded, "\(library.package): \(outcome)")
          let expected = ["accepted", "BadDeviceToken", "Unregistered"]
          let said = outcome.output.split(separator: "\n").map(String.init)
          #expect(said == expected, "\(library.package): \(outcome)")
          try await lines.expect("visible 0 via direct")
        }
      }
    }
  }

  /// The interpreter, if the library for the binary provider API can be had and runs on it.
  static func legacyPython() async throws -> String? {
    guard let python = try await python.value,
      try await minorVersion(python) < legacy.brokenSince
    else { return nil }
    return python
  }

  static func minorVersion(_ python: String) async throws -> Int {
    let version = try await Program.run(
      python, ["-c", "import sys; print(sys.version_info.minor)"]
    ).checked("python3").trimmingCharacters(in: .newlines)
    return try #require(Int(version))
  }

  private static func install() async throws -> String? {
    try await Program.environment(with: (libraries + [legacy]).map(\.package))
      .map { $0 + "/bin/python3" }
  }
}

extension Program {
  /// A virtual environment of Python with packages of PyPI, which later runs find again in the
  /// temporary directory; nil when PyPI cannot be reached.
  static func environment(with packages: [String]) async throws -> String? {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "pushrelay-clients-\(packages.joined(separator: "-"))")
      .path(percentEncoded: false)
    let python = folder + "/bin/python3"
    let stamp = folder + "/complete"
    if FileManager.default.fileExists(atPath: stamp) { return folder }
    _ = try await run("python3", ["-m", "venv", folder]).checked("python3 -m venv")
    let pip = ["-m", "pip", "install", "--quiet", "--retries", "1"]
    let reach = try await run(
      python,
      [
        "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "0", "--timeout", "10",
        "--dest", folder, packages[0],
      ])
    guard reach.succeeded else { return nil }
    // From here on the registry is there, and whatever goes wrong is a failure.
    _ = try await run(python, pip + packages).checked("pip install")
    try "".write(toFile: stamp, atomically: true, encoding: .utf8)
    return folder
  }
}
