import DeviceSimulator
import FoundationEssentials
import RelayClient
import SystemPackage

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
      throw CommandError(
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

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The right to play a device of this state, or its fleet: a lock on `STATE/devices/NAME.lock` or
/// `STATE/fleet.lock`, which the kernel takes back when the process ends, however it ends. Two who
/// played one device would take its connection from each other and write the same files.
final class DeviceLock: Sendable {
  /// Closing it gives the lock back.
  private let file: FileDescriptor

  /// Takes the lock, or says who has it.
  ///
  /// - Parameter what: what is locked, for that message.
  init(_ path: String, _ what: String) throws {
    if !FileManager.default.fileExists(atPath: path) { try PrivateFile.write([], to: path) }
    guard
      let file = try? FileDescriptor.open(FilePath(path), .readWrite, options: .closeOnExec)
    else {
      throw CommandError("\(path) cannot be opened: check that this user may write it")
    }
    guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else {
      try file.close()
      let owner = PrivateFile.read(path).map { String(decoding: $0, as: UTF8.self) }
      throw CommandError(
        "\(what) is being played already, by process \(owner ?? "?"): end that one, or choose "
          + "another name or state directory")
    }
    try file.resize(to: 0)
    try file.writeAll("\(ProcessInfo.processInfo.processIdentifier)".utf8)
    self.file = file
  }

  deinit { try? file.close() }

  /// Takes the locks of all devices of a command; a fleet is one.
  static func all(of command: DeviceCommand, scenario: Scenario?) throws -> [DeviceLock] {
    let state = command.connection.files.state
    guard command.count == nil else {
      return [try DeviceLock("\(state)/fleet.lock", "the fleet of \(state)")]
    }
    return try (scenario?.phones.map(\.name) ?? command.names).map {
      try DeviceLock("\(state)/devices/\($0).lock", "the device \($0)")
    }
  }
}
