import Foundation
import RelayCore
import Testing

/// Apple's two services in one relay: by listener, and by the names that clients know.
@Suite("Environments", .timeLimit(.minutes(2))) struct EnvironmentTests {
  private static let payload = #"{"aps":{"alert":"Hello"}}"#

  /// An app's token of a service; nil is both.
  private static func token(
    _ environment: String?, _ phone: Phone, topic: String
  ) async throws -> String {
    let body = environment.map { #"{"environment":"\#($0)"}"# } ?? ""
    let answer = try await phone.relay.curl(
      "\(phone.url)/apps/\(topic)",
      ["-X", "PUT", "-H", "authorization: bearer \(phone.secret)", "--data-binary", body])
    try #require(answer.status == 200, "\(answer)")
    let json = try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
    return try #require(json?["token"] as? String)
  }

  private static func push(
    _ relay: RelayProcess, _ base: String, _ token: String, topic: String, jwt: String,
    _ options: [String] = []
  ) async throws -> CurlAnswer {
    try await relay.curl(
      "\(base)/3/device/\(token)",
      options + [
        "-H", "authorization: bearer \(jwt)", "-H", "apns-topic: \(topic)", "-H",
        "apns-push-type: alert", "--data-binary", payload,
      ])
  }

  /// The two listeners of a relay.
  private static func services(of relay: RelayProcess) throws -> [(name: String, base: String)] {
    let file = try Data(contentsOf: URL(fileURLWithPath: relay.state + "/ready.json"))
    let ready = try JSONSerialization.jsonObject(with: file) as? [String: Any]
    return try ["production", "sandbox"].map {
      ($0, "http://" + (try #require(ready?[$0] as? String)))
    }
  }

  /// A build for the other service, installed over this one.
  @Test func anAppThatChangesSidesGetsAnotherToken() async throws {
    var setup = RelaySetup(plaintext: true)
    setup.arguments = ["--provider", "production=127.0.0.1:0,sandbox=127.0.0.1:0"]
    try await RelayProcess.run(setup) { relay in
      let phone = try await Phone(on: relay)
      let jwt = try await relay.providerToken()
      let topic = "com.example.both"
      let old = try await Self.token("sandbox", phone, topic: topic)
      let new = try await Self.token("production", phone, topic: topic)
      #expect(old.hasPrefix("53414e44") && new.hasPrefix("50524f44"), "\(old) \(new)")
      #expect(try await Self.token(nil, phone, topic: topic) == new)
      for (name, base) in try Self.services(of: relay) {
        let answers = [
          try await Self.push(relay, base, old, topic: topic, jwt: jwt),
          try await Self.push(relay, base, new, topic: topic, jwt: jwt),
        ].map { "\($0.status) \($0.reason ?? "")" }
        #expect(
          answers
            == (name == "sandbox"
              ? ["410 Unregistered", "400 BadDeviceToken"] : ["400 BadDeviceToken", "200 "]))
        let feedback = try await relay.curl(
          base + "/v1/feedback", ["-H", "authorization: bearer \(jwt)"])
        #expect(feedback.body.contains(old) == (name == "sandbox"), "\(feedback)")
      }
    }
  }

  /// Over the binary API a certificate for one service is for its tokens alone.
  @Test func aCertificateForOneServiceIsForItsTokens() async throws {
    let setup = RelaySetup(arguments: ["--legacy", "127.0.0.1:0", "--feedback", "127.0.0.1:0"])
    try await RelayProcess.run(setup) { relay in
      let phone = try await Phone(on: relay)
      let tokens = [
        "sandbox": try await Self.token("sandbox", phone, topic: Phone.topic),
        "production": try await Self.token("production", phone, topic: Phone.topic),
      ]
      for own in ["production", "sandbox"] {
        let path = "\(relay.state)/\(own).pem"
        _ = try await relay.command(
          "certs", "client",
          options: ["--topic", Phone.topic, "--environment", own, "--out", path]
        ).checked("pushrelay certs client")
        let key = "\(relay.state)/\(own).key"
        func client(_ arguments: [String]) async throws -> String {
          try await Program.run(
            "python3",
            [Program.client("binary.py")] + arguments
              + ["--tls", relay.certificateAuthority, path, key]
          ).checked("binary.py")
        }
        for (service, token) in tokens {
          // The sandbox's is gone: the app is a build for production now.
          let isGood = service == own && own == "production"
          let bad = isGood ? [] : [token, "0"]
          let said = try await client(["push", relay.legacy, "1", token] + bad)
          #expect(said == (isGood ? "closed\n" : "error 8 1000\nclosed\n"), "\(own) \(service)")
        }
        let listed = try await client(["feedback", relay.feedback])
        #expect(listed.contains(tokens["sandbox"] ?? "-") == (own == "sandbox"), "\(listed)")
      }
    }
  }

  /// As a home automation's server does: production first, the sandbox when the token is bad there.
  @Test func aProgramThatFallsBackFindsTheTokensService() async throws {
    var setup = RelaySetup(plaintext: true)
    setup.arguments = ["--provider", "production=127.0.0.1:0,sandbox=127.0.0.1:0"]
    try await RelayProcess.run(setup) { relay in
      let services = try Self.services(of: relay)
      let phone = try await Phone(on: relay)
      let jwt = try await relay.providerToken()
      for (own, tries) in [("production", 1), ("sandbox", 2), (nil, 1)] as [(String?, Int)] {
        let topic = "com.example.\(own ?? "both")"
        let token = try await Self.token(own, phone, topic: topic)
        var answers: [CurlAnswer] = []
        for (_, base) in services where answers.last?.status != 200 {
          answers.append(try await Self.push(relay, base, token, topic: topic, jwt: jwt))
        }
        #expect(answers.count == tries && answers.last?.status == 200, "\(answers)")
        #expect(answers.dropLast().allSatisfy { $0.reason == "BadDeviceToken" }, "\(answers)")
      }
    }
  }

  /// By listener, and by the name that Apple has for each service's management.
  @Test func aChannelBelongsToTheServiceThatMadeIt() async throws {
    var setup = RelaySetup()
    setup.arguments = [
      "--provider", "production=127.0.0.1:0,sandbox=127.0.0.1:0", "--channels",
      "127.0.0.1:0,sandbox=127.0.0.1:0", "--auth", "none",
    ]
    try await RelayProcess.run(setup) { relay in
      let services = try Self.services(of: relay)
      func manage(_ name: String, _ path: String, _ options: [String]) async throws -> CurlAnswer {
        let host = "api-manage-broadcast\(name == "sandbox" ? ".sandbox" : "").push.apple.com"
        return try await relay.curl(
          "https://\(host)/1/apps/\(Phone.topic)/\(path)",
          options + ["--insecure", "--connect-to", "\(host):443:\(relay.channels)"])
      }
      let policy = #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#
      for (own, _) in services {
        let made = try await manage(own, "channels", ["-X", "POST", "--data-binary", policy])
        let channel = try #require(made.fields["apns-channel-id"], "\(made)")
        for (name, base) in services {
          let list = try await manage(name, "all-channels", [])
          #expect(
            list.body == (own == name ? #"{"channels":["\#(channel)"]}"# : #"{"channels":[]}"#))
          let answer = try await relay.curl(
            base.replacing("http:", with: "https:") + "/4/broadcasts/apps/\(Phone.topic)",
            [
              "-H", "apns-channel-id: \(channel)", "-H", "apns-push-type: liveactivity", "-H",
              "apns-expiration: \(Int(Date().timeIntervalSince1970) + 600)", "--data-binary",
              #"{"aps":{"event":"update"}}"#,
            ])
          #expect(answer.reason == (own == name ? nil : "ChannelNotRegistered"), "\(answer)")
          let phone = try await Phone(on: relay)
          _ = try await Self.token(name, phone, topic: Phone.topic)
          let path = channel.replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
          let subscribed = try await relay.curl(
            "\(phone.url)/apps/\(Phone.topic)/channels/\(path)",
            ["-X", "PUT", "-H", "authorization: bearer \(phone.secret)"])
          #expect(subscribed.reason == (own == name ? nil : "UnknownChannel"), "\(subscribed)")
        }
        let deleted = try await manage(
          own, "channels", ["-X", "DELETE", "-H", "apns-channel-id: \(channel)"])
        #expect(deleted.status == 204, "\(deleted)")
      }
      let file = try String(contentsOfFile: relay.state + "/ready.json", encoding: .utf8)
      #expect(file.contains(#""sandboxChannels""#) && !file.contains(#""productionChannels""#))
    }
  }

  /// One listener, and the name in the request or in the handshake.
  @Test func namesTellTheService() async throws {
    let development = ["--key", "SANDBOXKEY"]
    var setup = RelaySetup(arguments: ["--channels", "127.0.0.1:0"])
    setup.keys.append([
      "--key", "SANDBOXKEY", "--team", RelaySetup.teamID, "--environment", "sandbox",
    ])
    try await RelayProcess.run(setup) { relay in
      let phone = try await Phone(on: relay)
      let token = try await Self.token("sandbox", phone, topic: "com.example.app")
      let jwt = try await relay.providerToken()
      let bound = try await relay.providerToken(development)
      let address = try #require(relay.provider.split(separator: "/").last)
      func push(_ host: String, _ jwt: String) async throws -> CurlAnswer {
        try await Self.push(
          relay, "https://\(host)", token, topic: "com.example.app", jwt: jwt,
          ["--insecure", "--connect-to", "\(host):443:\(address)"])
      }
      #expect(try await push("api.sandbox.push.apple.com", jwt).status == 200)
      #expect(try await push("api.development.push.apple.com", bound).status == 200)
      #expect(try await push("api.push.apple.com", jwt).reason == "BadDeviceToken")
      #expect(try await push("api.push.apple.com", bound).reason == "BadEnvironmentKeyInToken")
      // Broadcasts go to a service, too.
      for (host, reason) in [
        ("api.sandbox.push.apple.com", "MissingChannelId"),
        ("api.push.apple.com", "InvalidProviderToken"),
      ] {
        let answer = try await relay.curl(
          "https://\(host)/4/broadcasts/apps/com.example.app",
          [
            "-X", "POST", "--insecure", "--connect-to", "\(host):443:\(address)", "-H",
            "authorization: bearer \(bound)",
          ])
        #expect(answer.reason == reason, "\(answer)")
      }
      // A name without a service takes both.
      #expect(try await push("example.com", bound).status == 200)
    }
  }

  @Test(arguments: [
    "sandbox=", "test=127.0.0.1:0", "127.0.0.1:0,127.0.0.1:0",
    "sandbox=127.0.0.1:0,sandbox=127.0.0.1:0",
    "sandbox=127.0.0.1:0,127.0.0.1:0",
  ])
  func aListenerThatIsNoneIsRefused(value: String) async throws {
    let scratch = try Scratch()
    let outcome = try await Program.run(
      Program.pushrelay, ["serve", "--state", scratch.path + "/s", "--provider", value])
    #expect(!outcome.succeeded && outcome.errors.contains("provider "), "\(outcome)")
  }
}
