import Configuration
import Testing

@testable import RelayServer

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
      let problem = #expect(throws: RelayConfiguration.Problem.self) {
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

  @Test(arguments: ["{}", #"{"policy":"strict"}"#, #" {"threads":2,"strict":true,"linger":0.5} "#])
  func goodFiles(text: String) throws {
    try RelayConfiguration.check(file: Array(text.utf8), name: "relay.json")
  }

  @Test(arguments: [
    ("", "relay.json: this is not one JSON object"),
    ("[]", "relay.json: this is not one JSON object"),
    ("{\"policy\":\n\"strict\",\n}", "relay.json:3: this is not one JSON object"),
    ("{\"policy\":\"strict\"} x", "relay.json:1: this is not one JSON object"),
    ("{// why\n}", "relay.json:1: this is not one JSON object"),
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
    let problem = #expect(throws: RelayConfiguration.Problem.self) {
      try RelayConfiguration.check(file: Array(text.utf8), name: "relay.json")
    }
    #expect(problem?.description.hasPrefix(expected) == true, "\(String(describing: problem))")
  }
}
