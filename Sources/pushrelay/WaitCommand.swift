import AdminAPI
import ArgumentParser
import Cockpit
import NIOHTTP1
import Primitives
import RelayCore
import RelayRequests

struct WaitCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "wait",
    abstract: "Wait until something has happened to a push; say why not.",
    discussion: """
      Examples:

        pushrelay wait delivered --push 4deb1c52-0d6e-8b34-8000-00000000002a
        pushrelay wait sent --push ID --via refill --within 1h --advance
        pushrelay wait delivered --topic com.example.app --count 3 --timeout 30s
        pushrelay wait discarded --push ID --never --timeout 0s
        pushrelay wait received --payload aps.badge=3 --header apns-priority=5
        pushrelay wait received --payload 'aps.alert.title~hello'

      What has happened before counts. The exit status is 1 when it has not happened, and standard \
      error says why: until when the push is held and by what, or that it cannot come any more. \
      With --advance a virtual clock is moved from happening to happening, so nobody waits.
      """)

  @Argument(help: "\(WaitWish.words).")
  var what: String
  @Option(help: "The push: its apns-id or apns-unique-id.")
  var push: String?
  @Option(help: "The device, by its name or id.")
  var device: String?
  @Option(help: "The topic.")
  var topic: String?
  @Option(help: "visible or silent.")
  var kind: String?
  @Option(help: "How it was sent: direct, piggyback, connect, refill, hold or resend.")
  var via: String?
  @Option(help: "A condition on the payload, as of 'requests'; may be repeated.")
  var payload: [String] = []
  @Option(help: "A header as it was sent, as name=value; may be repeated.")
  var header: [String] = []
  @Option(help: "How often.")
  var count = 1
  @Flag(help: "It must not happen until the time is over.")
  var never = false
  @Option(help: "How much of the relay's time may pass, such as 1h.")
  var within: String?
  @Flag(help: "Move a virtual clock meanwhile; needs --within.")
  var advance = false
  @Option(help: "How long to wait by the machine's time; 0s looks once.")
  var timeout = "10s"
  @OptionGroup var common: AdminOptions

  func validate() throws { _ = try Self.members(header) }

  /// The relay's answers that it is not so; whatever else fails has no answer.
  private static let verdicts: Set<String?> = ["NotYet", "NeverAgain", "Happened"]

  func run() async throws {
    do {
      try await wait()
    } catch let error as CommandError where !Self.verdicts.contains(error.reason) {
      Console.log("Error: \(error)")
      throw ExitCode(2)
    }
  }

  private func wait() async throws {
    let match: JSONObject = [
      "headers": try Self.members(header),
      "payload": payload,
    ]
    let expect: JSONObject = [
      "what": what, "push": push, "device": device, "topic": topic, "kind": kind, "via": via,
      "count": count, "never": never, "match": payload.isEmpty && header.isEmpty ? nil : match,
    ]
    let body: JSONObject = [
      "expect": expect, "within": within, "advance": advance, "timeout": timeout,
    ]
    guard
      let met = try await common.ask(
        WaitAnswer.self, .POST, "/v1/wait", body: try JSONText.bytes(body))
    else { return }
    for event in met.events.prefix(count) { Console.say("\(event.at)  \(event.text)") }
    if met.events.count > count { Console.log("and \(met.events.count - count) more") }
    let requests = met.requests ?? []
    for id in requests.prefix(count) { Console.say(await refusal(id)) }
    if requests.count > count { Console.log("and \(requests.count - count) more") }
    guard met.events.isEmpty, requests.isEmpty else { return }
    Console.say(
      never ? "it has not happened in \(met.relayTime)" : "it is so after \(met.relayTime)")
  }

  /// With the reason while the request is kept.
  private func refusal(_ id: String) async -> String {
    let kept = try? await common.ask(RequestStatus.self, .GET, "/v1/requests/\(Query.escaped(id))")
    guard let request = kept, let reason = request.reason else { return "refused  \(id)" }
    return "\(request.at)  refused: \(reason): \(request.message ?? "") (\(id))"
  }

  private static func members(_ texts: [String]) throws -> [String: JSONValue] {
    var members: [String: JSONValue] = [:]
    for text in texts {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw ValidationError("\(text) is not name=value") }
      members[String(parts[0])] = .text(String(parts[1]))
    }
    return members
  }
}
