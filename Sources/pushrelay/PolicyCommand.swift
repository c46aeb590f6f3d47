import AdminAPI
import ArgumentParser
import NIOHTTP1
import RelayCore

struct PolicyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "policy",
    abstract: "Show or change how many silent pushes go through, for all phones or for one.",
    discussion: """
      Examples:

        pushrelay policy
        pushrelay policy strict
        pushrelay policy '{"app":{"count":2,"per":"1d"}}'
        pushrelay policy unlimited --device 5bd1e995-0d6e-4b34-9000-00000000002a
        pushrelay policy default --device 5bd1e995-0d6e-4b34-9000-00000000002a

      documented is 3 at once for an app, then one every 20 minutes, and 12 at once for a phone, \
      then one every 5; strict is 1, then one an hour, and 2, then one every 30 minutes; unlimited \
      says it. In numbers of one's own a limit that is left out is none, and "burst" is as "count" \
      unless it is given. What was used stays used. A phone's own policy counts until 'default' \
      takes it back; with a journal also after a restart.
      """)

  @Argument(help: "documented, strict, unlimited, or numbers; for a phone also default.")
  var policy: String?
  @Option(help: ArgumentHelp("Of this phone alone.", valueName: "id"))
  var device: String?
  @OptionGroup var common: AdminOptions

  func validate() throws {
    guard let policy, policy != "default" || device == nil else { return }
    guard policy != "default" else {
      throw ValidationError("default is for one phone: add --device ID")
    }
    do throws(SilentPolicyError) {
      _ = try SilentPolicy(text: policy)
    } catch {
      throw ValidationError(error.description)
    }
  }

  func run() async throws {
    let path = (device.map { "/v1/devices/\(Query.escaped($0))" } ?? "/v1") + "/policy"
    let (method, body): (HTTPMethod, [UInt8]) =
      switch policy {
      case nil: (.GET, [])
      case "default": (.DELETE, [])
      case let text? where text.hasPrefix("{"): (.PUT, Array(#"{"policy":\#(text)}"#.utf8))
      case let name?: (.PUT, try JSONText.bytes(["policy": name]))
      }
    let name =
      if let device {
        try await common.ask(
          DeviceStatus.self, method, policy == nil ? "/v1/devices/\(Query.escaped(device))" : path,
          body: body
        )?.budget.policy
      } else {
        try await common.ask(PolicyStatus.self, method, path, body: body)?.policy
      }
    if let name { Console.say(name) }
  }
}
