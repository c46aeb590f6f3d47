import AdminAPI
import ArgumentParser
import NIOHTTP1
import RelayCore

struct PushCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "push",
    abstract: "Push by a running relay's admin socket: no key needed, and what is odd is said.",
    discussion: """
      Examples:

        pushrelay push --to DEVICE --payload '{"aps":{"content-available":1}}' \\
          --header apns-push-type=background --header apns-priority=5
        pushrelay push payloads/alert.json --to DEVICE --topic com.example.app

      --to is a device's id ('pushrelay devices' lists them), a device token, or the NAME of a \
      'pushrelay device' of this state directory. 'pushrelay send' goes the whole way of a \
      provider, over HTTP/2 with a signed token.
      """)

  @Argument(help: "A file with the payload, or - for standard input.")
  var file: String?
  @Option(help: "The payload itself.")
  var payload: String?
  @Option(help: "The device's id, a device token, or the NAME of a 'pushrelay device'.")
  var to: String
  @Option(help: "The topic, if the device has several apps.")
  var topic: String?
  @Option(help: "A header of the provider API, as name=value; may be repeated.")
  var header: [String] = []
  @OptionGroup var common: AdminOptions

  func validate() throws {
    guard (file == nil) != (payload == nil) else {
      throw ValidationError("give either a file with the payload or --payload")
    }
    let names = header.map { $0.prefix { $0 != "=" }.lowercased() }
    guard header.allSatisfy({ $0.contains("=") && $0.first != "=" }) else {
      throw ValidationError("a header is name=value")
    }
    guard Set(names).count == names.count else {
      throw ValidationError("a header is there twice, which APNs refuses")
    }
  }

  func run() async throws {
    let bytes =
      try payload.map { Array($0.utf8) }
      ?? StandardInput.payload(file ?? "-", "a file with a payload")
    guard (try? JSONTree.read(bytes)) != nil, let text = String(validating: bytes, as: UTF8.self)
    else {
      throw CommandError(
        "the payload is no JSON object in UTF-8, and what the admin API takes is one; "
          + "'pushrelay send' sends anything")
    }
    guard let verdict = try await common.push("/v1/push", body: Array(try body(text).utf8)) else {
      return
    }
    for warning in verdict.warnings { Console.log("note: \(warning.text)") }
    Console.say(verdict.uniqueId ?? "")
  }

  /// The payload is inserted unchanged.
  private func body(_ payload: String) throws -> String {
    var headers: [String: String] = [:]
    for header in header {
      let parts = header.split(separator: "=", maxSplits: 1).map(String.init)
      headers[parts[0]] = parts.count > 1 ? parts[1] : ""
    }
    func json(_ value: some Encodable) throws -> String {
      String(decoding: try JSONText.bytes(value), as: UTF8.self)
    }
    let known = topic.map { #","topic":"# + ((try? json($0)) ?? "") } ?? ""
    // A name that this machine plays stands for its id.
    let device = try DeviceFile.load(to, state: common.state)?.device ?? to
    return #"{"to":\#(try json(device))\#(known),"headers":\#(try json(headers)),"#
      + #""payload":\#(payload)}"#
  }
}
