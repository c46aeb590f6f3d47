import AdminAPI
import DeviceLink
import Foundation
import Primitives
import RelayClient
import RelayCore
import RelayFaults
import RelaySetup
import TestSupport
import Testing

@testable import RelayServer

/// Channels of a whole relay in this process, with phones and providers on several loops.
@Suite(.timeLimit(.minutes(2))) struct ChannelsTests {
  private static let app = "com.example.app"
  private static let update =
    #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{"score":1}}}"#

  /// A relay with channels, a client of its management and one of its provider port.
  private struct Scene {
    var manage: RelayClient
    var provider: RelayClient
    var devices: DeviceAPI

    init(_ addresses: Relay.Addresses) async throws {
      manage = try await LoopbackRelay.connect(try #require(addresses.channels))
      provider = try await LoopbackRelay.connect(addresses.provider)
      devices = DeviceAPI(try await LoopbackRelay.connect(addresses.device))
    }

    func channels(
      _ method: String, _ fields: [(name: String, value: String)] = [], _ body: String = "",
      path: String = "channels"
    ) async throws -> ClientResponse {
      try await manage.request(
        method: method, path: "/1/apps/\(app)/\(path)", headers: fields, body: Array(body.utf8))
    }

    func create(_ policy: Int) async throws -> String {
      let answer = try await channels(
        "POST", [], #"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#)
      #expect(answer.status == 201 && answer.body.isEmpty, "\(answer.text)")
      return try #require(answer.headers["apns-channel-id"])
    }

    func broadcast(
      on channel: String, expiration: String = "0",
      _ more: [(name: String, value: String)] = []
    ) async throws -> ClientResponse {
      try await provider.request(
        method: "POST", path: "/4/broadcasts/apps/\(app)",
        headers: Self.fields(channel, expiration: expiration) + more, body: Array(update.utf8))
    }

    static func fields(
      _ channel: String, expiration: String = "0"
    ) -> [(name: String, value: String)] {
      [
        ("apns-channel-id", channel), ("apns-push-type", "liveactivity"),
        ("apns-expiration", expiration), ("apns-priority", "10"),
      ]
    }
  }

  private static func run(
    threads: Int = 2, _ change: (inout RelayConfiguration) -> Void = { _ in },
    _ body: (Relay, Scene) async throws -> Void
  ) async throws {
    try await LoopbackRelay.runRelay(threads: threads) { configuration in
      configuration.channels = .init(host: "127.0.0.1", port: 0)
      change(&configuration)
    } _: { relay, addresses, _ in
      try await body(relay, try await Scene(addresses))
    }
  }

  private static func next(
    _ lines: inout ClientStream.Lines.AsyncIterator
  ) async throws -> Broadcast? {
    while let line = try await lines.next() {
      if case .broadcast(let broadcast, _) = DownLine(line.span) { return broadcast }
    }
    return nil
  }

  @Test func aChannelIsManagedAsDocumented() async throws {
    try await Self.run { relay, scene in
      let id = try await scene.create(1)
      let other = try await scene.create(0)
      let read = try await scene.channels("GET", [("apns-channel-id", other)])
      #expect(read.status == 200)
      #expect(read.text == #"{"message-storage-policy":0,"push-type":"LiveActivity"}"#)
      let list = try await scene.channels("GET", path: "all-channels")
      let listed = try JSONDecoder().decode([String: [String]].self, from: Data(list.body))
      #expect(list.status == 200 && listed.keys.sorted() == ["channels"])
      #expect(Set(listed["channels"] ?? []) == [id, other])
      let request = "2FE2D6F8-4e5b-4C3F-8D79-1A9F4E5C1B11"
      let gone = try await scene.channels(
        "DELETE", [("apns-channel-id", id), ("apns-request-id", request)])
      #expect(gone.status == 204 && gone.body.isEmpty)
      #expect(gone.headers["apns-request-id"] == request)
      let again = try await scene.channels("DELETE", [("apns-channel-id", id)])
      #expect(again.status == 400 && again.text == #"{"reason":"ChannelNotRegistered"}"#)
      let refused = try #require(await relay.refusals(limit: 9).value.first)
      #expect(refused.status == 400 && refused.reason == "ChannelNotRegistered")
      #expect(again.headers["apns-request-id"] == refused.uniqueID.description)
      #expect(again.headers["apns-unique-id"] == refused.uniqueID.description)
      let named = try await scene.channels(
        "DELETE", [("apns-channel-id", id), ("apns-request-id", request)])
      let last = try #require(await relay.refusals(limit: 9).value.first)
      #expect(named.headers["apns-request-id"] == request)
      #expect(named.headers["apns-unique-id"] == last.uniqueID.description)
      #expect(refused.explanation == ChannelRefusal.channelNotRegistered.row.text)
    }
  }

  @Test func aStrangersRequestIsRefusedForAReason() async throws {
    try await Self.run {
      $0.auth = .token
    } _: { relay, scene in
      let answer = try await scene.channels("GET", [("authorization", "bearer x")])
      #expect(answer.status == 403)
      let refused = try #require(await relay.refusals(limit: 9).value.first)
      #expect(answer.headers["apns-request-id"] == refused.uniqueID.description)
      #expect(refused.reason == "InvalidProviderToken" && !refused.peer.isEmpty)
      #expect(refused.explanation != ChannelRefusal.invalidProviderToken.row.text)
    }
  }

  /// Phones of all loops, whose streams are on one connection.
  @Test func aBroadcastReachesPhonesOfAllLoops() async throws {
    try await Self.run(threads: 3) { relay, scene in
      let channel = try await scene.create(0)
      var streams: [ClientStream] = []
      for _ in 0..<12 {
        let identity = try await scene.devices.enroll()
        _ = try await scene.devices.register(topic: Self.app, of: identity)
        try await scene.devices.subscribe(Self.app, to: channel, of: identity)
        streams.append(try await scene.devices.openStream(of: identity))
      }
      let answer = try await scene.broadcast(on: channel)
      #expect(answer.status == 200 && answer.body.isEmpty, "\(answer.text)")
      let uniqueID = try #require(answer.headers["apns-unique-id"])
      #expect(answer.headers["apns-request-id"] != nil)
      for stream in streams {
        var lines = stream.lines.makeAsyncIterator()
        let got = try #require(try await Self.next(&lines))
        #expect(got.notification.uniqueID.description == uniqueID)
        #expect(got.channel.description == channel)
        #expect(String(decoding: got.notification.payload, as: UTF8.self) == Self.update)
      }
      let status = await relay.channels(of: nil, limit: 9).value.channels
      #expect(status.map(\.subscribers) == [12])
      #expect(status.map(\.delivered) == [12] && status.map(\.published) == [1])
    }
  }

  @Test func aStoredBroadcastIsThereForALaterPhoneAndAfterARestart() async throws {
    let state = FileManager.default.temporaryDirectory.appending(path: "relay-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: state) }
    func onDisk(_ configuration: inout RelayConfiguration) {
      (configuration.store, configuration.state) = (.sqlite, state)
    }
    var channel = ""
    var uniqueID: String?
    var identity = DeviceIdentity(device: "", secret: "")
    let soon = "\(Int(Date().timeIntervalSince1970) + 600)"
    try await Self.run(onDisk) { _, scene in
      channel = try await scene.create(1)
      uniqueID = try await scene.broadcast(on: channel, expiration: soon).headers["apns-unique-id"]
      identity = try await scene.devices.enroll()
      _ = try await scene.devices.register(topic: Self.app, of: identity)
      try await scene.devices.subscribe(Self.app, to: channel, of: identity)
      let stream = try await scene.devices.openStream(of: identity)
      var lines = stream.lines.makeAsyncIterator()
      let got = try await Self.next(&lines)
      #expect(got?.notification.uniqueID.description == uniqueID)
    }
    try await Self.run(onDisk) { relay, scene in
      let stream = try await scene.devices.openStream(of: identity)
      var lines = stream.lines.makeAsyncIterator()
      let got = try await Self.next(&lines)
      #expect(got?.notification.uniqueID.description == uniqueID)
      #expect(await relay.channels(of: nil, limit: 9).value.channels.map(\.subscribers) == [1])
      #expect(try await scene.broadcast(on: channel).status == 200)
      let next = try #require(try await Self.next(&lines))
      #expect(next.number > (got?.number ?? .max))
      try await scene.devices.subscribe(Self.app, to: channel, isOn: false, of: identity)
      let error = await #expect(throws: ClientError.self) {
        try await scene.devices.subscribe(Self.app, to: channel, isOn: false, of: identity)
      }
      #expect(error?.description.contains("UnknownChannel") == true)
      let gone = try await scene.channels("DELETE", [("apns-channel-id", channel)])
      #expect(gone.status == 204)
    }
    try await Self.run(onDisk) { _, scene in
      let list = try await scene.channels("GET", path: "all-channels")
      #expect(list.text == #"{"channels":[]}"#)
      #expect(try await scene.broadcast(on: channel).text == #"{"reason":"ChannelNotRegistered"}"#)
      let error = await #expect(throws: ClientError.self) {
        try await scene.devices.subscribe(Self.app, to: channel, of: identity)
      }
      #expect(error?.description.contains("UnknownChannel") == true)
    }
  }

  /// Its head repeats fields of the push before it, whose text comes once.
  @Test func aBroadcastMayFollowAPush() async throws {
    try await Self.run { _, scene in
      let channel = try await scene.create(0)
      for _ in 0..<2 {
        let push = try await scene.provider.request(
          method: "POST", path: "/3/device/\(String(repeating: "ab", count: 32))",
          headers: Scene.fields(channel), body: Array(Self.update.utf8))
        #expect(push.text.contains("MissingTopic"), "\(push.text)")
        let answer = try await scene.broadcast(on: channel)
        #expect(answer.status == 200, "\(answer.text)")
      }
    }
  }

  /// On a clock that stands: none comes back meanwhile, however slow the machine is.
  @Test func tooManyBroadcastsOnAChannelAreRefused() async throws {
    try await Self.run {
      $0.clock = .virtual
    } _: { _, scene in
      let channel = try await scene.create(1)
      var reasons: Set<String> = []
      for _ in 0..<(StoragePolicy.mostRecent.publishing.burst + 20) {
        reasons.insert(try await scene.broadcast(on: channel).text)
      }
      #expect(reasons.contains(#"{"reason":"TooManyRequests"}"#))
    }
  }

  /// As if a phone had asked a moment before: the owner of all channels has said that there is this
  /// one, then it is deleted, and only then the phone's shard hears of the phone.
  @Test func aSubscriptionThatRacesADeletionDoesNotStay() async throws {
    try await Self.run { relay, scene in
      let identity = try await scene.devices.enroll()
      _ = try await scene.devices.register(topic: Self.app, of: identity)
      let channel = try #require(ChannelID(try await scene.create(0)))
      let fields = [("apns-channel-id", channel.description)]
      #expect(try await scene.channels("DELETE", fields).status == 204)
      let topic = try #require(Topic(Self.app))
      let credential = DeviceCredential(
        device: try #require(DeviceID(identity.device)),
        secret: DeviceRequest.hash(identity.secret.utf8))
      let loops = try #require(relay.inbox.loops)
      func subscriptions() async -> Int {
        await loops.onEach { $0.core.shard.counters.subscriptions }.reduce(0, +)
      }
      // On its own loop the shard has it at once.
      let counts = await loops.onEach { runner in
        guard
          runner.partitions.place(ofRoutingKey: credential.device.routingKey).loop
            == Int(runner.index)
        else { return 0 }
        let nobody = RequestID(
          loop: runner.index, connection: ConnectionNumber(.max), stream: 1, node: runner.node)
        runner.raise(
          .asked(.subscribed(topic, channel), credential, from: nobody), for: credential.device,
          at: runner.now)
        runner.finishBatch()
        return runner.core.shard.counters.subscriptions
      }
      #expect(counts.reduce(0, +) == 1)
      while await subscriptions() > 0 { await Task.yield() }
    }
  }

  @Test func aReturnTakesChannelsBack() async throws {
    try await Self.run {
      $0.clock = .virtual
    } _: { relay, scene in
      let clock = try #require(relay.virtualClock)
      let identity = try await scene.devices.enroll()
      _ = try await scene.devices.register(topic: Self.app, of: identity)
      let first = try await scene.create(0)
      try await scene.devices.subscribe(Self.app, to: first, of: identity)
      _ = try await clock.saveCheckpoint("ready")
      for _ in 0..<2 {
        let second = try await scene.create(0)
        #expect(try await scene.channels("DELETE", [("apns-channel-id", first)]).status == 204)
        _ = try await clock.rewind(to: "ready")
        let status = await relay.channels(of: nil, limit: 9).value.channels
        #expect(status.map(\.channel) == [first] && status.map(\.subscribers) == [1])
        #expect(try await scene.broadcast(on: first).status == 200)
        let gone = try await scene.broadcast(on: second)
        #expect(gone.text == #"{"reason":"ChannelNotRegistered"}"#)
      }
    }
  }

  /// A fault at the provider's place answers what is about its topic's channels, too.
  @Test(
    arguments: [
      (Rejection.internalServerError, nil, nil, "InternalServerError"),
      (.serviceUnavailable, app, nil, "Service Unavailable"),
      (.tooManyRequests, "com.example.other", nil, nil), (.shutdown, nil, .silent, nil),
      // A reason that channels do not have.
      (.badDeviceToken, nil, nil, nil),
    ] as [(Rejection, String?, NotificationClass?, String?)])
  func aFaultMayAnswer(
    rejection: Rejection, topic: String?, kind: NotificationClass?, reason: String?
  ) async throws {
    try await Self.run { relay, scene in
      let channel = try await scene.create(0)
      var fault = Fault(.provider, .answer(rejection))
      (fault.match.topic, fault.match.kind) = (topic, kind)
      fault.when.times = 2
      #expect(await relay.put(fault, named: "broken"))
      let list = try await scene.channels("GET", path: "all-channels")
      let broadcast = try await scene.broadcast(on: channel)
      for answer in [list, broadcast] {
        #expect(answer.status == (reason == nil ? 200 : Int(rejection.status)), "\(answer.text)")
        if let reason { #expect(answer.text == #"{"reason":"\#(reason)"}"#) }
      }
      #expect(relay.faultCount == (reason == nil ? 0 : 2))
      #expect(try await scene.broadcast(on: channel).status == 200)
    }
  }

  /// While the journal cannot be written, what must be in it is answered 503 and has not happened.
  @Test(arguments: [RelayConfiguration.Store.memory, .sqlite])
  func aJournalThatFailsIsSaid(store: RelayConfiguration.Store) async throws {
    let directory = try TemporaryDirectory()
    try await Self.run {
      ($0.store, $0.state) = (store, directory.path)
    } _: { relay, scene in
      let channel = try await scene.create(1)
      #expect(await relay.put(Fault(.journal, .failWrite), named: "full"))
      let soon = "\(Int(Date().timeIntervalSince1970) + 600)"
      let body = #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#
      let fields = [("apns-channel-id", channel)]
      for answer in [
        try await scene.channels("POST", [], body), try await scene.channels("DELETE", fields),
        try await scene.broadcast(on: channel, expiration: soon),
      ] {
        #expect(answer.status == 503 && answer.text == #"{"reason":"Service Unavailable"}"#)
      }
      #expect(try await scene.channels("GET", fields).status == 200)
      #expect(try await scene.broadcast(on: channel).status == 200)
      let list = try await scene.channels("GET", path: "all-channels")
      #expect(list.text == #"{"channels":["\#(channel)"]}"#)
      #expect(await relay.removeFault(named: "full"))
      #expect(try await scene.channels("DELETE", fields).status == 204)
    }
  }

  @Test func aRelayWithoutChannelsSaysSo() async throws {
    try await LoopbackRelay.run { addresses, _ in
      #expect(addresses.channels == nil)
      let provider = try await LoopbackRelay.connect(addresses.provider)
      let answer = try await provider.request(
        method: "POST", path: "/4/broadcasts/apps/\(Self.app)",
        headers: [
          ("apns-channel-id", "AAECAwQFBgcICQoLDA0ODw=="), ("apns-push-type", "LiveActivity"),
        ], body: Array(Self.update.utf8))
      #expect(answer.status == 400)
      #expect(answer.text == #"{"reason":"FeatureNotEnabled"}"#)
    }
  }
}
