import DeviceModel
import Foundation
import NIOHTTP1
import Synchronization

@testable import PhoneRuntime

/// A server, a client, and a folder for files: what nearly every test begins with.
struct Site: Sendable {
  let server: TestServer
  let client: TransferClient
  let folder: String

  /// Of the downloads and uploads, unless a test gives it another name.
  var file: String { "\(folder)/file" }

  /// Waits are short, every chunk is reported.
  static var options: TransferOptions {
    var options = TransferOptions()
    options.firstDelay = .milliseconds(1)
    options.longestDelay = .milliseconds(2)
    options.retries = 3
    options.progressInterval = .zero
    return options
  }

  /// Everything is taken down at the end, also when the test throws.
  static func with(
    _ server: TestServer, _ options: TransferOptions = Self.options,
    _ test: (Site) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "pushrelay-transfers-\(UUID())").path(percentEncoded: false)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let client = try TransferClient(options)
    try await server.start()
    let result: Result<Void, any Error>
    do {
      result = .success(try await test(Site(server: server, client: client, folder: folder)))
    } catch {
      result = .failure(error)
    }
    await server.stop()
    try FileManager.default.removeItem(atPath: folder)
    try result.get()
  }

  /// The reports of a transfer, in their order.
  func reports(_ order: TransferOrder) async -> [TransferReport] {
    let reports = Mutex<[TransferReport]>([])
    await client.perform(order) { one in reports.withLock { $0.append(one) } }
    return reports.withLock { $0 }
  }

  /// Performs a transfer until so many bytes are reported, and cancels it.
  func perform(_ order: TransferOrder, until bytes: Int64) async {
    let (reports, channel) = AsyncStream.makeStream(of: TransferReport.self)
    let task = Task {
      await client.perform(order) { channel.yield($0) }
      channel.finish()
    }
    for await report in reports where report == .progressed(bytes: bytes) { task.cancel() }
    await task.value
  }

  /// Puts a part of a download where the last attempt would have left it.
  func writePart(_ bytes: ArraySlice<UInt8>, _ tag: String, of whole: Int?, path: String = "/file")
  {
    write(Array(bytes), to: "file.part")
    PartFile(file: file).save(
      PartFile.Note(url: server.url + path, validator: tag, bytes: whole.map { Int64($0) }))
  }

  /// The last one.
  func end(_ order: TransferOrder) async -> TransferReport? { await reports(order).last }

  func download(_ path: String = "/file", resumes: Bool = true) -> TransferOrder {
    TransferOrder(url: server.url + path, resumes: resumes, file: file)
  }

  func upload(_ path: String = "/file", bytes: Int64 = 0) -> TransferOrder {
    TransferOrder(url: server.url + path, direction: .upload, file: file, bytes: bytes)
  }

  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
  }

  func contents(_ name: String = "file") -> [UInt8]? {
    FileManager.default.contents(atPath: "\(folder)/\(name)").map(Array.init)
  }

  func write(_ bytes: [UInt8], to name: String = "file") {
    _ = FileManager.default.createFile(atPath: "\(folder)/\(name)", contents: Data(bytes))
  }
}

/// Bytes among which every place can be told from its neighbours.
func sample(_ count: Int, salt: Int = 0) -> [UInt8] {
  (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) ^ salt) }
}

/// A file as a good server has it: ranges, `If-Range`, a name for its version.
struct ServedFile: Sendable {
  var content: [UInt8]
  var tag = "\"one\""

  func answer(to request: TestServer.Request) -> TestServer.Answer {
    var answer = TestServer.Answer(fields: [("ETag", tag)], body: content)
    guard let offset = request.offset, request.fields.first(name: "If-Range") == tag else {
      return answer
    }
    guard offset < content.count else {
      return TestServer.Answer(
        status: "416 Range Not Satisfiable", fields: [("Content-Range", "bytes */\(content.count)")]
      )
    }
    answer.status = "206 Partial Content"
    answer.fields.append(
      ("Content-Range", "bytes \(offset)-\(content.count - 1)/\(content.count)"))
    answer.body = Array(content[offset...])
    return answer
  }
}

extension TransferReport {
  /// Why it failed; empty if it did not.
  var reason: String { if case .failed(let why) = self { why } else { "" } }
}
