import NIOCore
import Primitives
package import RelayCore
import RelayStore
import Synchronization

/// Devices' names for people, given at enrolment. Beside the shards, which decide nothing by it,
/// so that a device without a name costs nothing; on disk with the device (`Schema`), or in a
/// cluster's bucket, which every node follows.
package final class DeviceNames: Sendable {
  private let names = Mutex<[DeviceID: String]>([:])

  /// An id or a token is no name: it would stand for another device. Nor is a text that does
  /// something to a terminal, or a step of a path.
  package static func isUsable(_ name: String) -> Bool {
    Limits.deviceNameBytes.contains(name.utf8.count) && DeviceID(name) == nil
      && DeviceToken(hexadecimal: name) == nil && name == name.inOneLine
      && ![".", ".."].contains(name)
  }

  /// For refusals.
  package static let words =
    "a name has 1 to 64 bytes without control characters, and is no UUID, token, . or .."

  package subscript(device: DeviceID) -> String? { names.withLock { $0[device] } }

  package func devices(named name: String) -> [DeviceID] {
    names.withLock { names in names.filter { $0.value == name }.map(\.key) }
  }

  func devices(like text: String) -> Set<DeviceID> {
    names.withLock { names in
      Set(names.filter { $0.value.lowercased().contains(text) }.map(\.key))
    }
  }

  /// False when there are too many.
  func add(_ name: String, to device: DeviceID) -> Bool {
    names.withLock { names in
      guard names.count < Limits.deviceNames else { return false }
      names[device] = name
      return true
    }
  }

  func remove(_ device: DeviceID) { names.withLock { $0[device] = nil } }

  /// Of all devices, as a checkpoint keeps them.
  var all: [DeviceID: String] {
    get { names.withLock { $0 } }
    set { names.withLock { $0 = newValue } }
  }
}

extension ServerSettings {
  /// Returns whether the name is kept, for as long as the device is.
  func keep(_ name: String, of device: DeviceID) async -> Bool {
    guard names.add(name, to: device) else { return false }
    guard let journal = storage.journal else { return true }
    do {
      try await journal.setName(of: device, name)
      return true
    } catch {
      names.remove(device)
      return false
    }
  }
}

extension ShardRunner {
  /// Calls `done` with the name if it is kept.
  func keep(_ name: String, of device: DeviceID, _ done: @escaping (String?) -> Void) {
    let (settings, bound) = (settings, NIOLoopBound((self, done), eventLoop: eventLoop))
    Task {
      let kept = await settings.keep(name, of: device) ? name : nil
      bound.eventLoop.execute {
        let (runner, done) = bound.value
        done(kept)
        runner.finishBatch()
      }
    }
  }
}

extension Relay {
  package var names: DeviceNames { settings.names }

  /// On disk it goes with its device; other nodes have to be told.
  func forgetName(of device: DeviceID) async {
    guard names[device] != nil else { return }
    names.remove(device)
    try? await inbox.journal?.setName(of: device, nil)
  }
}
