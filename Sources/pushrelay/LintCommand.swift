import AdminAPI
import ArgumentParser
import Primitives
import RelayCore

struct LintCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lint",
    abstract: "Say what Apple would refuse about a push, what is odd, and whether it is silent.",
    discussion: """
      Examples:

        pushrelay lint payloads/silent.json
        pushrelay lint payload.json --header apns-push-type=background \\
          --header apns-priority=10
        jq .payload request.json | pushrelay lint -

      Needs no relay. The exit status is 1 when the push would be refused. What is odd is told and \
      not judged: APNs takes it, and often shows nothing or wakes nobody.
      """)

  @Argument(help: "A file with the payload; - is standard input.")
  var file: String
  @Option(help: "A header of the provider API, as name=value; may be repeated.")
  var header: [String] = []
  @Option(help: "The topic.")
  var topic = "com.example.app"
  @Flag(help: "Refuse what Apple calls an error but seems to accept, too.")
  var strict = false
  @Flag(help: "Print the verdict as JSON.")
  var json = false

  private struct Verdict: Encodable {
    var kind: String?
    /// When it goes, in words.
    var when: String?
    var status = 200
    var reason: String?
    var message: String?
    var warnings: [PushVerdict.Warning] = []
  }

  func validate() throws {
    guard header.allSatisfy({ $0.contains("=") }) else {
      throw ValidationError("a header is name=value")
    }
  }

  func run() async throws {
    let verdict = verdict(on: try StandardInput.payload(file, "a file with a payload"))
    if json {
      try Console.say(json: verdict)
    } else {
      if let kind = verdict.kind, let when = verdict.when { Console.say("\(kind)  \(when)") }
      for warning in verdict.warnings { Console.say("note: \(warning.text)") }
    }
    if let reason = verdict.reason {
      throw CommandError("\(verdict.status) \(reason): \(verdict.message ?? "")")
    }
  }

  private static func when(_ notification: RelayCore.Notification) -> String {
    switch (notification.notificationClass, notification.priority) {
    case (.silent, .powerFirst):
      "throttled, and waits while the screen is off: the newest one goes with something else"
    case (.silent, _):
      "throttled: the newest one waits until the budget has refilled or something else passes"
    case (.visible, .immediate): "sent at once while the device is connected"
    case (.visible, .powerAware):
      "sent at once while the device is connected, but for Low Power Mode with the screen off"
    case (.visible, .powerFirst):
      "waits while the screen is off, for something else that wakes the device"
    }
  }

  private func verdict(on payload: [UInt8]) -> Verdict {
    var verdict = Verdict()
    var warnings = CaseSet<PayloadWarning>()
    do throws(Rejection) {
      let notification = try notification(payload, &warnings)
      verdict.kind = notification.notificationClass.name
      verdict.when = Self.when(notification)
    } catch {
      verdict.status = Int(error.status)
      verdict.reason = error.reason
      var place = ""
      if error == .badRequestPayload {
        do throws(PayloadError) {
          _ = try scanPayload(payload.span)
        } catch {
          if let (line, column) = error.place(in: payload) {
            place = "line \(line), column \(column): "
          }
        }
      }
      verdict.message = place + error.row.text
    }
    verdict.warnings = PushVerdict.Warning.all(warnings, try? JSONTree.read(payload))
    return verdict
  }

  /// Applies the checks of a request over the network.
  private func notification(
    _ payload: [UInt8], _ warnings: inout CaseSet<PayloadWarning>
  ) throws(Rejection) -> RelayCore.Notification {
    var draft = PushDraft()
    draft.payload = payload
    draft.headers = header.map { text in
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (parts[0].lowercased(), String(parts.last ?? ""))
    }
    let named = draft.headers.last { $0.name == FieldName.apnsTopic.wireName }?.value
    return try draft.notification(
      token: String(repeating: "0", count: 64), topic: named ?? topic,
      uniqueID: UniqueID(high: 0, low: 0), isStrict: strict, at: WallClock.now, &warnings)
  }
}
