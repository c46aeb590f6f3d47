import DeviceModel
import Foundation
import PhoneRuntime
import Primitives
import Testing

/// What `pushrelay archive print` says of a phone's files.
@Suite("Archives", .timeLimit(.minutes(2))) struct ArchiveTests {
  private let app = "com.example.mail"

  /// A phone's directory with one archive; answers the archive.
  private func makePhone(_ directory: String, passcode: String) throws -> StateArchive {
    var graph = StateGraph()
    let window = graph.add("Window", identifier: "window")
    let list = graph.add("List", identifier: "list", parent: window, restorationClass: "Maker")
    graph.set(list, "row", .number(12))
    graph.set(list, "window", .reference(window))
    graph.set(list, "parts", .list([.text("a \"b\""), .flag(true), .data([1, 2])]))
    graph.apply(.show(["window", "list"]))
    let archive = StateArchive(
      of: graph, appVersion: "1.2", systemVersion: "7.0",
      at: Instant(milliseconds: 1_795_219_200_000))
    var storage = try PhoneStorage(directory: directory)
    try storage.unlock(passcode: passcode)
    try storage.save(archive, of: app)
    return archive
  }

  private func print(_ arguments: String...) async throws -> Outcome {
    try await Program.run(Program.pushrelay, ["archive", "print"] + arguments)
  }

  @Test func aSealedArchiveIsPrinted() async throws {
    let scratch = try Scratch()
    let archive = try makePhone(scratch.path + "/phone", passcode: "0000")
    let file = scratch.path + "/phone/archives/\(app).archive"
    let text = try await print(file).checked("archive print")
    #expect(text == "app: \(app)\n\(archive.description)\n")
    // A plain one says everything but whose it is.
    let plain = scratch.path + "/plain"
    try JSONEncoder().encode(archive).write(to: URL(filePath: plain))
    #expect(try await print(plain).checked("archive print") == archive.description + "\n")
    struct Printed: Decodable {
      var app: String
      var archive: StateArchive
    }
    let json = try await print(file, "--json").checked("archive print --json")
    let printed = try JSONDecoder().decode(Printed.self, from: Data(json.utf8))
    #expect(printed.app == app && printed.archive == archive)
  }

  @Test func aCopyIsReadWithItsPhonesKeys() async throws {
    let scratch = try Scratch()
    let archive = try makePhone(scratch.path + "/phone", passcode: "1234")
    let copy = scratch.path + "/copy.archive"
    try FileManager.default.copyItem(
      atPath: scratch.path + "/phone/archives/\(app).archive", toPath: copy)
    let text = try await print(
      copy, "--keybag", scratch.path + "/phone/keybag.json", "--passcode", "1234"
    ).checked("archive print")
    #expect(text == "app: \(app)\n\(archive.description)\n")
  }

  @Test func errorsAreOneLineThatSaysWhatToDo() async throws {
    let scratch = try Scratch()
    _ = try makePhone(scratch.path + "/phone", passcode: "1234")
    let file = scratch.path + "/phone/archives/\(app).archive"
    let copy = scratch.path + "/copy.archive"
    try FileManager.default.copyItem(atPath: file, toPath: copy)
    let damaged = scratch.path + "/phone/archives/damaged.archive"
    try Data(contentsOf: URL(filePath: file)).dropLast().write(to: URL(filePath: damaged))
    for (arguments, advice) in [
      ([file], "give the one"), ([copy], "name the"), ([scratch.path + "/no"], "give the"),
      ([damaged, "--passcode", "1234"], "remove it"), ([scratch.path], "check that"),
    ] {
      let outcome = try await Program.run(Program.pushrelay, ["archive", "print"] + arguments)
      #expect(!outcome.succeeded && outcome.output.isEmpty, "\(arguments)")
      let lines = outcome.errors.split(separator: "\n")
      #expect(lines.count == 1 && lines[0].contains(advice), "\(outcome.errors)")
      #expect(lines[0].hasPrefix("Error: "), "\(outcome.errors)")
    }
  }
}
