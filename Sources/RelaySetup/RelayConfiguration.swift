package import Configuration
import FoundationEssentials
package import Logging
package import NATS
package import Primitives
import ProviderCredentials
import RelayCluster
package import RelayCore
package import RelayRecording

/// The setup of a relay: read once at the start from flags, environment (`PUSHRELAY_…`) and a JSON
/// file, in this order of precedence.
package struct RelayConfiguration: Equatable, Sendable {
  package enum Profile: String, CaseIterable, Sendable {
    /// Makes missing certificates; devices enrol freely.
    case dev
    /// Certificates must exist; devices enrol with a key.
    case production
  }

  package enum Store: String, CaseIterable, Sendable {
    /// A journal on disk: whatever was answered 200 survives the process and a power cut.
    case sqlite
    /// Nothing survives the process.
    case memory
    /// A journal in NATS JetStream (docs/CLUSTER.md).
    case jetstream
  }

  package enum Authentication: String, CaseIterable, Sendable {
    case token
    case none
  }

  package enum Clock: String, CaseIterable, Sendable {
    case system
    /// Moves only when told (`pushrelay clock`).
    case virtual
  }

  /// The clients that may create devices.
  package enum Enrolment: Equatable, Sendable {
    /// Anyone who reaches the device listener (the dev profile).
    case open
    /// Anyone who sends this key.
    case key([UInt8])
    case closed
  }

  package var state = ".pushrelay"
  package var profile = Profile.dev
  package var provider = Endpoint(host: "127.0.0.1", port: 2197)
  /// The service that `provider` plays; nil for both.
  package var providerEnvironment: ProviderEnvironment?
  /// More listeners for providers, each of which plays one service.
  package var environmentProviders: [ProviderEnvironment: Endpoint] = [:]
  package var device = Endpoint(host: "127.0.0.1", port: 5223)
  /// Where phones reach this node of a cluster, if not at `device`; port 0 is the listener's.
  package var advertiseDevice: Endpoint?
  package var plaintext = false
  package var store = Store.sqlite
  package var linger = Interval.milliseconds(2)
  package var logNotifications = 100_000
  /// With a virtual clock one loop keeps the order of what happens at one moment.
  package var threads = 1
  /// Bytes of provider requests that are kept as they were sent; 0 keeps none.
  package var keepRequests = 16 << 20
  /// Bytes of the process from which on nothing is taken that stays; 0 for no limit.
  package var maximumMemory = 0
  /// Places of payloads that are not kept, such as `aps.alert.body`.
  package var redact: [String] = []
  package var record = ""
  package var recordPayloads = RecordedPayloads.none
  package var recordLimit = 256
  package var auth = Authentication.token
  /// The played one of Apple's two services; nil for both.
  package var environment: ProviderEnvironment?
  /// Refuses what Apple calls an error but seems to accept (docs/PROTOCOL.md, "Where Apple's text
  /// is silent").
  package var strict = false
  package var policy = SilentPolicy.documented
  package var keepAlive = Interval.minutes(15)
  package var keepAliveTimeout = Interval.seconds(30)
  package var ackTimeout = Interval.seconds(60)
  package var rides = RateLimit(1, per: .minutes(1), burst: 3)
  package var lowPriorityHold = Interval.minutes(15)
  package var requestsPerToken: RateLimit?
  package var enrolmentKey = ""
  /// True if devices may bring their own tokens: an enrolled device may then claim any free token,
  /// and gets the pushes sent to it.
  package var ownTokens = true
  package var clientCA = ""
  package var names: [String] = []
  package var requestTimeout = Interval.seconds(30)
  package var idleTimeout = Interval.hours(1)
  package var shutdownTimeout = Interval.seconds(10)
  /// Of being told to end: all goes on, and only `/health/ready` says so.
  package var shutdownDelay = Interval.seconds(0)
  package var logLevel = "info"
  /// The admin API's TCP listener, besides its Unix socket; nil for none.
  package var admin: Endpoint?
  /// Listeners of the binary provider API and its feedback service; nil for none.
  package var legacy: Endpoint?
  package var feedback: Endpoint?
  /// The listener of the proxy that leads Apple's host names here; nil for none.
  package var proxy: Endpoint?
  /// Listener of the management of broadcast channels; nil for none, and no channels.
  package var channels: Endpoint?
  /// The service whose channels it manages; nil for both. More listeners, of one service each.
  package var channelsEnvironment: ProviderEnvironment?
  package var environmentChannels: [ProviderEnvironment: Endpoint] = [:]
  /// More host names for the admin listener.
  package var adminHosts: [String] = []
  /// True if metrics are counted per topic.
  package var metricsTopics = false
  package var clock = Clock.system
  /// The start of a virtual clock; nil for now.
  package var at: Instant?
  /// The clock that the age of provider tokens is judged by.
  package var tokenClock = Clock.system
  package var seed: UInt64?
  /// JetStream server URLs, and this relay's name there.
  package var nats: [String] = []
  package var node = ""
  /// PEM files: trusted authorities, this relay's certificate and its key.
  package var natsCA = ""
  package var natsCertificate = ""
  package var natsKey = ""
  /// File with a user's JWT and seed.
  package var natsCredentials = ""
  /// URL of a server's monitoring; empty for none.
  package var natsMonitor = ""
  /// The number of servers that hold the journal.
  package var natsReplicas = 1
  /// The number of stripes of a cluster's journal, when this relay makes it.
  package var stripes = 8
  /// The time for which a node that is gone keeps its stripes.
  package var lease = Interval.seconds(3)

  package init() {}

  /// By `enrolmentKey` and `profile`.
  package var enrolment: Enrolment {
    if !enrolmentKey.isEmpty { return .key(Array(enrolmentKey.utf8)) }
    return profile == .dev ? .open : .closed
  }

  /// Access to the JetStream servers.
  package var engine: NATSAccess {
    var access = NATSAccess(servers: nats)
    (access.authorities, access.certificate, access.key) = (natsCA, natsCertificate, natsKey)
    access.credentials = natsCredentials
    return access
  }

  /// All listeners except the admin API.
  package var endpoints: [Endpoint] {
    [provider, device] + environmentProviders.values + environmentChannels.values
      + [legacy, feedback, channels, advertiseDevice].compactMap(\.self)
  }

  /// Where phones of other nodes are led to when the listener is bound to this address; they are
  /// led nowhere when that is a wildcard.
  package func advertised(_ bound: Endpoint) -> Endpoint {
    guard var address = advertiseDevice else { return bound }
    if address.port == 0 { address.port = bound.port }
    return address
  }

  /// Warnings for the log at the start: settings that may not be intended.
  package var notices: [(level: Logger.Level, text: String)] {
    var notices: [(level: Logger.Level, text: String)] = []
    if store == .memory {
      notices.append(
        (.notice, "store is memory: what is accepted is lost when the process ends"))
    }
    if auth == .none {
      notices.append((.warning, "auth is none: everybody who reaches the provider port may push"))
    }
    if store == .jetstream, advertised(device).isWildcard {
      notices.append(
        (
          .notice,
          "phones are not led to this node: it listens on all addresses; set advertiseDevice"
        ))
    }
    if enrolment == .open, !device.isLoopback {
      notices.append(
        (
          .warning,
          "enrolment is open: everybody who reaches \(device) may make devices; set enrolmentKey, "
            + "or the profile production"
        ))
    }
    if enrolment == .closed {
      notices.append((.notice, "no phone can enrol: enrolmentKey is not set"))
    }
    if let proxy, !proxy.isLoopback {
      notices.append(
        (.warning, "everybody who reaches the proxy \(proxy) reaches the provider port by it"))
    }
    if clock == .virtual {
      notices.append((.notice, "clock is virtual: time stands until 'pushrelay clock' moves it"))
    }
    if seed != nil {
      notices.append((.warning, "seed is set: ids, secrets and tokens can be guessed"))
    }
    if ownTokens, profile == .production {
      notices.append(
        (.warning, "ownTokens is set: an enrolled device can claim any free token, and its pushes"))
    }
    if plaintext { notices.append((.notice, "plaintext: connections are not encrypted")) }
    return notices
  }

  /// An unusable setting. The text names it and says what is allowed.
  package struct ReadingError: Error, Equatable, CustomStringConvertible {
    package var key: String
    package var description: String

    package init(key: String, description: String) {
      self.key = key
      self.description = description
    }
  }

  /// Reads all keys; docs/OPERATIONS.md, "Configuration", has their meanings and defaults.
  package init(reading config: ConfigReader, cores: Int) throws(ReadingError) {
    let reader = SettingReader(config)
    state = try reader.required("state", state)
    profile = try reader.choice("profile", profile)
    try readProviders(reader)
    device = try reader.endpoint("device", device)
    advertiseDevice = try reader.optionalEndpoint("advertiseDevice")
    legacy = try reader.optionalEndpoint("legacy")
    feedback = try reader.optionalEndpoint("feedback")
    proxy = try reader.optionalEndpoint("proxy")
    admin = try reader.optionalEndpoint("admin")
    adminHosts = try reader.list("adminHosts")
    metricsTopics = try reader.flag("metricsTopics", metricsTopics)
    plaintext = try reader.flag("plaintext", plaintext)
    store = try reader.choice("store", store)
    linger = try reader.seconds("linger", linger, mayBeZero: true)
    logNotifications = try reader.number("logNotifications", logNotifications, 0...10_000_000)
    keepRequests = try reader.number("keepRequests", profile == .dev ? 16 : 0, 0...65_536) << 20
    let mostMemory = ContainerMemory.limit().map { max($0 / 5 * 4, 1) } ?? 0
    maximumMemory = try reader.number("maximumMemory", mostMemory, 0...1_048_576) << 20
    redact = try Self.redactedPlaces(try reader.text("redact", ""))
    record = try reader.text("record", record)
    recordPayloads = try reader.choice("recordPayloads", recordPayloads)
    recordLimit = try reader.number("recordLimit", recordLimit, 1...Limits.recordingMegabytes)
    auth = try reader.choice("auth", auth)
    let environmentName = try reader.text("environment", "any")
    environment = ProviderEnvironment(rawValue: environmentName)
    guard environment != nil || environmentName == "any" else {
      throw ReadingError(
        key: "environment", description: "environment is sandbox, production or any")
    }
    strict = try reader.flag("strict", strict)
    policy = try reader.policy()
    keepAlive = try reader.seconds("keepAlive", keepAlive)
    keepAliveTimeout = try reader.seconds("keepAliveTimeout", keepAliveTimeout)
    ackTimeout = try reader.seconds("ackTimeout", ackTimeout)
    rides = RateLimit(
      Int64(try reader.number("ridesPerMinute", 1, 1...60_000)), per: .minutes(1),
      burst: Int64(try reader.number("rideBurst", 3, 1...1_000_000)))
    lowPriorityHold = try reader.seconds("lowPriorityHold", lowPriorityHold)
    let perMinute = try reader.number("tokenRequestsPerMinute", 0, 0...1_000_000)
    let burst = try reader.number("tokenRequestBurst", 400, 1...1_000_000)
    requestsPerToken =
      perMinute == 0 ? nil : RateLimit(Int64(perMinute), per: .minutes(1), burst: Int64(burst))
    enrolmentKey = try reader.text("enrolmentKey", enrolmentKey)
    ownTokens = try reader.flag("ownTokens", profile == .dev)
    clientCA = try reader.text("clientCA", clientCA)
    names = try reader.list("names")
    requestTimeout = try reader.seconds("requestTimeout", requestTimeout)
    idleTimeout = try reader.seconds("idleTimeout", idleTimeout)
    shutdownTimeout = try reader.seconds("shutdownTimeout", shutdownTimeout)
    shutdownDelay = try reader.seconds("shutdownDelay", shutdownDelay, mayBeZero: true)
    logLevel = try reader.text("logLevel", logLevel)
    clock = try reader.choice("clock", clock)
    threads = try reader.number("threads", clock == .virtual ? 1 : cores, 1...256)
    at = try reader.moment("at")
    tokenClock = try reader.choice("tokenClock", tokenClock)
    seed = try reader.optionalNumber("seed", 0...Int.max).map { UInt64($0) }
    nats = try reader.list("nats")
    natsCA = try reader.text("natsCA", natsCA)
    natsCertificate = try reader.text("natsCertificate", natsCertificate)
    natsKey = try reader.text("natsKey", natsKey)
    natsCredentials = try reader.text("natsCredentials", natsCredentials)
    node = try reader.text("node", node)
    natsMonitor = try reader.text("natsMonitor", natsMonitor)
    natsReplicas = try reader.number("natsReplicas", natsReplicas, 1...5)
    stripes = try reader.number("stripes", stripes, Limits.stripes)
    lease = try reader.seconds("lease", lease)
    try checkCombinations()
  }

  private func checkCombinations() throws(ReadingError) {
    try checkCluster()
    for channels in [channels].compactMap(\.self) + environmentChannels.values
    where channels.port != 0 && [legacy, feedback].contains(channels) {
      throw ReadingError(
        key: "channels",
        description: "\(channels) is the binary API's already: channel management and the API of "
          + "2013 both have the ports 2195 and 2196 at Apple; give one of them another")
    }
    guard !plaintext || auth == .none || legacy == nil && feedback == nil else {
      throw ReadingError(
        key: legacy == nil ? "feedback" : "legacy",
        description:
          "legacy and feedback know providers by their certificates: with plaintext they "
          + "need auth none")
    }
    guard !plaintext || proxy == nil else {
      throw ReadingError(
        key: "proxy",
        description: "proxy is for programs that expect Apple's TLS: it does not go with plaintext")
    }
    guard at == nil || clock == .virtual else {
      throw ReadingError(key: "at", description: "at needs clock virtual")
    }
    guard tokenClock == .system || clock == .virtual else {
      throw ReadingError(key: "tokenClock", description: "tokenClock virtual needs clock virtual")
    }
  }

  /// Places of a payload, with commas between them. One with an empty name would be nowhere, and
  /// what it was to keep secret would be kept.
  private static func redactedPlaces(_ text: String) throws(ReadingError) -> [String] {
    let places = text.split(separator: ",", omittingEmptySubsequences: false).map { place in
      String(place.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
    if text.isEmpty { return [] }
    for place in places
    where place.replacing("\\.", with: "_").split(separator: ".", omittingEmptySubsequences: false)
      .contains("")
    {
      throw ReadingError(
        key: "redact",
        description: "redact: '\(place)' is no place of a payload; say such as aps.alert,user.email"
      )
    }
    return places
  }

  /// All keys allowed in a file; others are refused as misspelled.
  package static let keys = [
    "state", "profile", "provider", "device", "advertiseDevice", "legacy", "feedback", "proxy",
    "channels", "admin", "adminHosts", "metricsTopics", "plaintext",
    "store", "linger",
    "logNotifications",
    "threads", "keepRequests", "maximumMemory", "redact", "record", "recordPayloads", "recordLimit",
    "auth",
    "environment",
    "strict", "policy", "appSilentsPerHour", "appSilentBurst",
    "deviceSilentsPerHour", "deviceSilentBurst", "keepAlive", "keepAliveTimeout",
    "ackTimeout", "ridesPerMinute", "rideBurst",
    "lowPriorityHold", "tokenRequestsPerMinute", "tokenRequestBurst", "enrolmentKey",
    "ownTokens", "clientCA",
    "names", "requestTimeout", "idleTimeout", "shutdownTimeout", "shutdownDelay",
    "logLevel",
    "clock", "at", "tokenClock", "seed", "nats", "natsCA", "natsCertificate", "natsKey",
    "natsCredentials", "node", "natsMonitor", "natsReplicas", "stripes", "lease",
  ]
}

/// Checks on the sources of settings, before they are read: a key that nobody reads, because it is
/// misspelled, would silently leave the default in force.
extension RelayConfiguration {
  /// The prefix of settings in the environment.
  package static let variablePrefix = "PUSHRELAY_"

  /// The prefix of what `pushrelay run` tells its program; these are no settings.
  package static let runPrefix = variablePrefix + "RUN_"

  /// The environment name of a setting: `PUSHRELAY_KEEP_ALIVE` for `keepAlive`.
  package static func variable(forKey key: String) -> String {
    var name = variablePrefix
    var wasLower = false
    for letter in key {
      if wasLower, letter.isUppercase { name += "_" }
      name += letter.uppercased()
      wasLower = letter.isLowercase
    }
    return name
  }

  /// Refuses unknown variables with the prefix of settings.
  ///
  /// - Parameter variables: the names of all variables in the environment.
  package static func check(variables: some Sequence<String>) throws(ReadingError) {
    let known = keys.map { variable(forKey: $0) }
    for name in variables.sorted() where name.hasPrefix(variablePrefix) {
      guard !known.contains(name), !name.hasPrefix(runPrefix), !isOfKubernetes(name) else {
        continue
      }
      throw ReadingError(
        key: name,
        description: "\(name) in the environment is no setting; there are "
          + known.joined(separator: ", "))
    }
  }

  /// Returns whether Kubernetes may have set it: for a service named `pushrelay`, pods get
  /// `PUSHRELAY_SERVICE_HOST`, `PUSHRELAY_SERVICE_PORT…`, `PUSHRELAY_PORT` and
  /// `PUSHRELAY_PORT_2197_TCP…` (Kubernetes documentation, "Service", "Environment variables").
  private static func isOfKubernetes(_ name: String) -> Bool {
    let rest = name.dropFirst(variablePrefix.count)
    return rest == "PORT" || rest == "SERVICE_HOST" || rest == "SERVICE_PORT"
      || rest.hasPrefix("SERVICE_PORT_") || rest.hasPrefix("PORT_")
  }

  /// The settings in a file: one JSON object (RFC 8259) of known keys, each once, with plain
  /// values, but for a policy in numbers.
  ///
  /// - Parameter name: the file's name in errors.
  package static func values(
    file bytes: [UInt8], name: String
  ) throws(ReadingError) -> [AbsoluteConfigKey: ConfigValue] {
    let members: [ObjectCursor.Member]
    do {
      members = try self.members(of: bytes)
    } catch {
      var place = name
      if let (line, column) = error.place(in: bytes) { place += ":\(line):\(column)" }
      throw ReadingError(
        key: "config",
        description: "\(place): this is not one JSON object such as {\"policy\": \"strict\"}")
    }
    var values: [AbsoluteConfigKey: ConfigValue] = [:]
    for member in members {
      let key = String(decoding: bytes[member.key], as: UTF8.self)
      let place = "\(name):\(line(of: member.key.lowerBound, in: bytes)): "
      guard keys.contains(key) else {
        throw ReadingError(
          key: key,
          description: "\(place)the key \(key) is none of " + keys.joined(separator: ", "))
      }
      let setting = AbsoluteConfigKey([key])
      guard values[setting] == nil else {
        throw ReadingError(key: key, description: "\(place)the key \(key) stands there twice")
      }
      let json = bytes[member.value]
      // The only object among the settings, with its numbers (`SilentPolicy.init(text:)`).
      let object =
        key == "policy" && json.first == UInt8(ascii: "{")
        ? ConfigContent.string(String(decoding: json, as: UTF8.self)) : nil
      guard let value = object ?? plainValue(json) else {
        throw ReadingError(
          key: key, description: "\(place)\(key) must be a text, a number, true or false")
      }
      values[setting] = ConfigValue(value, isSecret: false)
    }
    return values
  }

  /// A text, a number, true or false; nil for other JSON.
  private static func plainValue(_ json: ArraySlice<UInt8>) -> ConfigContent? {
    let text = String(decoding: json, as: UTF8.self)
    switch text {
    case "true": return .bool(true)
    case "false": return .bool(false)
    case "null": return nil
    case _ where text.hasPrefix("\""):
      return (try? JSONDecoder().decode(String.self, from: Data(json))).map { .string($0) }
    default: return Int(text).map { .int($0) } ?? Double(text).map { .double($0) }
    }
  }

  private static func members(of bytes: [UInt8]) throws(PayloadError) -> [ObjectCursor.Member] {
    // Validates all of it; the cursor alone skips over values.
    _ = try scanPayload(bytes.span)
    var members: [ObjectCursor.Member] = []
    var cursor = try ObjectCursor(bytes.span)
    while let member = try cursor.next(bytes.span) { members.append(member) }
    return members
  }

  private static func line(of offset: Int, in bytes: [UInt8]) -> Int {
    1 + bytes.prefix(offset).count { $0 == UInt8(ascii: "\n") }
  }
}
