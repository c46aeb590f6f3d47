import Foundation
import NIOCore
import NIOHTTP1
import Testing

@testable import PhoneRuntime

@Suite struct PartFileTests {
  private let url = "http://files.example/a"

  private func withPart(_ test: (PartFile) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "pushrelay-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let path = folder.appending(path: "file").path(percentEncoded: false)
    let result: Result<Void, any Error>
    do {
      result = .success(try await test(PartFile(file: path)))
    } catch {
      result = .failure(error)
    }
    try FileManager.default.removeItem(at: folder)
    try result.get()
  }

  private func write(_ count: Int, _ part: PartFile) async throws {
    var writer = try PartWriter(part.path, behind: 0)
    try await writer.append(ByteBuffer(bytes: sample(count)))
    try writer.finish()
  }

  @Test func whatIsKept() async throws {
    try await withPart { part in
      #expect(part.rest(for: url) == nil)
      try await write(10, part)
      #expect(part.rest(for: url) == nil)
      let note = PartFile.Note(url: url, validator: "\"a\"", bytes: 100)
      part.save(note)
      #expect(part.rest(for: url)?.note == note && part.rest(for: url)?.bytes == 10)
      #expect(part.rest(for: url + "b") == nil)
      part.save(nil)
      #expect(part.rest(for: url) == nil)
      part.save(note)
      try await write(0, part)
      #expect(part.rest(for: url) == nil)
      try await write(101, part)
      #expect(part.rest(for: url) == nil)
      part.discard()
      let folder = (part.file as NSString).deletingLastPathComponent
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    }
  }

  /// Whatever a damaged note says, the download starts over at worst.
  @Test(arguments: [
    "", "{", "[]", "{}", "{\"url\":1}",
    "{\"url\":\"http://files.example/a\",\"validator\":\"x\",\"bytes\":-1}",
    "{\"url\":\"http://files.example/a\",\"validator\":\"x\",\"bytes\":0}",
    "{\"url\":\"http://files.example/a\",\"validator\":\"x\",\"bytes\":1e99}",
  ])
  func damagedNotes(text: String) async throws {
    try await withPart { part in
      try await write(10, part)
      try Data(text.utf8).write(to: URL(filePath: part.path + ".json"))
      #expect(part.rest(for: url) == nil)
    }
  }

  @Test func theNoteIsPrivate() async throws {
    try await withPart { part in
      part.save(PartFile.Note(url: url, validator: "\"a\"", bytes: nil))
      try await write(1, part)
      for path in [part.path, part.path + ".json"] {
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode as? Int == 0o600, "\(path)")
      }
    }
  }

  /// Chunks of any size, some larger than a block, come out in one piece.
  @Test func chunksOfAnySize() async throws {
    try await withPart { part in
      let content = sample(1_500_000)
      var place = 0
      var size = 1
      var writer = try PartWriter(part.path, behind: 0)
      while place < content.count {
        let end = min(content.count, place + size)
        try await writer.append(ByteBuffer(bytes: content[place..<end]))
        #expect(writer.bytes == Int64(end))
        (place, size) = (end, size * 3 % 400_007 + 1)
      }
      try writer.finish()
      #expect(FileManager.default.contents(atPath: part.path).map(Array.init) == content)
      var more = try PartWriter(part.path, behind: writer.bytes)
      try await more.append(ByteBuffer(bytes: [1, 2, 3]))
      try more.finish()
      #expect(
        FileManager.default.contents(atPath: part.path).map(Array.init) == content + [1, 2, 3])
    }
  }

  @Test func versionsThatFit() throws {
    let strong = try #require(PartFile.Note(url, ["ETag": "\"a\""], bytes: nil))
    #expect(strong.allows([:]) && strong.allows(["ETag": "\"a\""]))
    #expect(!strong.allows(["ETag": "\"b\""]) && !strong.allows(["ETag": "W/\"a\""]))
    #expect(PartFile.Note(url, ["ETag": "\""], bytes: nil) == nil)
    let long = "\"" + String(repeating: "a", count: 1000) + "\""
    #expect(PartFile.Note(url, ["ETag": long], bytes: nil) == nil)
    #expect(PartFile.Note(url, ["ETag": "\"ä\""], bytes: nil) == nil)
    let dates: HTTPHeaders = ["Last-Modified": "yesterday", "Date": "today"]
    let dated = try #require(PartFile.Note(url, dates, bytes: nil))
    #expect(dated.validator == "yesterday" && dated.allows(["ETag": "\"b\""]))
  }
}

@Suite struct ContentRangeTests {
  @Test(arguments: [
    ("bytes 0-0/1", ContentRange.part(0...0, of: 1)), ("bytes 5-9/*", .part(5...9, of: nil)),
    ("Bytes 5-9/10", .part(5...9, of: 10)), ("bytes */10", .none(of: 10)),
    ("bytes */0", .none(of: 0)),
    (
      "bytes 0-9223372036854775806/9223372036854775807",
      .part(0...(Int64.max - 1), of: Int64.max)
    ),
  ])
  func read(text: String, range: ContentRange) { #expect(ContentRange(text) == range) }

  @Test(arguments: [
    "", "bytes", "bytes ", "bytes /", "bytes 0-0", "bytes -5/10", "bytes 5-/10", "bytes 5-4/10",
    "bytes 5-10/10", "bytes +5-9/10", "bytes 5-9/-1", "bytes 5--9/10", "bytes */*", "lines 0-1/2",
    "bytes 0-1/2/3", "bytes 0-1-2/3", "bytes 0-9223372036854775807/9223372036854775808",
    "bytes=0-1/2", "bytes 0 - 1/2", "bytes ٣-٥/٩",
  ])
  func refused(text: String) { #expect(ContentRange(text) == nil) }
}
