import AdminAPI
import FoundationEssentials
import Primitives

/// `pushrelay log --follow`: what happens in a relay, a line each, until the relay ends.
struct LogFollower {
  let state: String
  let isJSON: Bool
  /// Whom and what it is about; nil for everything.
  var device: String?
  var topic: String?
  var id: String?

  /// One line of `GET /v1/events`, as far as people read it.
  private struct Event: Decodable {
    struct Facts: Decodable {
      var time: Int64?
      var uniqueId: String?
      var id: String?
      var topic: String?
      var kind: String?
      var text: String?
      var device: String?
      var phone: String?
      var what: String?
      var condition: DeviceEvent.Condition?
      var policy: String?
      var name: String?
      var at: String?
      var dropped: Int?
      var reason: String?
    }

    var event: String
    var data: Facts
  }

  func run() async throws {
    // Again when the relay has gone back to a checkpoint, which ends every reader's events.
    var farewell = try await follow()
    while farewell == "rewound" {
      Console.log("the relay went back to a checkpoint: what is told from here on is after that")
      farewell = try await follow()
    }
    if farewell != Self.unread { Console.log("the relay has ended") }
  }

  /// The output has no reader any more: there is no reason to go on.
  private static let unread = "unread"

  /// Follows until the relay says why it ends, which is returned.
  private func follow() async throws -> String {
    var farewell: String?
    var isFollowing = false
    do {
      let path = "/v1/events" + Query([("device", device)]).text
      try await ControlClient(state: state).follow(path) { line in
        // The first comes at once, and the feed is open before it.
        if !isFollowing { Console.log("following; Ctrl-C ends it") }
        isFollowing = true
        guard let event = try? JSONDecoder().decode(Event.self, from: Data(line)) else {
          throw CommandError("the relay is of another version: its events are not understood")
        }
        if event.event == "bye" { farewell = event.data.reason }
        if isWanted(event),
          !Console.tell(isJSON ? String(decoding: line, as: UTF8.self) : text(event))
        {
          farewell = Self.unread
        }
        return farewell == nil
      }
    } catch let problem where !(problem is CommandError) {
      farewell = nil
    }
    guard let farewell else { throw CommandError("the relay has ended, and did not say why") }
    return farewell
  }

  private func isWanted(_ event: Event) -> Bool {
    // The page's numbers, up to four times a second.
    guard event.event != "stats", event.event != "clock" else { return false }
    guard event.event != "bye" else { return isJSON }
    guard event.event != "gap" else { return true }
    let data = event.data
    let ids = [data.uniqueId, data.id]
    return (topic == nil || data.topic == topic) && (id == nil || ids.contains(id?.lowercased()))
  }

  private func text(_ event: Event) -> String {
    let data = event.data
    let facts: [String?] =
      switch event.event {
      case "life": [data.phone, data.topic, data.kind, data.uniqueId, data.text]
      case "device":
        [
          "device", data.phone ?? data.device, data.what,
          data.condition.map(LogCommand.text) ?? data.topic ?? data.policy,
        ]
      case "fault": ["fault", data.name, data.at, data.what]
      case "gap":
        // Of another node's the number may be unknown.
        [(data.dropped ?? 0) > 0 ? "lost events: \(data.dropped ?? 0)" : "lost events of a node"]
      default: [event.event, data.policy, data.what]
      }
    let moment = data.time.map { Instant(milliseconds: $0).iso8601 }
    return ([moment] + facts).compactMap(\.self).joined(separator: "  ")
  }
}
