import Configuration
import RelaySetup
import Testing

private typealias Endpoint = RelayConfiguration.Endpoint

/// Addresses in settings, and where phones are led to.
@Suite("Endpoint") struct EndpointTests {
  @Test func wildcardsAreTold() {
    let table = [
      ("0.0.0.0:1", true), ("[::]:1", true), (":1", false), ("127.0.0.1:1", false),
      ("10.0.0.0:1", false), ("[::1]:1", false), ("relay.example:1", false),
    ]
    for (text, isWildcard) in table {
      #expect(Endpoint(text)?.isWildcard == isWildcard, "\(text)")
    }
  }

  @Test func phonesAreLedToTheListenerUnlessSomethingElseIsSaid() {
    var configuration = RelayConfiguration()
    let bound = Endpoint(host: "0.0.0.0", port: 7)
    #expect(configuration.advertised(bound) == bound)
    configuration.advertiseDevice = Endpoint(host: "n1", port: 9)
    #expect(configuration.advertised(bound) == Endpoint(host: "n1", port: 9))
    #expect(configuration.endpoints.contains(Endpoint(host: "n1", port: 9)))
    configuration.advertiseDevice?.port = 0
    #expect(configuration.advertised(bound) == Endpoint(host: "n1", port: 7))
  }

  private func read(_ advertised: String?, store: String) throws -> RelayConfiguration {
    var values: [AbsoluteConfigKey: ConfigValue] = [
      "store": .init(.string(store), isSecret: false), "device": "0.0.0.0:5223",
    ]
    if store == "jetstream" { (values["nats"], values["node"]) = ("nats://127.0.0.1:1", "a") }
    if let advertised {
      values["advertiseDevice"] = .init(.string(advertised), isSecret: false)
    }
    return try RelayConfiguration(
      reading: ConfigReader(provider: InMemoryProvider(values: values)), cores: 1)
  }

  @Test func itIsForClustersAndOneAddress() throws {
    let led = try read("n1:0", store: "jetstream")
    #expect(led.advertiseDevice == Endpoint(host: "n1", port: 0))
    for (advertised, store) in [
      ("n1:0", "sqlite"), ("0.0.0.0:5223", "jetstream"), ("[::]:0", "jetstream"),
      ("n1", "jetstream"),
    ] {
      let error = #expect(throws: RelayConfiguration.ReadingError.self) {
        try read(advertised, store: store)
      }
      #expect(error?.key == "advertiseDevice")
    }
    func isSaid(_ configuration: RelayConfiguration) -> Bool {
      configuration.notices.contains { $0.text.contains("set advertiseDevice") }
    }
    let (alone, everywhere) = (try read(nil, store: "sqlite"), try read(nil, store: "jetstream"))
    #expect(isSaid(everywhere) && !isSaid(led) && !isSaid(alone))
  }
}
