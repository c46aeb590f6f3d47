import Configuration
import Logging
import NATS
import Primitives
import ProviderCredentials
import RelayCore
import RelaySetup
import Testing

@testable import RelaySetup

@Suite struct RelayConfigurationTests {
  private func read(
    _ values: [AbsoluteConfigKey: ConfigValue]
  ) throws(RelayConfiguration.ReadingError) -> RelayConfiguration {
    try RelayConfiguration(
      reading: ConfigReader(provider: InMemoryProvider(values: values)), cores: 3)
  }

  private func readEnvironment(
    _ variables: [String: String]
  ) throws(RelayConfiguration.ReadingError) -> RelayConfiguration {
    let provider = EnvironmentVariablesProvider(environmentVariables: variables)
      .prefixKeys(with: "pushrelay")
    return try RelayConfiguration(reading: ConfigReader(provider: provider), cores: 3)
  }

  @Test func nothingSetGivesTheDefaults() throws {
    var expected = RelayConfiguration()
    expected.threads = 3
    #expect(try read([:]) == expected)
  }

  @Test func everyKindOfValueIsReadFromTheEnvironment() throws {
    let configuration = try readEnvironment([
      "PUSHRELAY_PROVIDER": "0.0.0.0:0", "PUSHRELAY_DEVICE": "[::1]:9", "PUSHRELAY_THREADS": "2",
      "PUSHRELAY_PLAINTEXT": "true", "PUSHRELAY_POLICY": "strict", "PUSHRELAY_KEEP_ALIVE": "1.5",
      "PUSHRELAY_AUTH": "none", "PUSHRELAY_ENVIRONMENT": "sandbox",
      "PUSHRELAY_TOKEN_REQUESTS_PER_MINUTE": "6", "PUSHRELAY_TOKEN_REQUEST_BURST": "2",
    ])
    #expect(configuration.provider == .init(host: "0.0.0.0", port: 0))
    #expect(configuration.device == .init(host: "::1", port: 9))
    #expect(configuration.threads == 2)
    #expect(configuration.plaintext)
    #expect(configuration.policy == .strict)
    #expect(configuration.keepAlive == .milliseconds(1500))
    #expect(configuration.auth == .none)
    #expect(configuration.environment == .sandbox)
    #expect(configuration.requestsPerToken == RateLimit(6, per: .minutes(1), burst: 2))
  }

  /// Several loops would mix what happens at one moment of a clock that stands.
  @Test func aVirtualClockHasOneLoopUnlessToldOtherwise() throws {
    func threads(_ values: [String: String]) throws -> Int { try readEnvironment(values).threads }
    #expect(try threads([:]) == 3 && threads(["PUSHRELAY_CLOCK": "virtual"]) == 1)
    #expect(try threads(["PUSHRELAY_CLOCK": "virtual", "PUSHRELAY_THREADS": "4"]) == 4)
  }

  /// One value each; two nodes that differ in it do not say the same.
  @Test func whatNodesShouldHaveAlikeIsTold() throws {
    let usual = RelayConfiguration().alike
    #expect(Set(usual.map(\.key)).count == usual.count && usual.contains { $0.key == "lease" })
    var other = RelayConfiguration()
    other.rides = RateLimit(2, per: .minutes(1), burst: 3)
    let differing = zip(usual, other.alike).filter { $0.value != $1.value }
    #expect(differing.map(\.1.value) == ["3 at once, one in 30.0 s"])
  }

  @Test func ownTokensAreForDevelopmentUnlessAskedFor() throws {
    #expect(try readEnvironment([:]).ownTokens)
    #expect(try !readEnvironment(["PUSHRELAY_PROFILE": "production"]).ownTokens)
    #expect(
      try readEnvironment(["PUSHRELAY_PROFILE": "production", "PUSHRELAY_OWN_TOKENS": "true"])
        .ownTokens)
    #expect(try !readEnvironment(["PUSHRELAY_OWN_TOKENS": "false"]).ownTokens)
  }

  @Test func aRecordingHasABound() {
    #expect(throws: RelayConfiguration.ReadingError.self) {
      try readEnvironment(["PUSHRELAY_RECORD_LIMIT": "\(Limits.recordingMegabytes + 1)"])
    }
  }

  @Test func aCustomPolicyTakesItsNumbers() throws {
    let configuration = try readEnvironment([
      "PUSHRELAY_POLICY": "custom", "PUSHRELAY_APP_SILENTS_PER_HOUR": "60",
      "PUSHRELAY_APP_SILENT_BURST": "1",
    ])
    #expect(configuration.policy.perApp == RateLimit(60, per: .hours(1), burst: 1))
    #expect(configuration.policy.perDevice == SilentPolicy.documented.perDevice)
    #expect(configuration.policy.name == "1 a minute per app, 12 an hour per phone")
    // With none they would be for nothing; another one may be named instead of a file's.
    #expect(throws: RelayConfiguration.ReadingError.self) {
      try readEnvironment(["PUSHRELAY_DEVICE_SILENT_BURST": "2"])
    }
    let other = ["PUSHRELAY_POLICY": "strict", "PUSHRELAY_DEVICE_SILENT_BURST": "2"]
    #expect(try readEnvironment(other).policy == .strict)
  }

  @Test func aPolicyInNumbersIsReadFromEverySource() throws {
    let json = #"{"app":{"count":2,"per":"1d"}}"#
    let expected = SilentPolicy(perApp: RateLimit(2, per: .days(1), burst: 2), perDevice: nil)
    #expect(try readEnvironment(["PUSHRELAY_POLICY": json]).policy == expected)
    let file = Array(#"{"policy": \#(json), "threads": 1}"#.utf8)
    #expect(try read(RelayConfiguration.values(file: file, name: "f")).policy == expected)
    let problem = #expect(throws: RelayConfiguration.ReadingError.self) {
      try readEnvironment(["PUSHRELAY_POLICY": #"{"app":{"count":2}}"#])
    }
    #expect(problem?.key == "policy" && problem?.description.hasPrefix("policy: app is") == true)
  }

  @Test(arguments: [
    ("PROVIDER", "nowhere", "provider"), ("THREADS", "many", "threads"),
    ("THREADS", "0", "threads"), ("KEEP_ALIVE", "-1", "keepAlive"),
    ("PLAINTEXT", "perhaps", "plaintext"), ("POLICY", "generous", "policy"),
    ("STORE", "papyrus", "store"), ("ENVIRONMENT", "moon", "environment"),
    ("PROFILE", "test", "profile"), ("REDACT", "aps..alert", "redact"), ("REDACT", ",,", "redact"),
    ("REDACT", "aps.", "redact"), ("STATE", "", "state"),
    ("APP_SILENTS_PER_HOUR", "6", "appSilentsPerHour"),
  ])
  func anUnusableValueIsAnErrorThatNamesItsKey(name: String, value: String, key: String) {
    #expect {
      try readEnvironment(["PUSHRELAY_\(name)": value])
    } throws: { error in
      guard let problem = error as? RelayConfiguration.ReadingError else { return false }
      return problem.key == key && problem.description.contains(key)
    }
  }

  @Test func placesToRedactMayHaveBlanksAroundThem() throws {
    #expect(
      try readEnvironment(["PUSHRELAY_REDACT": #" aps.alert, a\.b "#]).redact
        == ["aps.alert", #"a\.b"#])
    #expect(try readEnvironment([:]).redact.isEmpty)
  }

  @Test func listenersMayBeOfOneServiceEach() throws {
    let plain = try readEnvironment(["PUSHRELAY_CHANNELS": "127.0.0.1:2195"])
    #expect(plain.channels == .init(host: "127.0.0.1", port: 2195))
    #expect(plain.channelsEnvironment == nil && plain.environmentChannels.isEmpty)
    #expect(try readEnvironment([:]).channels == nil)
    let both = try readEnvironment([
      "PUSHRELAY_CHANNELS": "sandbox=127.0.0.1:2195,production=127.0.0.1:2196",
      "PUSHRELAY_PROVIDER": "production=127.0.0.1:443,sandbox=127.0.0.1:444",
    ])
    #expect(both.channels?.port == 2195 && both.channelsEnvironment == .sandbox)
    #expect(both.environmentChannels.mapValues(\.port) == [.production: 2196])
    #expect(both.provider.port == 443 && both.providerEnvironment == .production)
    #expect(both.environmentProviders.mapValues(\.port) == [.sandbox: 444])
    for (name, value) in [
      ("CHANNELS", "sandbox=127.0.0.1:1,sandbox=127.0.0.1:2"), ("CHANNELS", "moon=127.0.0.1:1"),
      ("PROVIDER", "127.0.0.1:1,127.0.0.1:2"),
    ] {
      let problem = #expect(throws: RelayConfiguration.ReadingError.self) {
        try readEnvironment(["PUSHRELAY_\(name)": value])
      }
      #expect(problem?.key == name.lowercased())
    }
    let taken = #expect(throws: RelayConfiguration.ReadingError.self) {
      try readEnvironment([
        "PUSHRELAY_CHANNELS": "sandbox=127.0.0.1:2195,production=127.0.0.1:2196",
        "PUSHRELAY_FEEDBACK": "127.0.0.1:2196",
      ])
    }
    #expect(taken?.key == "channels")
  }

  @Test(arguments: [
    ("127.0.0.1:2197", "127.0.0.1", 2197), (":80", "127.0.0.1", 80), ("[::1]:443", "::1", 443),
    ("relay.example:0", "relay.example", 0),
  ])
  func endpointsAreRead(text: String, host: String, port: Int) {
    #expect(RelayConfiguration.Endpoint(text) == .init(host: host, port: port))
  }

  @Test(arguments: ["", "host", "host:", "host:port", "host:65536", "host:-1"])
  func badEndpointsAreNot(text: String) {
    #expect(RelayConfiguration.Endpoint(text) == nil)
  }

  /// In plaintext there are no certificates, by which the binary API knows its providers.
  @Test(arguments: ["LEGACY", "FEEDBACK"])
  func theBinaryAPIInPlaintextNeedsNoAuthentication(name: String) throws {
    let listener = ["PUSHRELAY_\(name)": "127.0.0.1:0", "PUSHRELAY_PLAINTEXT": "true"]
    #expect(throws: RelayConfiguration.ReadingError.self) { try readEnvironment(listener) }
    let open = try readEnvironment(listener.merging(["PUSHRELAY_AUTH": "none"]) { $1 })
    #expect((open.legacy ?? open.feedback)?.port == 0)
    #expect((open.legacy == nil) == (name == "FEEDBACK"))
    #expect(try readEnvironment(["PUSHRELAY_\(name)": ""]).legacy == nil)
  }

  /// Who wants Apple's names does TLS with them.
  @Test func theProxyIsForTLSOnly() throws {
    let proxy = ["PUSHRELAY_PROXY": "127.0.0.1:0"]
    #expect(try readEnvironment(proxy).proxy == .init(host: "127.0.0.1", port: 0))
    #expect(try readEnvironment([:]).proxy == nil)
    let problem = #expect(throws: RelayConfiguration.ReadingError.self) {
      try readEnvironment(proxy.merging(["PUSHRELAY_PLAINTEXT": "true"]) { $1 })
    }
    #expect(problem?.key == "proxy")
  }

  @Test func aProxyForOthersIsSaidAtTheStart() throws {
    #expect(try readEnvironment(["PUSHRELAY_PROXY": "127.0.0.1:0"]).notices.isEmpty)
    let notices = try readEnvironment(["PUSHRELAY_PROXY": "0.0.0.0:8443"]).notices
    #expect(notices.count == 1 && notices.allSatisfy { $0.text.contains("0.0.0.0:8443") })
  }

  @Test func theEngineIsReachedWithWhatIsSet() throws {
    let cluster = ["STORE": "jetstream", "NATS": "tls://u:p@a:1,tls://b:2", "NODE": "a"]
    let files = [
      "NATS_CA": "ca.pem", "NATS_CERTIFICATE": "a.pem", "NATS_KEY": "a.key",
      "NATS_CREDENTIALS": "a.creds",
    ]
    func read(_ variables: [String: String]) throws -> RelayConfiguration {
      try readEnvironment(
        Dictionary(uniqueKeysWithValues: variables.map { ("PUSHRELAY_" + $0, $1) }))
    }
    let engine = try read(cluster.merging(files) { $1 }).engine
    #expect(engine.servers == ["tls://u:p@a:1", "tls://b:2"])
    #expect(engine.authorities == "ca.pem" && engine.credentials == "a.creds")
    #expect(engine.certificate == "a.pem" && engine.key == "a.key")
    #expect(engine.isEncrypted)
    #expect(try read(cluster).engine.isEncrypted)
    #expect(try !read(cluster.merging(["NATS": "nats://a:1"]) { $1 }).engine.isEncrypted)
    for name in files.keys {
      #expect(throws: RelayConfiguration.ReadingError.self) { try read([name: "file"]) }
    }
    for name in ["NATS_CERTIFICATE", "NATS_KEY"] {
      #expect(throws: RelayConfiguration.ReadingError.self) {
        try read(cluster.merging([name: "file"]) { $1 })
      }
    }
  }

  @Test func whatIsOpenToOthersIsSaidAtTheStart() {
    var configuration = RelayConfiguration()
    #expect(configuration.notices.isEmpty)
    for (host, isLoopback) in [
      ("127.0.0.1", true), ("127.8.0.1", true), ("::1", true), ("localhost", true),
      ("0.0.0.0", false), ("::", false), ("10.0.0.1", false), ("relay.example", false),
      ("127.0.0.1.example", false), ("127.0.0", false), ("127.0.0.300", false),
    ] {
      configuration.device.host = host
      #expect(configuration.device.isLoopback == isLoopback, "\(host)")
      let notices = configuration.notices
      #expect(notices.isEmpty == isLoopback, "\(host)")
      #expect(
        notices.allSatisfy { $0.level == .warning && $0.text.hasPrefix("enrolment is open") })
    }
    configuration.device.host = "0.0.0.0"
    configuration.enrolmentKey = "open sesame"
    #expect(configuration.notices.isEmpty && configuration.enrolment != .open)
    configuration.enrolmentKey = ""
    configuration.profile = .production
    #expect(configuration.notices.map { $0.text.prefix(8) } == ["no phone", "ownToken"])
    configuration.ownTokens = false
    #expect(configuration.notices.count == 1 && configuration.enrolment == .closed)
  }
}

@Suite struct RelayConfigurationSourcesTests {
  /// What the check takes for a setting is what is read as one.
  @Test func everyKeyHasItsVariable() {
    for key in RelayConfiguration.keys {
      let name = RelayConfiguration.variable(forKey: key)
      let provider = EnvironmentVariablesProvider(environmentVariables: [name: "here"])
        .prefixKeys(with: "pushrelay")
      #expect(ConfigReader(provider: provider).string(forKey: ConfigKey(key)) == "here", "\(key)")
    }
  }

  @Test func variablesThatAreNoSettingsAreRefused() throws {
    try RelayConfiguration.check(variables: [
      "PATH", "PUSHRELAY_POLICY", "PUSHRELAY_CLIENT_CA", "RELAY_TEST_BINARY", "PUSHRELAY",
    ])
    for name in ["PUSHRELAY_POLCY", "PUSHRELAY_", "PUSHRELAY_policy", "PUSHRELAY_BINARY"] {
      let problem = #expect(throws: RelayConfiguration.ReadingError.self) {
        try RelayConfiguration.check(variables: ["PATH", name])
      }
      #expect(problem?.key == name)
      #expect(problem?.description.contains("PUSHRELAY_POLICY") == true)
    }
  }

  /// What Kubernetes sets for a service of the name is nobody's mistake.
  @Test func serviceVariablesArePassedOver() throws {
    try RelayConfiguration.check(variables: [
      "PUSHRELAY_SERVICE_HOST", "PUSHRELAY_SERVICE_PORT", "PUSHRELAY_SERVICE_PORT_PROVIDER",
      "PUSHRELAY_PORT", "PUSHRELAY_PORT_2197_TCP", "PUSHRELAY_PORT_2197_TCP_ADDR",
    ])
  }

  /// What `pushrelay run` has told the program around it.
  @Test func whatARunSaysIsPassedOver() throws {
    try RelayConfiguration.check(variables: ["PUSHRELAY_RUN_PROVIDER", "PUSHRELAY_RUN_KEY_ID"])
    #expect(!RelayConfiguration.keys.contains { $0.hasPrefix("run") })
  }

  @Test func goodFiles() throws {
    let settings: [(String, [AbsoluteConfigKey: ConfigContent])] = [
      ("{}", [:]), (#"{"policy":"str\u0069ct"}"#, [["policy"]: .string("strict")]),
      (
        #" {"threads":2,"strict":true,"linger":0.5, "admin" : "" } "#,
        [
          ["threads"]: .int(2), ["strict"]: .bool(true), ["linger"]: .double(0.5),
          ["admin"]: .string(""),
        ]
      ),
    ]
    for (text, expected) in settings {
      let values = try RelayConfiguration.values(file: Array(text.utf8), name: "relay.json")
      #expect(values.mapValues(\.content) == expected)
    }
  }

  /// A whole number of seconds is one, too.
  @Test func secondsOfAFileNeedNoFraction() throws {
    let values = try RelayConfiguration.values(file: Array(#"{"keepAlive":9}"#.utf8), name: "f")
    let configuration = try RelayConfiguration(
      reading: ConfigReader(provider: InMemoryProvider(values: values)), cores: 2)
    #expect(configuration.keepAlive == .seconds(9))
  }

  @Test(arguments: [
    ("", "relay.json: this is not one JSON object"),
    ("[]", "relay.json: this is not one JSON object"),
    ("{\"policy\":\n\"strict\",\n}", "relay.json:3:1: this is not one JSON object"),
    ("{\"policy\":\"strict\"} x", "relay.json:1:21: this is not one JSON object"),
    ("{// why\n}", "relay.json:1:2: this is not one JSON object"),
    ("{\n\"polcy\":\"strict\"}", "relay.json:2: the key polcy is none of state, profile, "),
    (
      "{\"policy\":\"strict\",\n\"policy\":\"strict\"}",
      "relay.json:2: the key policy stands there twice"
    ),
    (#"{"names":["a"]}"#, "relay.json:1: names must be a text, a number, true or false"),
    (#"{"keepAlive":{"seconds":1}}"#, "relay.json:1: keepAlive must be a text, a number, true"),
    (#"{"policy":null}"#, "relay.json:1: policy must be a text, a number, true or false"),
  ])
  func badFiles(text: String, expected: String) {
    let problem = #expect(throws: RelayConfiguration.ReadingError.self) {
      try RelayConfiguration.values(file: Array(text.utf8), name: "relay.json")
    }
    #expect(problem?.description.hasPrefix(expected) == true, "\(String(describing: problem))")
  }
}
