import Dispatch
import FoundationEssentials
import HTTP2
import Logging
import Primitives
import ProviderCredentials
import RelayCore
import RelayRecording
import RelaySetup
import RelayStore
import Synchronization
import SystemPackage

/// A recording in files of bounded size. Loops hand over whole frames and never wait; one queue
/// writes them. When the disk is too slow, the recording ends and the relay goes on.
///
/// ```
///   FILE:          header, starts ── chunks ─▶ half of the limit ─▶ end   (FILE.previous)
///   the next FILE: header, state of each shard ── chunks ─▶ …
/// ```
///
/// Each loop moves to the next segment at its own flush. A shard's chunks follow its start or state
/// in the same file, so each file replays on its own and the oldest can be deleted.
package final class Recording: Sendable {
  private struct Segment {
    /// Opened and closed on the queue.
    var descriptor: FileDescriptor?
    var takenBytes = 0
    /// Loops that still write to it.
    var writers: Int
  }

  private struct State {
    /// On the queue and not yet written.
    var queuedBytes = 0
    var ending: RecordingEnd?
    var current = 0
    var segments: [Int: Segment]
  }

  enum Verdict {
    case taken
    /// Taken; the loop continues in the next segment.
    case full
    /// The recording has ended.
    case over
  }

  /// For all loops.
  static let queuedBytes = 64 * 1_048_576

  let redactor: Redactor
  package let path: String
  /// Bytes of both files, besides the states at their heads.
  private let limit: Int
  private let shardCount: Int
  private let logger: Logger
  private let state: Mutex<State>
  private let queue = DispatchQueue(label: "pushrelay.recording")

  /// Creates a file for its owner only. An existing one, as after a crash, becomes `FILE.previous`.
  ///
  /// - Parameter limit: in bytes.
  init(
    path: String, limit: Int, redactor: Redactor, shardCount: Int, logger: Logger
  ) throws(RelayConfiguration.ReadingError) {
    self.path = path
    self.limit = limit
    self.redactor = redactor
    self.shardCount = shardCount
    self.logger = logger
    state = Mutex(State(segments: [0: Segment(writers: shardCount)]))
    do {
      try open(0)
    } catch {
      throw RelayConfiguration.ReadingError(
        key: "record", description: "record: \(path) cannot be written (\(error))")
    }
    logger.notice(
      "recording",
      metadata: ["file": "\(path)", "payloads": "\(redactor.payloads)", "limitBytes": "\(limit)"])
  }

  /// The name of a file after the next one has begun.
  package static func previous(_ path: String) -> String { path + ".previous" }

  // MARK: From the loops

  var segmentCount: Int { state.withLock { $0.current + 1 } }

  /// Queues a frame; nil only asks for the state of the segment.
  func append(_ frame: RecordingFrame?, to segment: Int) -> Verdict {
    let (verdict, ending) = state.withLock { state -> (Verdict, RecordingEnd?) in
      guard state.ending == nil else { return (.over, nil) }
      let count = frame?.count ?? 0
      guard state.queuedBytes + count <= Self.queuedBytes else {
        state.ending = .tooSlow
        return (.over, .tooSlow)
      }
      state.segments[segment]?.takenBytes += count
      state.queuedBytes += count
      let taken = state.segments[segment]?.takenBytes ?? 0
      return (state.current != segment || taken > limit / 2 ? .full : .taken, nil)
    }
    if let ending {
      tell(ending)
      queue.async { self.finish(ending) }
    } else if verdict != .over, let frame {
      queue.async { self.write(frame.bytes, to: segment) }
    }
    return verdict
  }

  /// Moves a loop to the next segment; the first loop to leave begins it.
  func leave(_ segment: Int) -> Int {
    let (next, isNew, isLast) = state.withLock { state in
      state.segments[segment]?.writers -= 1
      let isNew = state.current == segment
      if isNew {
        state.current += 1
        state.segments[state.current] = Segment(writers: shardCount)
      }
      return (state.current, isNew, state.segments[segment]?.writers == 0)
    }
    if isNew { queue.async { self.openNext(next) } }
    if isLast { queue.async { self.close(segment, .rotated) } }
    return next
  }

  /// Writes a shard's state at the head of a segment. A shard is a value: it is encoded here while
  /// the loop goes on.
  func begin(_ segment: Int, _ number: UInt16, _ shard: Shard) {
    queue.async { [redactor] in
      let frame = RecordedState(number, shard).frame(redactor)
      // Not counted: a state above the limit would begin a new file with every chunk.
      self.state.withLock { $0.queuedBytes += frame.count }
      self.write(frame, to: segment)
    }
  }

  var current: Int { state.withLock { $0.current } }

  /// Ends the recording, unless it has ended, and returns when all is written.
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

  /// Returns when everything handed over earlier is in the file.
  func written() async {
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
  }

  /// nil while it goes on.
  var ending: RecordingEnd? { state.withLock { $0.ending } }

  // MARK: On the queue

  private func open(_ segment: Int) throws {
    for file in [path, Self.previous(path)] { try Self.requireRecording(file) }
    if FileManager.default.fileExists(atPath: path) {
      try? FileManager.default.removeItem(atPath: Self.previous(path))
      try FileManager.default.moveItem(atPath: path, toPath: Self.previous(path))
    }
    let descriptor = try FileDescriptor.open(
      FilePath(path), .writeOnly, options: [.create, .truncate, .closeOnExec],
      permissions: [.ownerReadWrite])
    let head = RecordingHeader(
      build: "pushrelay", payloads: redactor.payloads, shardCount: UInt16(shardCount),
      began: RelayClock.wall
    ).fileHead
    try descriptor.writeAll(head)
    state.withLock { state in
      state.segments[segment]?.descriptor = descriptor
      state.segments[segment]?.takenBytes += head.count
    }
  }

  /// Throws if something else than a recording is there: a folder, a key or a journal that was
  /// named by mistake stays as it is. An empty file may be one that had just begun.
  private static func requireRecording(_ path: String) throws {
    guard FileManager.default.fileExists(atPath: path) else { return }
    let magic = RecordingFormat.magic
    guard try FilePath(path).stat().type == .regular,
      let head = SystemResources.readToEnd(path, limitBytes: magic.count),
      head.isEmpty || head.starts(with: magic.dropLast())
    else { throw StoreError.exists(path: path) }
  }

  private func openNext(_ segment: Int) {
    do {
      try open(segment)
    } catch {
      fail(error)
    }
  }

  private func write(_ frame: [UInt8], to segment: Int) {
    let descriptor = state.withLock { state in
      state.queuedBytes -= frame.count
      return state.segments[segment]?.descriptor
    }
    guard let descriptor else { return }
    do {
      try descriptor.writeAll(frame)
    } catch {
      fail(error)
    }
  }

  private func close(_ segment: Int, _ ending: RecordingEnd?) {
    // Taken out, so that it is closed once: its number may be another file's later.
    let removed = state.withLock { $0.segments.removeValue(forKey: segment) }
    guard let descriptor = removed?.descriptor else { return }
    if let ending { _ = try? descriptor.writeAll(ending.frame) }
    try? descriptor.close()
  }

  private func finish(_ ending: RecordingEnd) {
    let (segments, current) = state.withLock { (Array($0.segments.keys), $0.current) }
    for segment in segments { close(segment, segment == current ? ending : .rotated) }
  }

  private func fail(_ error: any Error) {
    let isNews = state.withLock { state in
      defer { state.ending = .failed }
      return state.ending != .failed
    }
    guard isNews else { return }
    logger.error(
      "the recording ends: it cannot be written",
      metadata: ["file": "\(path)", "reason": "\(error)"])
    for segment in state.withLock({ Array($0.segments.keys) }) { close(segment, nil) }
  }

  private func tell(_ ending: RecordingEnd) {
    let metadata: Logger.Metadata = ["file": "\(path)", "reason": "\(ending.text)"]
    switch ending {
    case .stopped, .rotated: logger.notice("the recording ends", metadata: metadata)
    case .tooSlow, .failed: logger.error("the recording ends", metadata: metadata)
    }
  }
}

extension Redactor {
  /// Uses the key of this state directory, so that all recordings have the same pseudonyms; makes
  /// one if there is none. A key that cannot be saved lasts as long as the process.
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

struct ShardRecorder {
  private var writer: RecordingWriter
  private let recording: Recording
  private var segment: Int

  /// From the shard's beginning.
  init(_ start: ShardStart, to recording: Recording) {
    writer = RecordingWriter(shard: start.shard, redactor: recording.redactor)
    self.recording = recording
    segment = recording.current
    _ = recording.append(writer.frame(of: start), to: segment)
  }

  /// From now on.
  init(_ number: UInt16, _ shard: Shard, to recording: Recording) {
    writer = RecordingWriter(shard: number, redactor: recording.redactor)
    self.recording = recording
    segment = recording.current
    recording.begin(segment, number, shard)
  }

  /// - Parameter effects: not changed; `inout`, since a value that is only read would be copied.
  @inline(__always)
  mutating func record(
    _ event: Event, at moment: Instant, _ effects: inout [Effect], from first: Int
  ) {
    writer.record(event, at: moment, effects.span.extracting(first...))
  }

  /// Ends a batch; false when the recording has ended.
  ///
  /// - Parameter shard: not changed, here and below.
  mutating func endBatch(_ shard: inout Shard) -> Bool {
    writer.endBatch() ? flush(&shard) : true
  }

  /// Hands over everything, between batches; false when the recording has ended.
  mutating func flush(_ shard: inout Shard) -> Bool {
    switch recording.append(writer.finishChunk(), to: segment) {
    case .taken: return true
    case .over: return false
    case .full:
      segment = recording.leave(segment)
      writer = RecordingWriter(shard: writer.shard, redactor: recording.redactor)
      recording.begin(segment, writer.shard, shard)
      return true
    }
  }
}
