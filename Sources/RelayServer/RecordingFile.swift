import Dispatch
import FoundationEssentials
import Logging
import Primitives
import RelayCore
import RelayRecording
import Synchronization
import SystemPackage

/// The file that a relay records to. Loops hand it whole frames and never wait: one queue writes
/// them. When the disk cannot follow, or the file is full, the recording ends and the relay goes
/// on.
package final class RecordingFile: Sendable {
  private struct State {
    /// Given to the queue and not yet written.
    var queuedBytes = 0
    var takenBytes = 0
    var ending: RecordingEnd?
  }

  /// What may wait to be written, of all loops.
  static let queuedBytes = 64 * 1_048_576

  let redactor: Redactor
  private let limit: Int
  private let path: String
  private let descriptor: FileDescriptor
  private let logger: Logger
  private let state: Mutex<State>
  private let queue = DispatchQueue(label: "pushrelay.recording")

  /// Begins a file, readable by its owner only. One that is there, as after a crash, is kept beside
  /// it as `FILE.previous`.
  ///
  /// - Parameter limit: in bytes.
  init(
    path: String, limit: Int, redactor: Redactor, shardCount: Int, logger: Logger
  ) throws(RelayConfiguration.ReadingError) {
    self.path = path
    self.limit = limit
    self.redactor = redactor
    self.logger = logger
    let head = RecordingHeader(
      build: "pushrelay", payloads: redactor.payloads, shardCount: UInt16(shardCount),
      began: RelayClock.wall
    ).fileHead
    state = Mutex(State(takenBytes: head.count))
    do {
      if FileManager.default.fileExists(atPath: path) {
        try? FileManager.default.removeItem(atPath: path + ".previous")
        try FileManager.default.moveItem(atPath: path, toPath: path + ".previous")
      }
      descriptor = try FileDescriptor.open(
        FilePath(path), .writeOnly, options: [.create, .truncate, .closeOnExec],
        permissions: [.ownerReadWrite])
      try descriptor.writeAll(head)
    } catch {
      throw RelayConfiguration.ReadingError(
        key: "record", description: "record: \(path) cannot be written (\(error))")
    }
    logger.notice(
      "recording",
      metadata: ["file": "\(path)", "payloads": "\(redactor.payloads)", "limitBytes": "\(limit)"])
  }

  private enum Verdict {
    case write
    case end(RecordingEnd)
    case over
  }

  /// Takes a frame; false when the recording has ended.
  func append(_ frame: [UInt8]) -> Bool {
    let verdict: Verdict = state.withLock { state in
      guard state.ending == nil else { return .over }
      if state.takenBytes + frame.count > limit {
        state.ending = .limit
      } else if state.queuedBytes + frame.count > Self.queuedBytes {
        state.ending = .tooSlow
      }
      if let ending = state.ending { return .end(ending) }
      state.takenBytes += frame.count
      state.queuedBytes += frame.count
      return .write
    }
    switch verdict {
    case .write:
      queue.async { self.write(frame) }
      return true
    case .end(let ending):
      tell(ending)
      queue.async { self.finish(ending) }
      return false
    case .over: return false
    }
  }

  /// Ends the recording, if it has not ended, and returns when all is written.
  func close() async {
    let wasOpen = state.withLock { state in
      defer { state.ending = state.ending ?? .stopped }
      return state.ending == nil
    }
    await withCheckedContinuation { continuation in
      queue.async {
        if wasOpen { self.finish(.stopped) }
        continuation.resume()
      }
    }
    if wasOpen { tell(.stopped) }
  }

  private func write(_ frame: [UInt8]) {
    // Closed: its number may be another file's by now.
    guard state.withLock({ $0.ending != .failed }) else { return }
    do {
      try descriptor.writeAll(frame)
      state.withLock { $0.queuedBytes -= frame.count }
    } catch {
      let isNews = state.withLock { state in
        defer { state.ending = .failed }
        return state.ending != .failed
      }
      guard isNews else { return }
      logger.error(
        "the recording ends: it cannot be written",
        metadata: ["file": "\(path)", "reason": "\(error)"])
      try? descriptor.close()
    }
  }

  private func finish(_ ending: RecordingEnd) {
    guard state.withLock({ $0.ending != .failed }) else { return }
    _ = try? descriptor.writeAll(ending.frame)
    try? descriptor.close()
  }

  private func tell(_ ending: RecordingEnd) {
    let bytes = state.withLock { $0.takenBytes }
    let metadata: Logger.Metadata = [
      "file": "\(path)", "bytes": "\(bytes)", "reason": "\(ending.text)",
    ]
    switch ending {
    case .stopped: logger.notice("the recording ends", metadata: metadata)
    case .limit: logger.warning("the recording ends", metadata: metadata)
    case .tooSlow, .failed: logger.error("the recording ends", metadata: metadata)
    }
  }
}

extension Redactor {
  /// With the key of this state directory, made if there is none: so that two recordings have the
  /// same pseudonyms. Without a directory the key lasts as long as the process.
  init(state: String, payloads: RecordedPayloads) {
    let path = state + "/recording.key"
    var bytes = (try? CredentialFiles.read(path)) ?? []
    if bytes.count != 16 {
      bytes = (0..<16).map { _ in UInt8.random(in: 0...255) }
      try? CredentialFiles.write(bytes, to: path, mode: CredentialFiles.privateMode)
    }
    var reader = ByteReader(bytes)
    let key = ((try? reader.word()) ?? 0, (try? reader.word()) ?? 0)
    self.init(key: key, payloads: payloads)
  }
}

/// What one loop writes down.
struct ShardRecorder {
  private var writer: RecordingWriter
  private let file: RecordingFile

  init(_ start: ShardStart, to file: RecordingFile) {
    writer = RecordingWriter(shard: start.shard, redactor: file.redactor)
    self.file = file
    _ = file.append(writer.frame(of: start))
  }

  mutating func note(_ event: Event, at moment: Instant, _ effects: ArraySlice<Effect>) {
    writer.note(event, at: moment, effects)
  }

  /// The batch is over; false when the recording has ended.
  mutating func endBatch() -> Bool { writer.endBatch() ? flush() : true }

  /// Hands over what there is; false when the recording has ended.
  mutating func flush() -> Bool { writer.takeChunk().map { file.append($0) } ?? true }
}
