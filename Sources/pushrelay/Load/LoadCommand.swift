import ArgumentParser
import FoundationEssentials
import Primitives
import RelayClient
import RelayCore
import RelayServer
import RelaySetup

struct LoadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "load",
    abstract: "Push at a rate to many phones over real sockets, and tell the times they see.",
    discussion: """
      Examples:

        pushrelay load
        pushrelay load --devices 1000 --rate 5000 --seconds 30
        pushrelay load --silent 0.5 --json
        pushrelay load --away --bytes 220 --open 100 --rate 1000000 --seconds 0.1

      Pushes are sent when they are due, whether or not earlier ones were answered, and times \
      count from then: a relay that stalls does not slow down what measures it ("coordinated \
      omission"). What is due while as many are open as may be goes late: the last example sends \
      100,000 as fast as they are answered. No two payloads are the same. Phones listen and \
      acknowledge at once; they are remembered in STATE/fleet.json. A broadcast's line is compared \
      with that of the phone before and counted. This program and the relay share the machine's \
      processors: what it measures is both.
      """)

  @Option(help: "Phones that listen, up to 100000.")
  var devices = 100
  @Flag(help: "No phone listens: what is measured is the answers.")
  var away = false
  @Option(help: "Phones that share a connection, in a cluster one to each node that has some.")
  var share = 1000
  @Option(help: "Connections of providers.")
  var providers = 2
  @Option(help: "Pushes a second, over all of them.")
  var rate = 1000.0
  @Option(help: "Pushes that a connection has open at once; APNs allows about 1000.")
  var open = 900
  @Option(help: "Bytes of a payload, filled up with white space.")
  var bytes = 0
  @Option(help: "How long to push.")
  var seconds = 10.0
  @Option(help: "The share of silent pushes, from 0 to 1.")
  var silent = 0.0
  @Option(help: "Broadcasts meanwhile, evenly, on one channel to which all phones subscribe.")
  var broadcasts = 0
  @Option(help: RelayConfiguration.Endpoint.help("channel management", port: 2195))
  var channels: RelayConfiguration.Endpoint?
  @Option(help: "How many seconds to wait for the last deliveries.")
  var wait = 5.0
  @Option(help: "The topic.")
  var topic = "com.example.app"
  @OptionGroup var signing: ProviderOptions
  @Option(help: RelayConfiguration.Endpoint.help("device", port: 5223))
  var device: RelayConfiguration.Endpoint?
  @Option(help: "What a relay in production wants from new devices.")
  var enrolmentKey: String?
  @Flag(help: "Print the result as JSON.")
  var json = false
  @OptionGroup var connection: ConnectionOptions

  func validate() throws {
    guard (1...100_000).contains(devices), (1...100).contains(providers) else {
      throw ValidationError("--devices is 1 to 100000, --providers 1 to 100")
    }
    guard (1...1000).contains(share) else { throw ValidationError("--share is 1 to 1000") }
    guard (1...1000).contains(open), (0...4096).contains(bytes) else {
      throw ValidationError("--open is 1 to 1000, --bytes up to 4096")
    }
    guard rate > 0, rate <= 1_000_000, seconds > 0, seconds <= 86_400 else {
      throw ValidationError("--rate is up to 1000000, --seconds up to 86400")
    }
    guard (0...100_000).contains(broadcasts), broadcasts == 0 || !away else {
      throw ValidationError("--broadcasts is up to 100000, and 0 with --away")
    }
    guard (0...1).contains(silent), wait >= 0 else {
      throw ValidationError("--silent is a share from 0 to 1, --wait not below 0")
    }
  }

  func run() async throws {
    let roster = try await FleetRoster.enroll(
      count: devices, topic: topic, at: device, by: connection, key: enrolmentKey)
    let token = try signing.token(connection.files.keys, topic: topic)
    let broadcaster = try await makeBroadcaster(token)
    let (tally, tls) = (LoadTally(), SharedTLS())
    let start = ContinuousClock.now
    let report = try await withThrowingTaskGroup(of: Void.self) { group in
      let present = away ? 0 : devices
      for first in stride(from: 0, to: present, by: share) {
        let members = roster.members[first..<min(devices, first + share)]
        group.addTask { try await listen(members, over: tls, broadcaster, since: start, tally) }
      }
      while await tally.listening < present {
        try await Task.sleep(for: .milliseconds(10))
        if ContinuousClock.now - start > .seconds(60 + devices / 1000) {
          throw CommandError("only \(await tally.listening) of \(devices) phones could connect")
        }
      }
      if !json || broadcaster != nil {
        Console.log("\(present) phones listen; pushing \(rate) a second for \(seconds) s")
      }
      var clients: [RelayClient] = []
      for _ in 0..<providers {
        let place = connection.find(provider: signing.provider)
        clients.append(try await connection.connect(to: place))
      }
      let begin = ContinuousClock.now
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, client) in clients.enumerated() {
          group.addTask {
            try await push(number, client, roster, token, since: start, begin, tally)
          }
        }
        if let broadcaster {
          group.addTask {
            try await broadcaster.send(broadcasts, in: seconds, to: devices, since: start, tally)
          }
        }
        try await group.waitForAll()
      }
      // The last one is due before the time is over.
      let took = max(ContinuousClock.now - begin, .seconds(seconds))
      let end = ContinuousClock.now + .seconds(away ? 0 : wait)
      while ContinuousClock.now < end, await tally.isWaiting {
        try await Task.sleep(for: .milliseconds(10))
      }
      group.cancelAll()
      return await tally.report(took / .seconds(1), devices: devices, rate: rate)
    }
    if json { try Console.say(json: report) } else { report.show() }
  }

  // MARK: Phones

  private func listen(
    _ members: ArraySlice<FleetRoster.Member>, over tls: SharedTLS,
    _ broadcaster: LoadBroadcaster?, since start: ContinuousClock.Instant, _ tally: LoadTally
  ) async throws {
    var options = ClientOptions()
    if broadcaster != nil {
      options.onBroadcasts = { broadcast, count in
        guard let delay = LoadPhone.delay(of: broadcast.notification, since: start) else { return }
        Task { await tally.delivered(broadcast.number, to: count, after: delay) }
      }
    }
    let pool = LinkPool(phonesPerConnection: members.count) {
      [connection, device, options] owner in
      try await connection.connect(device: device, owner: owner, options: options, over: tls)
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, member) in members.enumerated() {
        group.addTask {
          if let channel = broadcaster?.channel {
            let api = DeviceAPI(try await pool.client(for: number))
            try await api.subscribe(topic, to: channel, of: member.identity)
          }
          var isListening = false
          try await pool.keepOpen(for: number, of: member.identity) { stream in
            if !isListening { await tally.listens() }
            isListening = true
            return try await LoadPhone(since: start, tally).listen(to: stream)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  // MARK: Providers

  /// nil without broadcasts.
  private func makeBroadcaster(_ token: String?) async throws -> LoadBroadcaster? {
    guard broadcasts > 0 else { return nil }
    return try await LoadBroadcaster(
      topic: topic, token,
      management: try await connection.connect(to: try connection.find(channels: channels)),
      provider: try await connection.connect(to: connection.find(provider: signing.provider)))
  }

  private func push(
    _ number: Int, _ client: RelayClient, _ roster: FleetRoster, _ token: String?,
    since start: ContinuousClock.Instant, _ begin: ContinuousClock.Instant, _ tally: LoadTally
  ) async throws {
    let count = Int(rate * seconds)
    // Every so many of all, from its number on.
    let own = max(0, (count - number + providers - 1) / providers)
    @Sendable func index(_ own: Int) -> Int { number + own * providers }
    @Sendable func due(_ index: Int) -> ContinuousClock.Instant {
      begin + .seconds(Double(index) / rate)
    }
    let plan = PushPlan(
      count: own, openLimit: open, due: { due(index($0)) },
      request: { own in
        let index = index(own)
        return request(index, to: roster.members[index % devices].token, at: due(index) - start)
      },
      onAnswer: { own, answer, moment in
        let index = index(own)
        tally.answered(answer, isSilent: isSilent(index), after: moment - due(index))
      })
    try await client.push(plan, providerToken: token)
    await client.close()
  }

  private func isSilent(_ index: Int) -> Bool {
    // Spread evenly: at 0.25 every fourth.
    Int(Double(index + 1) * silent) > Int(Double(index) * silent)
  }

  private func request(_ index: Int, to token: String, at moment: Duration) -> PushRequest {
    let aps = isSilent(index) ? #"{"content-available":1}"# : #"{"alert":"Number \#(index)"}"#
    let sent = Int(moment / .microseconds(1))
    let payload = Array(#"{"aps":\#(aps),"\#(LoadPhone.member)":\#(sent)}"#.utf8)
    let space = Array(repeating: UInt8(ascii: " "), count: max(0, bytes - payload.count))
    var request = PushRequest(token: token, payload: payload + space)
    request.topic = topic
    request.pushType = isSilent(index) ? "background" : "alert"
    request.priority = isSilent(index) ? 5 : 10
    return request
  }
}
