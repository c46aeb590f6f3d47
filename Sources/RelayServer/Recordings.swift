package import AdminAPI
import FoundationEssentials
import Logging
package import Primitives
import ProviderCredentials
package import RelayCore
package import RelayRecording
import SystemPackage

/// Recordings started and stopped while the relay runs: files in its state directory, one at a
/// time.
package actor Recordings {
  /// The reasons why no recording was started or found.
  package enum RecordingError: Error, Equatable, Sendable {
    /// The relay is not running.
    case notRunning
    case busy(name: String)
    case noRecording(name: String)
    case nothingRecorded
    case stillRunning(name: String)
    case cannotWrite(String)
    case unreadable(String)
  }

  /// The name of the recording from the configuration.
  package static let configured = "configured"

  private let directory: String
  private let state: String
  private let inbox: Inbox
  private let logger: Logger
  private var running: (name: String, recording: Recording)?
  private var earlierSegments = 0

  init(state: String, inbox: Inbox, logger: Logger) {
    self.state = state
    self.inbox = inbox
    self.logger = logger
    directory = state + "/recordings"
  }

  func adopt(_ recording: Recording) { running = (Self.configured, recording) }

  var segmentCount: Int { earlierSegments + (running?.recording.segmentCount ?? 0) }

  func end() async {
    await running?.recording.close()
    running = nil
  }

  /// Starts a recording with the present state of every shard.
  ///
  /// - Parameter limit: bytes of both files together.
  package func start(
    _ name: String, payloads: RecordedPayloads, limit: Int
  ) async throws(RecordingError) -> RecordingStatus {
    if let running, running.recording.ending == nil { throw .busy(name: running.name) }
    guard let loops = inbox.loops else { throw .notRunning }
    let recording: Recording
    do {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      recording = try Recording(
        path: path(of: name), limit: limit, redactor: Redactor(state: state, payloads: payloads),
        shardCount: loops.count, logger: logger)
    } catch {
      throw .cannotWrite("\(error)")
    }
    earlierSegments = segmentCount
    running = (name, recording)
    _ = await loops.onEach { $0.core.record(to: recording) }
    return status(of: name)
  }

  /// Stops a recording; returns when all of it is in the file, also if it has stopped before.
  package func stop(_ name: String) async throws(RecordingError) -> RecordingStatus {
    guard let running, running.name == name else {
      guard CredentialFiles.exists(path(of: name)) else { throw .noRecording(name: name) }
      return status(of: name)
    }
    _ = await inbox.loops?.onEach { $0.core.stopRecording() }
    await running.recording.close()
    earlierSegments = segmentCount
    self.running = nil
    return status(of: name, running.recording)
  }

  package func list() -> [RecordingStatus] {
    let files = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    var names = Set(files.filter { $0.hasSuffix(".prr") }.map { String($0.dropLast(4)) })
    if let running { names.insert(running.name) }
    return names.sorted().map { status(of: $0) }
  }

  package func remove(_ name: String) throws(RecordingError) {
    if let running, running.name == name { throw .stillRunning(name: name) }
    do {
      try FileManager.default.removeItem(atPath: path(of: name))
    } catch {
      throw .noRecording(name: name)
    }
    try? FileManager.default.removeItem(atPath: Recording.previous(path(of: name)))
  }

  /// A recording's file, with everything that has happened until now.
  package func file(of name: String) async throws(RecordingError) -> String {
    var path = path(of: name)
    if let running, running.name == name {
      _ = await inbox.loops?.onEach { $0.core.flushRecording() }
      await running.recording.written()
      path = running.recording.path
    }
    guard CredentialFiles.exists(path) else { throw .noRecording(name: name) }
    return path
  }

  private func bytes(of name: String) async throws(RecordingError) -> [UInt8] {
    guard let data = FileManager.default.contents(atPath: try await file(of: name)) else {
      throw .noRecording(name: name)
    }
    return Array(data)
  }

  /// The shards at a past moment, replayed from the running recording or its previous file while
  /// the relay goes on; none before its beginning.
  package func past(at moment: Instant) async throws(RecordingError) -> [Shard] {
    guard let running else { throw .nothingRecorded }
    let current = try await bytes(of: running.name)
    let previous = FileManager.default.contents(atPath: Recording.previous(running.recording.path))
    do {
      var replay = Replay(try RecordingReader(current), until: .moment(moment))
      try replay.run()
      if replay.summary.first.map({ $0 > moment }) ?? true, let previous {
        var earlier = Replay(try RecordingReader(Array(previous)), until: .moment(moment))
        try earlier.run()
        replay = earlier
      }
      // A later one is as the recording found it.
      return replay.shards.map(\.shard).filter { $0.now <= moment }
    } catch {
      throw .unreadable("\(error)")
    }
  }

  private func path(of name: String) -> String { "\(directory)/\(name).prr" }

  private func status(of name: String, _ ended: Recording? = nil) -> RecordingStatus {
    let isMine = running?.name == name
    let recording = isMine ? running?.recording : ended
    let path = recording?.path ?? path(of: name)
    let bytes = [path, Recording.previous(path)].reduce(0) { sum, path in
      sum + ((try? FilePath(path).stat()).map { Int($0.size) } ?? 0)
    }
    return RecordingStatus(
      name: name, isRunning: isMine && recording?.ending == nil, bytes: bytes,
      payloads: recording?.redactor.payloads.rawValue)
  }
}
