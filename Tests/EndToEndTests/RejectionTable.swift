import RelayCore

/// How each rejection is caused from outside: pushes for one curl process, so one connection, of
/// which the last must be answered with it.
enum RejectionTable {
  typealias Cause = @Sendable (RejectionScene) -> [Push]

  static let causes: [Rejection: [Cause]] = [
    fieldCauses, pathCauses, credentialCauses, deviceCauses,
  ].reduce(into: [:]) { all, part in
    all.merge(part) { $0 + $1 }
  }

  private static func one(_ change: @escaping @Sendable (inout Push) -> Void) -> Cause {
    { scene in [scene.push(change)] }
  }

  private static func field(_ field: String) -> Cause {
    one { $0.fields.append(field) }
  }

  private static let fieldCauses: [Rejection: [Cause]] = [
    .badCollapseID: [field("apns-collapse-id: " + String(repeating: "c", count: 65))],
    .badExpirationDate: [
      field("apns-expiration: tomorrow"), field("apns-expiration: -1"),
      field("apns-expiration: 1.5"),
    ],
    .badMessageID: [
      one { $0.fields = ["apns-id: 1234"] },
      one { $0.fields = ["apns-id: 9B1DEB4D3B7D4BAD9BDD2B0D7B3DCB6D"] },
    ],
    .badPriority: [field("apns-priority: 7"), field("apns-priority: high")],
    .invalidPushType: [field("apns-push-type: shout"), field("apns-push-type: ALERT")],
    .badTopic: [
      one { $0.topic = "com example" },
      one { push in
        push.topic = Phone.topic
        push.fields.append("apns-push-type: liveactivity")
      },
    ],
    .missingTopic: [one { $0.topic = nil }],
    .duplicateHeaders: [
      field("apns-topic: \(Phone.topic)"), field("apns-id: \(RejectionScene.apnsID)"),
    ],
    .payloadEmpty: [one { $0.body = "" }],
    .badRequestPayload: [
      one { $0.body = "hello" }, one { $0.body = "[]" }, one { $0.body = #"{"aps":{}"# },
    ],
    .payloadTooLarge: [
      one { $0.body = payload(4097) }, one { $0.body = payload(100_000) },
    ],
  ]

  private static let pathCauses: [Rejection: [Cause]] = [
    .badPath: [
      one { $0.path = "/4/device/00" }, one { $0.path = "/" },
      one { $0.path += "/more" },
    ],
    .missingDeviceToken: [one { $0.path = "/3/device/" }, one { $0.path = "/3/device" }],
    .methodNotAllowed: [one { $0.method = "PUT" }, one { $0.method = "DELETE" }],
    .badDeviceToken: [
      one { $0.path = "/3/device/xyz" }, one { $0.path = "/3/device/00" },
      one { $0.path = "/3/device/" + String(repeating: "ab", count: 101) },
      one { $0.path = "/3/device/" + String(repeating: "ab", count: 32) },
    ],
    // curl waits for a go-ahead that never comes, so the body never does.
    .idleTimeout: [
      one { $0.options = ["-H", "expect: 100-continue", "--expect100-timeout", "50"] }
    ],
  ]

  private static let credentialCauses: [Rejection: [Cause]] = [
    .missingProviderToken: [
      one { $0.authorization = nil }, one { $0.authorization = "basic YWJj" },
    ],
    .invalidProviderToken: [
      one { $0.authorization = "bearer abc" },
      { scene in [scene.push { $0.authorization = "bearer \(scene.providerTokens[0])x" }] },
    ],
    .expiredProviderToken: [
      { scene in [scene.push { $0.authorization = "bearer \(scene.expiredProviderToken)" }] }
    ],
    .badEnvironmentKeyIDInToken: [
      { scene in [scene.push { $0.authorization = "bearer \(scene.sandboxProviderToken)" }] }
    ],
    .topicDisallowed: [
      { scene in [scene.push { $0.authorization = "bearer \(scene.otherTopicProviderToken)" }] }
    ],
    .unrelatedKeyIDInToken: [
      { scene in
        // The first push binds the connection; that it has no body does not matter.
        [
          scene.push { push in
            push.authorization = "bearer \(scene.topicProviderToken)"
            push.body = ""
          },
          scene.push { $0.authorization = "bearer \(scene.otherTopicProviderToken)" },
        ]
      }
    ],
    .tooManyProviderTokenUpdates: [
      { scene in
        scene.providerTokens.map { token in
          scene.push { push in
            push.authorization = "bearer \(token)"
            push.body = ""
          }
        }
      }
    ],
    .badCertificate: [{ scene in [scene.certified(scene.strangersCertificate)] }],
    .badCertificateEnvironment: [{ scene in [scene.certified(scene.sandboxCertificate)] }],
  ]

  private static let deviceCauses: [Rejection: [Cause]] = [
    .deviceTokenNotForTopic: [
      { scene in [scene.push { $0.path = "/3/device/\(scene.otherToken)" }] }
    ],
    .unregistered: [
      { scene in
        [
          scene.push { push in
            push.path = "/3/device/\(scene.goneToken)"
            push.topic = "com.example.gone"
          }
        ]
      }
    ],
    .tooManyRequests: [
      { scene in
        [1, 2].map { _ in scene.push { $0.path = "/3/device/\(scene.tokens[1])" } }
      }
    ],
  ]

  /// A payload of exactly so many bytes.
  static func payload(_ bytes: Int) -> String {
    let frame = #"{"aps":{"alert":""}}"#
    let text = String(repeating: "x", count: bytes - frame.utf8.count)
    return #"{"aps":{"alert":"\#(text)"}}"#
  }
}
