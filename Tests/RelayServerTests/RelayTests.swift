import AdminAPI
import DeviceLink
import RelayClient
import RelayCore
import RelaySetup
import ServiceLifecycle
import TestSupport
import Testing

@testable import RelayServer

/// The whole server in this process, on loopback, with more than one event loop, so that devices,
/// providers and shards meet across loops.
@Suite struct RelayTests {
  private static let topic = "com.example.app"

  private func push(
    _ token: String, _ number: Int, on provider: RelayClient
  ) async throws -> PushAnswer {
    var push = PushRequest(token: token, payload: Array(#"{"aps":{"alert":"\#(number)"}}"#.utf8))
    push.topic = Self.topic
    push.pushType = "alert"
    return try await provider.push(push, providerToken: nil)
  }

  /// Reads lines up to the next notification and acknowledges it.
  private func nextPayload(
    _ lines: inout ClientStream.Lines.AsyncIterator, _ stream: ClientStream
  ) async throws -> String? {
    while let line = try await lines.next() {
      if case .notification(let delivery) = DownLine(line.span) {
        try await stream.write(.ack(id: delivery.notification.uniqueID, outcome: .newData))
        return String(decoding: delivery.notification.payload, as: UTF8.self)
      }
    }
    return nil
  }

  /// Nobody knows it, which is an answer: whoever asks must not wait for one.
  @Test func aDeviceThatIsNotThereIsToldApartFromNoAnswer() async throws {
    try await LoopbackRelay.runRelay { relay, _, _ in
      let nobody = DeviceID(UniqueID(high: 1, low: 2))
      let topic = try #require(Topic("com.example.app"))
      #expect(try await relay.report(of: nobody) == nil)
      #expect(try await relay.register(topic, on: nobody, token: .new(for: nil)) == nil)
      #expect(await relay.app(with: DeviceToken(name: 1, routingKey: 2)).value == nil)
    }
  }

  @Test func devicesOfAllShardsAreReachedFromAnyConnection() async throws {
    try await LoopbackRelay.run(threads: 3) { addresses, _ in
      let phones = try await LoopbackRelay.connect(addresses.device)
      var providers: [RelayClient] = []
      for _ in 0..<3 { providers.append(try await LoopbackRelay.connect(addresses.provider)) }
      let api = DeviceAPI(phones)
      for number in 0..<24 {
        let identity = try await api.enroll()
        let token = try await api.register(topic: Self.topic, of: identity)
        let away = try await push(token, number, on: providers[number % 3])
        #expect(away.status == 200)
        let stream = try await api.openStream(of: identity)
        var lines = stream.lines.makeAsyncIterator()
        #expect(try await nextPayload(&lines, stream) == #"{"aps":{"alert":"\#(number)"}}"#)
        let live = try await push(token, number + 1000, on: providers[(number + 1) % 3])
        #expect(live.status == 200)
        #expect(
          try await nextPayload(&lines, stream) == #"{"aps":{"alert":"\#(number + 1000)"}}"#)
        stream.finish()
      }
    }
  }

  /// Whichever loop its second connection is on.
  @Test func whatIsSentAgainIsAnsweredAsTheFirst() async throws {
    try await LoopbackRelay.run(threads: 2) { addresses, _ in
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      let token = try await api.register(topic: Self.topic, of: try await api.enroll())
      var request = PushRequest(token: token, payload: Array(#"{"aps":{"alert":"1"}}"#.utf8))
      request.topic = Self.topic
      request.pushType = "alert"
      request.id = "01234567-89ab-cdef-0123-456789abcdef"
      var answers: [PushAnswer] = []
      for _ in 0..<3 {
        let provider = try await LoopbackRelay.connect(addresses.provider)
        answers.append(try await provider.push(request, providerToken: nil))
      }
      #expect(answers.allSatisfy { $0.status == 200 && $0.id == request.id })
      #expect(Set(answers.map(\.uniqueID)).count == 1)
      request.id = "01234567-89ab-cdef-0123-456789abcdee"
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let other = try await provider.push(request, providerToken: nil)
      #expect(other.uniqueID != answers[0].uniqueID)
    }
  }

  @Test func aTokenThatADeviceBringsAlongIsItsOwnOnAllLoops() async throws {
    try await LoopbackRelay.run(threads: 3) { addresses, _ in
      let phones = try await LoopbackRelay.connect(addresses.device)
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let api = DeviceAPI(phones)
      let first = try await api.enroll()
      #expect(try await api.register(topic: Self.topic, token: "ABCD", of: first) == "abcd")
      #expect(try await push("abcd", 1, on: provider).status == 200)
      let minted = try await api.register(topic: "com.example.other", of: first)
      // Whatever shard these land on, neither the brought nor the minted token is to be had twice.
      for _ in 0..<12 {
        let other = try await api.enroll()
        for taken in ["abcd", minted] {
          let error = await #expect(throws: ClientError.self) {
            try await api.register(topic: Self.topic, token: taken, of: other)
          }
          #expect(error?.description.contains("TokenTaken") == true)
        }
      }
      try await api.unregister(topic: Self.topic, of: first)
      let gone = try await push("abcd", 2, on: provider)
      #expect(gone.status == 410)
      #expect(gone.reason == "Unregistered")
      #expect((gone.timestamp ?? 0) > 1_600_000_000_000)
    }
  }

  @Test func shutDownSaysByeToDevicesAndEnds() async throws {
    try await LoopbackRelay.run(threads: 3) { addresses, group in
      let phones = try await LoopbackRelay.connect(addresses.device)
      let api = DeviceAPI(phones)
      var streams: [ClientStream] = []
      for _ in 0..<5 {
        streams.append(try await api.openStream(of: try await api.enroll()))
      }
      await group.triggerGracefulShutdown()
      for stream in streams {
        var last: DownLine?
        for try await line in stream.lines { last = DownLine(line.span) }
        #expect(last == .bye(reason: "shutdown"))
      }
    }
  }

  @Test func aNewerConnectionOfADeviceSupersedesTheOlder() async throws {
    try await LoopbackRelay.run(threads: 3) { addresses, _ in
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      let identity = try await api.enroll()
      let older = try await api.openStream(of: identity)
      let newer = try await api.openStream(of: identity)
      var last: DownLine?
      for try await line in older.lines { last = DownLine(line.span) }
      #expect(last == .bye(reason: "superseded"))
      #expect(try await api.status(of: identity).connected)
      newer.finish()
    }
  }

  @Test func unusableLinesAreToldAndThenEnd() async throws {
    try await LoopbackRelay.run(threads: 3) { addresses, _ in
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      let stream = try await api.openStream(of: try await api.enroll())
      for _ in 0..<Limits.unusableLines { try await stream.write(Array("nonsense\n".utf8)) }
      var errors = 0
      var last: DownLine?
      for try await line in stream.lines {
        last = DownLine(line.span)
        if case .error = last { errors += 1 }
      }
      #expect(errors == Limits.unusableLines)
      #expect(last == .bye(reason: "unusable-lines"))
    }
  }

  @Test func enrolmentInProductionNeedsTheKey() async throws {
    try await LoopbackRelay.run(threads: 3) { configuration in
      configuration.profile = .production
      configuration.enrolmentKey = "open sesame"
    } _: { addresses, _ in
      let api = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
      let error = await #expect(throws: ClientError.self) { try await api.enroll() }
      #expect(error?.description.contains("EnrolmentClosed") == true)
      let identity = try await api.enroll(enrolmentKey: "open sesame")
      #expect(DeviceID(identity.device) != nil)
    }
  }
}
