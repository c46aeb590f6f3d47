import ArgumentParser
import DeviceLink
import Primitives
import ProviderCredentials
import RelayClient
import RelayCore
import RelayServer

/// The demo: lines about the relay come from its own log of each notification's life, lines about
/// the phone from the phone's stream.
struct DemoStory {
  private let addresses: Relay.Addresses
  private let state: String
  private let provider: RelayClient
  private let phone: RelayClient
  private let identity: DeviceIdentity
  private let deviceToken: String
  private let providerToken: String
  private let clock: VirtualClock
  private var stream: ClientStream
  /// Lines that the phone has heard and answered.
  private var lines: AsyncStream<DownLine>.Iterator
  private var life: AsyncStream<DeliveryEvent>.Iterator
  /// The story's name for each notification.
  private var names: [UniqueID: String] = [:]
  private var pushCount = 0

  private static let topic = "com.example.news"

  /// The keys that are there may be for other apps: then the demo makes its own.
  private static func signer(_ keys: ProviderKeyDirectory) throws -> ProviderTokenSigner {
    if let signer = try? SigningKey.signer(in: keys, keyID: nil, topic: topic) { return signer }
    var generator = SystemRandomNumberGenerator()
    let entry = ProviderKeyDirectory.Entry(
      keyID: ProviderKeyDirectory.randomKeyID(using: &generator),
      teamID: ProviderKeyDirectory.defaultTeamID, topics: [topic])
    try keys.create(entry)
    return try keys.signer(forKeyID: entry.keyID)
  }

  private static let habits = DeviceListener.Habits(followsClock: true, outcome: .newData)

  init(
    state: String, addresses: Relay.Addresses, clock: VirtualClock, life: AsyncStream<DeliveryEvent>
  ) async throws {
    self.clock = clock
    self.addresses = addresses
    self.state = state
    self.life = life.makeAsyncIterator()
    let connection = try ConnectionOptions.parse(["--state", state])
    provider = try await connection.connect(to: connection.find(provider: addresses.provider))
    phone = try await connection.connect(device: addresses.device)
    let keys = ProviderKeyDirectory(path: state + "/keys")
    providerToken = try Self.signer(keys)
      .token(issuedAtSeconds: WallClock.now.milliseconds / 1000)
    let api = DeviceAPI(phone)
    identity = try await api.enroll()
    deviceToken = try await api.register(topic: Self.topic, of: identity)
    stream = try await api.openStream(of: identity)
    lines = Self.listen(to: stream)
    Console.say("relay     providers \(addresses.provider), devices \(addresses.device)")
    Console.say("phone     enrolled, app \(Self.topic), token \(deviceToken.prefix(8))…")
    try await readLines(count: 2)
  }

  // MARK: The story

  /// Silent pushes: the budget lets three through, then holds, and the newest wins.
  mutating func directAndHeld() async throws {
    Console.say("\n1. Silent pushes to a connected phone. An app gets 3 at once.\n")
    for _ in 1...3 { try await push(silent: true, isSentNow: true) }
    Console.say("\n   The budget is used up. The fourth is held, the fifth takes its place.\n")
    try await push(silent: true, isSentNow: false)
    try await push(silent: true, isSentNow: false)
  }

  /// An alert goes through, and the held one rides along.
  mutating func piggyback() async throws {
    Console.say("\n2. An alert goes out at once. The radio is awake: the held one rides along.\n")
    try await push(silent: false, isSentNow: true, riding: 1)
  }

  /// The phone is away: one push per class is stored; when it is back, visible first.
  mutating func offline() async throws {
    Console.say(
      "\n3. The phone goes away. One silent and one visible push are stored, the newest.\n")
    stream.finish()
    while await lines.next() != nil {}
    Console.say("phone     disconnected")
    try await push(silent: true, isSentNow: false)
    try await push(silent: true, isSentNow: false)
    try await push(silent: false, isSentNow: false)
    Console.say("\n   The phone comes back.\n")
    try await pass(.minutes(3))
    stream = try await DeviceAPI(phone).openStream(of: identity)
    lines = Self.listen(to: stream)
    try await readLines(count: 3)
    try await narrate(until: 2) { $0.isTerminal }
  }

  /// One is left for the visitor, who moves the clock.
  mutating func hold() async throws {
    Console.say("\n4. One more, which is held: its time comes when the clock is moved.\n")
    try await push(silent: true, isSentNow: false)
  }

  /// Tells what the phone gets from now on. Time passes by itself: simulated phones need some.
  mutating func goOn() async throws {
    try await clock.setRate(1)
    while let line = await lines.next() { tell(line) }
  }

  func printDevice() async throws {
    let answer = try await DeviceAPI(phone).statusBody(of: identity)
    Console.say("\n5. The device as the relay sees it (GET /v1/devices/{device}):\n")
    Console.say("   " + String(decoding: answer, as: UTF8.self))
  }

  /// Prints commands that work against this relay.
  func printCurl() {
    let provider = addresses.provider
    let device = addresses.device
    Console.say(
      """
      6. Your turn. In another terminal, in this directory:

      # be a phone: the stream of what is delivered (leave it running)
      curl --http2 --cacert \(state)/ca.pem -N \\
        https://\(device)/v1/devices/\(identity.device)/stream \\
        -H 'authorization: bearer \(identity.secret)'

      # be a provider: a silent push (good for an hour; 'pushrelay jwt' prints a new token)
      curl --http2 --cacert \(state)/ca.pem -i https://\(provider)/3/device/\(deviceToken) \\
        -H 'authorization: bearer \(providerToken)' \\
        -H 'apns-topic: \(Self.topic)' -H 'apns-push-type: background' -H 'apns-priority: 5' \\
        -d '{"aps":{"content-available":1}}'

      # an alert, and what was held rides along
      curl --http2 --cacert \(state)/ca.pem -i https://\(provider)/3/device/\(deviceToken) \\
        -H 'authorization: bearer \(providerToken)' \\
        -H 'apns-topic: \(Self.topic)' -H 'apns-push-type: alert' -d '{"aps":{"alert":"hello"}}'
      """)
  }

  // MARK: Its sentences

  /// So that what happens is apart on the page's timeline.
  private func pass(_ time: Interval) async throws {
    _ = try await clock.advance(.by(time))
  }

  /// Reads and answers at once: time stands until the phone has done its part.
  private static func listen(to stream: ClientStream) -> AsyncStream<DownLine>.Iterator {
    let (lines, feed) = AsyncStream.makeStream(of: DownLine.self)
    Task {
      var listener = DeviceListener(stream, habits)
      while let line = try? await listener.next() { feed.yield(line) }
      feed.finish()
    }
    return lines.makeAsyncIterator()
  }

  /// Pushes and narrates: sent and acknowledged, or stored.
  private mutating func push(silent: Bool, isSentNow: Bool, riding: Int = 0) async throws {
    try await pass(.minutes(1))
    pushCount += 1
    let name = silent ? "silent \(pushCount)" : "alert \(pushCount)"
    let payload =
      silent
      ? #"{"aps":{"content-available":1},"n":\#(pushCount)}"#
      : #"{"aps":{"alert":"News number \#(pushCount)"}}"#
    var request = PushRequest(token: deviceToken, payload: Array(payload.utf8))
    request.topic = Self.topic
    request.pushType = silent ? "background" : "alert"
    request.priority = silent ? 5 : 10
    let answer = try await provider.push(request, providerToken: providerToken)
    guard answer.status == 200, let id = answer.uniqueID.flatMap({ UniqueID($0) }) else {
      throw CommandError("the relay refused the push: \(answer.reason ?? "\(answer.status)")")
    }
    names[id] = name
    Console.say("provider  \(name): \(answer.status)")
    if isSentNow {
      try await readLines(count: 1 + riding)
      try await narrate(until: 1 + riding) { $0.isTerminal }
    } else {
      try await narrate(until: 1) { step in
        switch step {
        case .storedOffline, .storedPower: true
        case .received, .restored, .sent, .delivered, .discarded, .outcome, .decided, .faulted:
          false
        }
      }
    }
  }

  /// Narrates the log up to the n-th step that `isLast` accepts.
  private mutating func narrate(until count: Int, _ isLast: (DeliveryStep) -> Bool) async throws {
    var remaining = count
    while remaining > 0, let event = await life.next() {
      if isLast(event.step) { remaining -= 1 }
      switch event.step {
      case .received, .restored, .outcome, .decided, .faulted: continue
      case .sent, .storedOffline, .storedPower, .discarded, .delivered: break
      }
      let name = names[event.uniqueID] ?? event.uniqueID.description
      Console.say("relay     \(name): \(describe(event))")
    }
  }

  private func describe(_ event: DeliveryEvent) -> String {
    switch event.step {
    case .storedPower(.some(let until), let limit):
      "held until \(until.described(at: event.at)) by \(limit.name)"
    case .discarded(.replaced(let id)): "replaced by \(names[id] ?? "a newer one")"
    case .received, .restored, .sent, .storedOffline, .storedPower(until: nil, _), .discarded,
      .delivered, .outcome, .decided, .faulted:
      event.step.description
    }
  }

  /// Narrates so many of the phone's lines.
  private mutating func readLines(count: Int) async throws {
    var remaining = count
    while remaining > 0 {
      guard let line = await lines.next() else {
        throw CommandError("the relay closed the phone's stream")
      }
      if tell(line) { remaining -= 1 }
    }
  }

  /// Returns false for what is between programs only.
  @discardableResult
  private func tell(_ line: DownLine) -> Bool {
    switch line {
    case .notification(let delivery):
      let notification = delivery.notification
      Console.say(
        "phone     got \(notification.notificationClass.name) via \(delivery.via.name): "
          + String(decoding: notification.payload, as: UTF8.self))
    case .hello: Console.say("phone     connected")
    case .empty: Console.say("phone     nothing was waiting")
    case .broadcast, .keepAlive, .barrier, .checkpoint, .bye, .error, .unknown: return false
    }
    return true
  }
}
