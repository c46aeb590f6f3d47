import Foundation

/// A relay whose settings, keys and certificates let every rejection be caused, and what is needed
/// to cause them.
struct RejectionScene: Sendable {
  static let otherTopic = "com.example.other"
  /// The spelling in upper case must come back as it was.
  static let apnsID = "9B1DEB4D-3B7D-4BAD-9BDD-2B0D7B3DCB6D"

  /// The relay plays production, so that a key and a certificate can be of the other environment.
  static let setup = RelaySetup(
    keys: [
      ["--key", RelaySetup.keyID, "--team", RelaySetup.teamID],
      ["--key", "TOPICKEY01", "--team", RelaySetup.teamID, "--topic", Phone.topic],
      ["--key", "TOPICKEY02", "--team", RelaySetup.teamID, "--topic", Self.otherTopic],
      ["--key", "SANDBOXKEY", "--team", RelaySetup.teamID, "--environment", "sandbox"],
    ],
    environment: [
      "PUSHRELAY_ENVIRONMENT": "production", "PUSHRELAY_REQUEST_TIMEOUT": "1",
      "PUSHRELAY_TOKEN_REQUESTS_PER_MINUTE": "1", "PUSHRELAY_TOKEN_REQUEST_BURST": "1",
    ])

  let relay: RelayProcess
  /// Device tokens, each good for one push only: the relay allows one a minute.
  let tokens: [String]
  let otherToken: String
  let goneToken: String
  /// Provider tokens of the team key, all different.
  let providerTokens: [String]
  let expiredProviderToken: String
  let topicProviderToken: String
  let otherTopicProviderToken: String
  let sandboxProviderToken: String
  /// PEM files; the key lies beside each.
  let strangersCertificate: String
  let sandboxCertificate: String

  init(_ relay: RelayProcess) async throws {
    self.relay = relay
    let phone = try await Phone(on: relay)
    otherToken = try await phone.register(Self.otherTopic)
    goneToken = try await phone.register("com.example.gone")
    try await phone.unregister("com.example.gone")
    var tokens: [String] = []
    for _ in 0..<3 { tokens.append(try await Phone(on: relay).register()) }
    self.tokens = tokens
    let now = Int(Date().timeIntervalSince1970)
    func signed(_ key: String, secondsAgo: Int = 0) async throws -> String {
      try await relay.providerToken(["--key", key, "--issued-at", "\(now - secondsAgo)"])
    }
    var providerTokens: [String] = []
    for age in 0..<3 { providerTokens.append(try await signed(RelaySetup.keyID, secondsAgo: age)) }
    self.providerTokens = providerTokens
    expiredProviderToken = try await signed(RelaySetup.keyID, secondsAgo: 3700)
    topicProviderToken = try await signed("TOPICKEY01")
    otherTopicProviderToken = try await signed("TOPICKEY02")
    sandboxProviderToken = try await signed("SANDBOXKEY")
    strangersCertificate = relay.state + "/stranger.pem"
    sandboxCertificate = relay.state + "/sandbox.pem"
    let client = ["certs", "client", "--topic", Phone.topic]
    for state in [relay.state + "/other"] {
      _ = try await Program.run(Program.pushrelay, ["certs", "--state", state]).checked("certs")
      _ = try await Program.run(
        Program.pushrelay, client + ["--out", strangersCertificate, "--state", state]
      ).checked("certs client")
    }
    _ = try await relay.command(
      client[0], client[1], client[2], client[3], "--environment", "sandbox", "--out",
      sandboxCertificate
    ).checked("certs client")
  }

  /// A push that nothing is wrong with, but for what `change` does to it.
  func push(_ change: (inout Push) -> Void = { _ in }) -> Push {
    var push = Push(to: tokens[0], providerTokens[0])
    push.fields = ["apns-id: \(Self.apnsID)"]
    change(&push)
    return push
  }

  /// The same with a client certificate instead of a provider token.
  func certified(_ certificate: String) -> Push {
    push { push in
      push.authorization = nil
      let key = certificate.replacing(".pem", with: ".key")
      push.options = ["--cert", certificate, "--key", key]
    }
  }
}
