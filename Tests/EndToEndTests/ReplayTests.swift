import Foundation
import Primitives
import RelayCore
import RelayRecording
import Testing

/// `pushrelay replay` on a recording of the core's random histories.
@Suite struct ReplayTests {
  private static let golden = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "RelayCoreTests/Golden/core.prr")

  /// The same events as another core version would have recorded them.
  private func write(coreVersion: UInt32, to path: String) throws {
    let bytes = [UInt8](try Data(contentsOf: Self.golden))
    let reader = try RecordingReader(bytes)
    var header = reader.header
    header.coreVersion = coreVersion
    try Data(header.fileHead + bytes[reader.position...]).write(to: URL(filePath: path))
  }

  @Test func anotherCoreVersionIsPlayedWhenAskedFor() async throws {
    let scratch = try Scratch()
    let file = scratch.path + "/other.prr"
    try write(coreVersion: coreVersion + 1, to: file)
    let refused = try await Program.run(Program.pushrelay, ["replay", file])
    #expect(!refused.succeeded && refused.errors.contains("core version \(coreVersion + 1)"))
    let compared = try await Program.run(Program.pushrelay, ["replay", file, "--compare"])
    #expect(compared.succeeded, "\(compared)")
    #expect(compared.output.contains("differences  none"))
  }

  /// With --compare a difference is a fact, without it a failure.
  @Test func whatDiffersIsSaidOrFails() async throws {
    let scratch = try Scratch()
    let file = scratch.path + "/differs.prr"
    let bytes = [UInt8](try Data(contentsOf: Self.golden))
    var reader = try RecordingReader(bytes)
    let start = reader.position
    guard case .start(var begin)? = try reader.next() else {
      Issue.record("the first frame is a shard's start")
      return
    }
    begin.configuration.keepAlive = .seconds(7)
    let frame = RecordingWriter(shard: 0, redactor: Redactor(key: (0, 0), payloads: .none))
      .frame(of: begin).bytes
    let changed = Array(bytes[..<start]) + frame + Array(bytes[reader.position...])
    try Data(changed).write(to: URL(filePath: file))
    let failed = try await Program.run(Program.pushrelay, ["replay", file])
    #expect(!failed.succeeded && failed.output.contains("has other effects than then"))
    let compared = try await Program.run(Program.pushrelay, ["replay", file, "--compare"])
    #expect(compared.succeeded && compared.output.contains("has other effects than then"))
  }
}
