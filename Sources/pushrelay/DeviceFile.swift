import AdminAPI
import DeviceSimulator
import FoundationEssentials
import NIOHTTP1
import RelayClient
import RelayCore
import RelayStore

/// A device that this machine plays: `STATE/devices/NAME.json`, for its owner only.
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

  static func isUsable(name: String) -> Bool {
    !name.isEmpty && !name.hasPrefix(".") && name.utf8.count <= 64
      && name.utf8.allSatisfy { byte in
        byte != UInt8(ascii: "/") && byte > 0x20 && byte != 0x7F
      }
  }

  /// Reads a device; nil when there is none.
  static func load(_ name: String, state: String) throws -> DeviceFile? {
    guard isUsable(name: name) else { return nil }
    let path = path(name, state: state)
    guard let bytes = PrivateFile.read(path) else { return nil }
    do {
      return try JSONDecoder().decode(DeviceFile.self, from: Data(bytes))
    } catch {
      throw CommandError(
        "\(path) is not a device's file: remove it, and 'pushrelay device' makes a new one")
    }
  }

  /// The same, or what the relay of this state knows of the device with this name.
  static func find(_ name: String, state: String) async throws -> DeviceFile? {
    if let file = try load(name, state: state) { return file }
    let path = "/v1/devices/\(Query.escaped(name))"
    guard !name.isEmpty, DeviceToken(hexadecimal: name) == nil,
      let known = try? await ControlClient(state: state).ask(
        DeviceStatus.self, .GET, path, printing: false)
    else { return nil }
    var file = DeviceFile(DeviceIdentity(device: known.device, secret: ""))
    file.apps = Dictionary(uniqueKeysWithValues: known.apps.map { ($0.topic, $0.token) })
    return file
  }

  func save(_ name: String, state: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let bytes = Array(try encoder.encode(self)) + [UInt8(ascii: "\n")]
    try PrivateFile.write(bytes, to: Self.path(name, state: state))
  }
}

/// A lock on `STATE/devices/NAME.lock` or `STATE/fleet.lock`: two players of one device would take
/// its connection from each other and write the same files.
enum DeviceLock {
  /// Locks `what`, or throws who has it.
  static func acquire(_ path: String, _ what: String) throws -> FileLock {
    if !FileManager.default.fileExists(atPath: path) { try PrivateFile.write([], to: path) }
    do throws(FileLock.Refusal) {
      return try FileLock(path, saying: "\(ProcessInfo.processInfo.processIdentifier)")
    } catch {
      switch error {
      case .unusable:
        throw CommandError("\(path) cannot be opened: check that this user may write it")
      case .held(let owner):
        throw CommandError(
          "\(what) is being played already, by process \(owner.isEmpty ? "?" : owner): end that "
            + "one, or choose another name or state directory")
      }
    }
  }

  /// Locks all devices of a command; a fleet is one.
  static func all(of command: DeviceCommand, scenario: Scenario?) throws -> [FileLock] {
    let state = command.connection.files.state
    guard command.count == nil else {
      return [try acquire("\(state)/fleet.lock", "the fleet of \(state)")]
    }
    return try (scenario?.phones.map(\.name) ?? command.names).map {
      try acquire("\(state)/devices/\($0).lock", "the device \($0)")
    }
  }
}
