import FoundationEssentials
import RelayClient

/// What this machine knows of a device that it plays: `STATE/devices/NAME.json`, for its owner
/// only.
struct DeviceFile: Codable, Equatable {
  var device: String
  var secret: String
  /// Device tokens by topic.
  var apps: [String: String] = [:]

  init(_ identity: DeviceIdentity) {
    device = identity.device
    secret = identity.secret
  }

  var identity: DeviceIdentity { DeviceIdentity(device: device, secret: secret) }

  static func path(_ name: String, state: String) -> String { "\(state)/devices/\(name).json" }

  /// Whether a name can be a file's name.
  static func isUsable(name: String) -> Bool {
    !name.isEmpty && !name.hasPrefix(".") && name.utf8.count <= 64
      && name.utf8.allSatisfy { byte in
        byte != UInt8(ascii: "/") && byte > 0x20 && byte != 0x7F
      }
  }

  /// The device of this name; nil when there is none.
  static func load(_ name: String, state: String) throws -> DeviceFile? {
    guard isUsable(name: name) else { return nil }
    let path = path(name, state: state)
    guard let bytes = PrivateFile.read(path) else { return nil }
    do {
      return try JSONDecoder().decode(DeviceFile.self, from: Data(bytes))
    } catch {
      throw CommandProblem(
        "\(path) is not a device's file: remove it, and 'pushrelay device' makes a new one")
    }
  }

  func save(_ name: String, state: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let bytes = Array(try encoder.encode(self)) + [UInt8(ascii: "\n")]
    try PrivateFile.write(bytes, to: Self.path(name, state: state))
  }
}
