import ArgumentParser
import Configuration
import FoundationEssentials
import Glibc
import Logging
import ProviderCredentials
import RelayServer
import RelaySetup
import ServiceLifecycle
import Subprocess
import Synchronization
import SystemPackage
import UnixSignals

struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Run a program whose pushes to Apple come to a relay of its own.",
    discussion: """
      Examples:

        pushrelay run -- pytest
        pushrelay run --state .pushrelay -- dotnet run
        PUSHRELAY_POLICY=strict pushrelay run -- sh -c '
          pushrelay device phone --light --state "$PUSHRELAY_RUN_STATE" \\
            --topic com.example.app & exec ./backend'

      Starts a relay on free ports of this machine and the program beside it, which needs no \
      change: HTTPS_PROXY leads Apple's host names to the relay and refuses all others; \
      SSL_CERT_FILE, NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE name the relay's \
      CA. Those but Node's replace the system's file of authorities: most programs trust no other \
      TLS server meanwhile. PUSHRELAY_RUN_PROVIDER, _DEVICE, _ADMIN, _PROXY (HOST:PORT), _STATE, \
      _CA, _TOKEN, _KEY (files), _KEY_ID and _TEAM_ID tell where the relay is, and \
      PUSHRELAY_STATE has commands of pushrelay find it.

      The relay takes settings from --config and PUSHRELAY_… as 'pushrelay serve' does, keeps \
      nothing without --state, and ends with the program, whose exit status is this command's \
      (128 and the signal's number if one ended it). Signals are passed on. What does not heed \
      HTTPS_PROXY is in docs/UNMODIFIED.md.
      """)

  @Option(help: "Directory for certificates, keys and data (default: one that goes with it).")
  var state: String?
  @Option(help: "A JSON file with settings, as of 'pushrelay serve'.")
  var config: String?
  @Argument(parsing: .postTerminator, help: "The program and its arguments.")
  var command: [String] = []

  static let missingProgram = "name a program behind --, as in: pushrelay run -- pytest"

  func validate() throws {
    guard !command.isEmpty else { throw ValidationError(Self.missingProgram) }
  }

  func run() async throws {
    let ephemeral = FileManager.default.temporaryDirectory
      .appending(path: "pushrelay-run-\(String(UInt64.random(in: .min ... .max), radix: 36))")
      .path()
    defer { if state == nil { try? FileManager.default.removeItem(atPath: ephemeral) } }
    let configuration = try await settings(state ?? ephemeral)
    // From here on no signal ends this process: the program does.
    let signals = await UnixSignalsSequence(
      trapping: .sigterm, .sigint, .sighup, .sigquit, .sigusr1, .sigusr2)
    let (endings, hasEnded) = AsyncStream.makeStream(of: ExitCode.self)
    let own = try OwnRelay(configuration, .own(.warning))
    let program = own.work { ready, _, _ in
      hasEnded.yield(try await play(try variables(ready, configuration), signals))
    }
    try await Services.run(
      [.leading(own), .ending(program)], endedBy: [])
    hasEnded.finish()
    throw await endings.first { _ in true } ?? ExitCode.failure
  }

  private func settings(_ directory: String) async throws -> RelayConfiguration {
    // The program may go to another directory.
    let root = directory.hasPrefix("/") ? "" : FileManager.default.currentDirectoryPath + "/"
    let free = ConfigContent.string("127.0.0.1:0")
    var flags: [String: ConfigContent] = [
      "state": .string(root + directory), "provider": free, "device": free, "admin": free,
      "proxy": free,
    ]
    if state == nil { flags["store"] = .string(RelayConfiguration.Store.memory.rawValue) }
    return try await RelayConfiguration(flags: flags, file: config)
  }

  private func variables(
    _ ready: ReadyFile, _ configuration: RelayConfiguration
  ) throws -> [Environment.Key: String?] {
    let proxy = ready.proxy ?? ""
    // Whatever stood there might have led Apple's names past the proxy.
    let direct = "localhost,127.0.0.1,::1"
    let keys = ProviderKeyDirectory(path: configuration.state + "/keys")
    let key = try keys.list().first { (try? keys.signer(forKeyID: $0.keyID)) != nil }
    let texts = [
      "HTTPS_PROXY": "http://\(proxy)", "https_proxy": "http://\(proxy)", "NO_PROXY": direct,
      "no_proxy": direct, "SSL_CERT_FILE": ready.ca, "NODE_EXTRA_CA_CERTS": ready.ca,
      "REQUESTS_CA_BUNDLE": ready.ca, "CURL_CA_BUNDLE": ready.ca,
      "PUSHRELAY_RUN_PROVIDER": ready.provider, "PUSHRELAY_RUN_DEVICE": ready.device,
      "PUSHRELAY_RUN_ADMIN": ready.admin.map { String($0.dropFirst("http://".count)) },
      "PUSHRELAY_RUN_PROXY": proxy, "PUSHRELAY_RUN_STATE": configuration.state,
      "PUSHRELAY_STATE": configuration.state,
      "PUSHRELAY_RUN_CA": ready.ca, "PUSHRELAY_RUN_TOKEN": ready.token,
      "PUSHRELAY_RUN_KEY": key.map { "\(keys.path)/AuthKey_\($0.keyID).p8" },
      "PUSHRELAY_RUN_KEY_ID": key?.keyID, "PUSHRELAY_RUN_TEAM_ID": key?.teamID,
    ]
    return Dictionary(
      uniqueKeysWithValues: texts.compactMap { name, value in
        Environment.Key(rawValue: name).map { ($0, value) }
      })
  }

  /// Runs the program to its end, and passes signals on to it.
  private func play(
    _ variables: [Environment.Key: String?], _ signals: UnixSignalsSequence
  ) async throws -> ExitCode {
    let (processes, hasBegun) = AsyncStream.makeStream(of: pid_t.self)
    let passing = Task {
      guard let process = await processes.first(where: { _ in true }) else { return }
      for await signal in signals {
        // The terminal has sent these to the program, too.
        if [.sigint, .sigquit].contains(signal), isatty(STDIN_FILENO) == 1 { continue }
        kill(process, signal.rawValue)
      }
    }
    defer { passing.cancel() }
    // A shell gives the program the mask that this process had, and says by 126 and 127 what else
    // would be an error of ours.
    let mask = String(PushRelayCommand.formerMask.load(ordering: .relaxed), radix: 8)
    let result = try await Subprocess.run(
      .path("/bin/sh"),
      arguments: Arguments(["-c", "umask \(mask); exec \"$@\"", "sh"] + command),
      environment: .inherit.updating(variables), input: .currentStandardInput,
      output: .currentStandardOutput, error: .currentStandardError
    ) { hasBegun.yield($0.processIdentifier.value) }
    switch result.terminationStatus {
    case .exited(let code): return ExitCode(code)
    case .signaled(let signal): return ExitCode(128 + signal)
    }
  }
}
