import Foundation
import Testing

/// One row of `payloads/manifest.json`.
private struct Row: Decodable {
  struct Expectation: Decodable {
    var status: Int
    var reason: String?
  }

  var file: String
  var pushType: String?
  var priority: Int?
  var topic: String
  var collapseID: String?
  var expiration: String?
  var expect: Expectation

  /// `apns-expiration`: `now+60` and `now-60` count from now, everything else goes as it is.
  var expirationField: String? {
    guard let expiration, expiration.hasPrefix("now"), let offset = Int(expiration.dropFirst(3))
    else { return expiration }
    return String(Int(Date().timeIntervalSince1970) + offset)
  }
}

private struct Manifest: Decodable {
  struct Group: Decodable { var payloads: [Row] }
  var groups: [Group]
}

@Suite("Payload files, posted", .timeLimit(.minutes(2))) struct PayloadTests {
  @Test func everyRowOfTheManifestIsAnsweredAsItSays() async throws {
    let folder = Program.root.appending(path: "payloads")
    let data = try Data(contentsOf: folder.appending(path: "manifest.json"))
    let rows = try JSONDecoder().decode(Manifest.self, from: data).groups.flatMap(\.payloads)
    #expect(rows.count > 50)
    try await RelayProcess.run { relay in
      let phone = try await Phone(on: relay)
      let topics = Array(Set(rows.map(\.topic))).sorted()
      let tokens = Dictionary(
        uniqueKeysWithValues: zip(topics, try await phone.register(topics)))
      let providerToken = try await relay.providerToken()
      let pushes = try rows.map { row in
        try Push(to: #require(tokens[row.topic]), providerToken).with { push in
          push.topic = row.topic
          push.file = folder.appending(path: row.file).path(percentEncoded: false)
          push.fields = [
            row.pushType.map { "apns-push-type: \($0)" },
            row.priority.map { "apns-priority: \($0)" },
            row.collapseID.map { "apns-collapse-id: \($0)" },
            row.expirationField.map { "apns-expiration: \($0)" },
          ].compactMap(\.self)
        }
      }
      for (row, answer) in zip(rows, try await relay.send(pushes)) {
        #expect(answer.status == row.expect.status, "\(row): \(answer)")
        #expect(answer.reason == row.expect.reason, "\(row): \(answer)")
      }
    }
  }
}
