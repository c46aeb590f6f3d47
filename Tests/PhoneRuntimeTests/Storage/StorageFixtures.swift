import Foundation
import Primitives

@testable import DeviceModel
@testable import PhoneRuntime

/// A directory of its own for a test, gone with it.
final class StorageScratch: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "phone-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// A phone's directory in it, not there yet.
  var phone: String { path + "/phone" }

  func bytes(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(filePath: phone + "/" + name)))
  }

  func write(_ bytes: [UInt8], to name: String) throws {
    try Data(bytes).write(to: URL(filePath: phone + "/" + name))
  }

  func mode(_ name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: phone + name)[.posixPermissions] as? Int
  }
}

/// An archive with a text that must not be found in a sealed file.
func sampleArchive(row: Int64 = 5) -> StateArchive {
  var graph = StateGraph()
  let window = graph.add("Window", identifier: "window")
  let list = graph.add("List", identifier: "list", parent: window, restorationClass: "Maker")
  graph.set(list, "row", .number(row))
  graph.set(list, "draft", .text("very private words"))
  graph.set(list, "owner", .list([.reference(window), .flag(true), .data([1, 2, 3])]))
  graph.top = list
  return StateArchive(
    of: graph, appVersion: "1.0", systemVersion: "7.0",
    at: Instant(milliseconds: 1_795_219_200_000))
}

/// A phone with something to remember.
func samplePhone() -> Phone {
  var phone = Phone(seed: 3, at: Instant(milliseconds: 1_795_219_200_000))
  var effects: [PhoneEffect] = []
  var script = AppScript()
  script.onPush.work = .seconds(1)
  let app = AppDefinition(
    name: "com.example.mail", modes: [.fetch, .remoteNotification], fetchInterval: .minimum,
    script: script)
  phone.handle(.appInstalled(app), at: phone.now, into: &effects)
  let push = RemotePush(id: PushID(1), app: AppID(0), alert: "hello", wakesApp: true)
  phone.handle(.pushReceived(push), at: phone.now, into: &effects)
  phone.handle(.tick, at: phone.now + .minutes(1), into: &effects)
  return phone
}
