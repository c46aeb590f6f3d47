import Dispatch
import FoundationEssentials
import Logging
import Primitives
import ProviderCredentials
import RelayCore
import RelayRecording
import RelaySetup
import Synchronization
import SystemPackage

/// What a relay records, in files of bounded size. Loops hand over whole frames and never wait: one
/// queue writes them. When the disk cannot follow, the recording ends and the relay goes on.
///
/// ```
///   FILE:          header, starts ── chunks ─▶ half of the limit ─▶ end   (FILE.previous)
///   the next FILE: header, state of each shard ── chunks ─▶ …
/// ```
///
/// Each loop goes over to the next segment by itself, at its next flush: a shard's chunks are
/// behind its own start or state, and what it was is in its state. So each file can be replayed
/// without the other, and the one before the previous can go.
package final class Recording: Sendable {
  private struct Segment {
    /// Opened and closed by the queue.
    var descriptor: FileDescriptor?
    var takenBytes = 0
    /// Loops that still write to it.
    var writers: Int
  }

  private struct State {
    /// Given to the queue and not yet written.
    var queuedBytes = 0
    var ending: RecordingEnd?
    var current = 0
    var segments: [Int: Segment]
  }

  /// What became of a frame.
  enum Verdict {
    case taken
    /// Taken, and the loop goes on in the next segment.
    case full
    /// The recording has ended.
    case over
  }

  /// What may wait to be written, of all loops.
  static let queuedBytes = 64 * 1_048_576

  let redactor: Redactor
  package let path: String
  /// Of both files together, in bytes, besides the states at their heads.
  private let limit: Int
  private let shardCount: Int
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

  /// Where a file is kept that another one follows.
  package static func previous(_ path: String) -> String { path + ".previous" }

  // MARK: From the loops

  /// How many files have been begun.
  var segmentCount: Int { state.withLock { $0.current + 1 } }

  /// Takes a frame, or only says how a segment stands.
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

  /// A loop goes over to the next segment, which is begun if it is the first to do so.
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

  /// Writes down what a shard is, first of all that a segment has of it. A shard is a value: it is
  /// made bytes here, while the loop goes on with its own.
  func begin(_ segment: Int, _ number: UInt16, _ shard: Shard) {
    queue.async { [redactor] in
      let frame = RecordedState(number, shard).frame(redactor)
      // A state that is larger than what is left would begin a file with every chunk: it does not
      // count.
      self.state.withLock { $0.queuedBytes += frame.count }
      self.write(frame, to: segment)
    }
  }

  /// The segment that loops write to from the beginning on.
  var current: Int { state.withLock { $0.current } }

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

  /// Returns when everything that was handed over before is in the file.
  func written() async {
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
  }

  /// Why it has ended; nil while it goes on.
  var ending: RecordingEnd? { state.withLock { $0.ending } }

  // MARK: On the queue

  private func open(_ segment: Int) throws {
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

  /// Takes a segment's descriptor away, so that it is closed once: its number may be another file's
  /// later.
  private func takeDescriptor(_ segment: Int) -> FileDescriptor? {
    state.withLock { state in
      defer { state.segments[segment] = nil }
      return state.segments[segment]?.descriptor
    }
  }

  private func close(_ segment: Int, _ ending: RecordingEnd?) {
    guard let descriptor = takeDescriptor(segment) else { return }
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
  private let recording: Recording
  private var segment: Int

  /// From a shard's beginning on.
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

  /// - Parameter effects: left as they are; lent out, as what is only looked at would be copied.
  @inline(__always)
  mutating func record(
    _ event: Event, at moment: Instant, _ effects: inout [Effect], from first: Int
  ) {
    writer.record(event, at: moment, effects.span.extracting(first...))
  }

  /// The batch is over; false when the recording has ended.
  ///
  /// - Parameter shard: lent out, here and below, and left as it is.
  mutating func endBatch(_ shard: inout Shard) -> Bool {
    writer.endBatch() ? flush(&shard) : true
  }

  /// Hands over what there is; false when the recording has ended. Between batches.
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
