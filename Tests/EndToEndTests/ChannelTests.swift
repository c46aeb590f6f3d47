import Foundation
import Primitives
import RelayCore
import Testing

/// Broadcast channels from outside, with curl as the provider.
@Suite("Channels", .timeLimit(.minutes(3))) struct ChannelTests {
  private static let update =
    #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{"score":1}}}"#

  /// A request that nothing is wrong with, but for what a test does to it.
  struct Request: Sendable {
    var isManagement = false
    var method = "POST"
    var path = "/4/broadcasts/apps/\(Phone.topic)"
    var fields: [String: String]
    var body: String? = ChannelTests.update
    var options: [String] = []

    func request(to relay: RelayProcess) -> CurlRequest {
      var options = ["-X", method] + options
      for (name, value) in fields { options += ["-H", "\(name): \(value)"] }
      if let body { options += ["--data-binary", body] }
      return CurlRequest(
        url: (isManagement ? relay.channelsURL : relay.providerURL) + path, options: options)
    }
  }

  /// A relay with a channel that stores nothing, and one that does.
  struct Scene: Sendable {
    let rejections: RejectionScene
    let channel: String
    let storing: String

    var token: String { rejections.providerTokens[0] }

    init(_ relay: RelayProcess) async throws {
      rejections = try await RejectionScene(relay)
      var create = Request(fields: ["authorization": "bearer \(rejections.providerTokens[0])"])
      (create.isManagement, create.path) = (true, "/1/apps/\(Phone.topic)/channels")
      var made: [String] = []
      for policy in [0, 1] {
        create.body = #"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#
        let answer = try await relay.curl([create.request(to: relay)])[0]
        #expect(answer.status == 201, "\(answer)")
        made.append(try #require(answer.fields["apns-channel-id"]))
      }
      (channel, storing) = (made[0], made[1])
    }

    func broadcast(_ change: (inout Request) -> Void = { _ in }) -> Request {
      var request = Request(
        fields: [
          "authorization": "bearer \(token)", "apns-channel-id": channel,
          "apns-push-type": "liveactivity", "apns-expiration": "0", "apns-priority": "10",
          "apns-request-id": RejectionScene.apnsID,
        ])
      change(&request)
      return request
    }

    func manage(_ method: String, _ change: (inout Request) -> Void = { _ in }) -> Request {
      broadcast { request in
        (request.isManagement, request.method) = (true, method)
        (request.path, request.body) = ("/1/apps/\(Phone.topic)/channels", nil)
        change(&request)
      }
    }
  }

  typealias Cause = @Sendable (Scene) -> [Request]

  private static func one(_ change: @escaping @Sendable (inout Request) -> Void) -> Cause {
    { scene in [scene.broadcast(change)] }
  }

  private static func field(_ name: String, _ value: String?) -> Cause {
    one { $0.fields[name] = value }
  }

  private static func create(_ body: String) -> Cause {
    { scene in [scene.manage("POST") { $0.body = body }] }
  }

  /// Of those that are not here, `FeatureNotEnabled` is below, `CannotCreateChannelConfig` takes
  /// 10,000 channels (`ChannelRegistryTests`), `Shutdown` is in `ChannelExchangesTests`, and faults
  /// make the other two (`ChannelsTests`).
  private static let causes: [ChannelRefusal: [Cause]] =
    idCauses.merging(contentCauses) { $0 + $1 }.merging(credentialCauses) { $0 + $1 }

  private static let idCauses: [ChannelRefusal: [Cause]] = [
    .missingChannelID: [
      field("apns-channel-id", nil), { [$0.manage("GET") { $0.fields["apns-channel-id"] = nil }] },
    ],
    .badChannelID: [field("apns-channel-id", "abc"), field("apns-channel-id", "????")],
    .channelNotRegistered: [
      field("apns-channel-id", "AAECAwQFBgcICQoLDA0ODw=="),
      { [$0.manage("DELETE") { $0.fields["apns-channel-id"] = "AAECAwQFBgcICQoLDA0ODw==" }] },
    ],
    .badRequestParams: [create(#"{"message-storage-policy":7,"push-type":"LiveActivity"}"#)],
    .badRequestPayload: [
      create("[]"), one { $0.body = "x" }, one { $0.body = #"{"aps":{"event":"start"}}"# },
    ],
  ]

  private static let contentCauses: [ChannelRefusal: [Cause]] = [
    .payloadEmpty: [create(""), one { $0.body = "" }],
    .badMessageID: [
      field("apns-request-id", "1"), { [$0.manage("GET") { $0.fields["apns-request-id"] = "1" }] },
    ],
    .missingPushType: [field("apns-push-type", nil), create(#"{"message-storage-policy":1}"#)],
    .invalidPushType: [field("apns-push-type", "alert"), create(#"{"push-type":"alert"}"#)],
    .badExpirationDate: [field("apns-expiration", "soon"), field("apns-expiration", "1900000000")],
    .topicDisallowed: [one { $0.path += ".push-type.liveactivity" }],
    .badPriority: [field("apns-priority", "7")],
  ]

  private static let credentialCauses: [ChannelRefusal: [Cause]] = [
    .badCertificate: [{ [certified($0, $0.rejections.strangersCertificate)] }],
    .badCertificateEnvironment: [{ [certified($0, $0.rejections.sandboxCertificate)] }],
    .topicMismatch: [
      { scene in
        let token = scene.rejections.otherTopicProviderToken
        return [scene.broadcast { $0.fields["authorization"] = "bearer \(token)" }]
      }
    ],
    .missingProviderToken: [field("authorization", nil)],
    .expiredProviderToken: [
      { scene in
        let token = scene.rejections.expiredProviderToken
        return [scene.broadcast { $0.fields["authorization"] = "bearer \(token)" }]
      }
    ],
    .invalidProviderToken: [field("authorization", "bearer abc")],
    .badPath: [
      one { $0.path = "/4/broadcasts/\(Phone.topic)" }, { [$0.manage("GET") { $0.path = "/" }] },
    ],
    .methodNotAllowed: [one { $0.method = "PUT" }, { [$0.manage("PUT")] }],
    .payloadTooLarge: [one { $0.body = RejectionTable.payload(5121) }],
    .tooManyRequests: [
      { scene in
        [Request](
          repeating: scene.broadcast { $0.fields["apns-channel-id"] = scene.storing },
          count: Int(StoragePolicy.mostRecent.publishing.burst) + 1)
      }
    ],
    .tooManyProviderTokenUpdates: [
      { scene in
        scene.rejections.providerTokens.map { token in
          scene.broadcast { request in
            request.fields["authorization"] = "bearer \(token)"
            request.body = ""
          }
        }
      }
    ],
  ]

  private static func certified(_ scene: Scene, _ certificate: String) -> Request {
    scene.broadcast { request in
      request.fields["authorization"] = nil
      let key = certificate.replacing(".pem", with: ".key")
      request.options = ["--cert", certificate, "--key", key]
    }
  }

  /// A clock that stands: however slow the machine, what a channel may have does not come back
  /// while requests for too many are on their way.
  private static let setup: RelaySetup = {
    var setup = RejectionScene.setup
    setup.arguments = ["--channels", "127.0.0.1:0", "--threads", "2", "--clock", "virtual"]
    return setup
  }()

  @Test func everyReasonComesOnDemand() async throws {
    let elsewhere: Set<ChannelRefusal> = [
      .featureNotEnabled, .cannotCreateChannelConfig, .serviceUnavailable, .shutdown,
      .internalServerError,
    ]
    #expect(Set(Self.causes.keys).union(elsewhere) == Set(ChannelRefusal.allCases))
    try await RelayProcess.run(Self.setup) { relay in
      let scene = try await Scene(relay)
      for refusal in ChannelRefusal.allCases {
        for (number, cause) in (Self.causes[refusal] ?? []).enumerated() {
          let answers = try await relay.curl(cause(scene).map { $0.request(to: relay) })
          let answer = try #require(answers.last)
          let place: Comment = "\(refusal) \(number): \(answer)"
          #expect(answer.status == Int(refusal.row.status), place)
          #expect(answer.reason == refusal.row.reason, place)
          let id = answer.fields["apns-request-id"]
          #expect((id == RejectionScene.apnsID) == (refusal != .badMessageID), place)
          #expect(id.flatMap { UUID(uuidString: $0) } != nil, place)
          #expect(answer.fields["apns-id"] == nil, place)
        }
      }
    }
  }

  @Test func withoutTheListenerTheFeatureIsOff() async throws {
    try await RelayProcess.run { relay in
      let token = try await relay.providerToken()
      var request = Request(fields: ["authorization": "bearer \(token)"])
      request.fields["apns-channel-id"] = "AAECAwQFBgcICQoLDA0ODw=="
      request.fields["apns-push-type"] = "liveactivity"
      let answer = try await relay.curl([request.request(to: relay)])[0]
      #expect(answer.status == 400 && answer.reason == "FeatureNotEnabled", "\(answer)")
    }
  }

  /// A channel made with curl, a broadcast at two phones, one that comes later, and what the admin
  /// API counts.
  @Test func aBroadcastArrivesAtItsPhones() async throws {
    var setup = RelaySetup()
    setup.arguments = ["--channels", "127.0.0.1:0", "--threads", "2", "--admin", "127.0.0.1:0"]
    try await RelayProcess.run(setup) { relay in
      let token = try await relay.providerToken()
      var create = Request(fields: ["authorization": "bearer \(token)"])
      (create.isManagement, create.path) = (true, "/1/apps/\(Phone.topic)/channels")
      create.body = #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#
      let made = try await relay.curl([create.request(to: relay)])[0]
      let channel = try #require(made.fields["apns-channel-id"], "\(made)")
      var broadcast = Request(
        fields: [
          "authorization": "bearer \(token)", "apns-channel-id": channel,
          "apns-push-type": "liveactivity", "apns-priority": "5",
          "apns-expiration": "\(Int(Date().timeIntervalSince1970) + 600)",
        ])
      broadcast.body = Self.update
      let answer = try await relay.curl([broadcast.request(to: relay)])[0]
      #expect(answer.status == 200 && answer.body.isEmpty, "\(answer)")
      // Both come later, and each gets what is stored.
      let phones = try await relay.command(
        "device", "anna", "ben", "--light", "--channel", channel, "--notifications", "1",
        "--device", relay.device
      ).checked("device")
      for name in ["anna", "ben"] {
        #expect(
          phones.contains("\(name)  broadcast on \(channel) for \(Phone.topic): \(Self.update)"),
          "\(phones)")
      }
      let admin = try Admin(relay)
      let list = try await admin("GET", "/v1/channels?app=\(Phone.topic)")
      let counted = (list.json["channels"] as? [[String: Any]])?.first
      #expect(list.json["count"] as? Int == 1 && counted?["channel"] as? String == channel)
      #expect(counted?["subscribers"] as? Int == 2 && counted?["delivered"] as? Int == 2, "\(list)")
      #expect(try await admin("GET", "/v1/channels?app=x%20y").reason == "BadBody")
    }
  }
}
