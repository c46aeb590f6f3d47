package import AdminAPI
import Primitives
import RelayCore
import RelayStore

/// A checkpoint of the whole relay. The loops have its content, by its number.
struct SavedCheckpoint {
  let number: UInt32
  let at: Instant
  let bytes: Int
  let feedback: (items: [FeedbackItem], lastPosition: Int64)
  let names: [DeviceID: String]
  let channels: ChannelRegistry?
}

/// The whole relay, its clock included, returns to a checkpoint: a hundred tests from one set-up.
///
/// ```
///   settle ─▶ every loop keeps a copy, phones too          (save)
///   settle ─▶ time, every loop, phones are as then ─▶ settle   (rewind: another epoch)
/// ```
///
/// Only with memory for storage: data on disk cannot go back.
extension VirtualClock {
  package var checkpointList: [CheckpointStatus] {
    checkpoints.sorted { $0.key < $1.key }
      .map { CheckpointStatus(name: $0.key, at: $0.value.at, bytes: $0.value.bytes) }
  }

  /// Saves a checkpoint, in place of one with the same name.
  package func saveCheckpoint(_ name: String) async throws(ClockError) -> CheckpointStatus {
    guard let feedback else { throw .storeOnDisk }
    let endTurn = await turns.next()
    defer { endTurn() }
    let endChange = await loops.turns.next()
    defer { endChange() }
    try await settle()
    let before = checkpoints[name]
    let kept = checkpoints.values.reduce(-(before?.bytes ?? 0)) { $0 + $1.bytes }
    let count = checkpoints.count + (before == nil ? 1 : 0)
    let needed = await loops.onEach { $0.keptBytes }.reduce(kept, +)
    guard needed <= Limits.checkpointBytes, count <= Limits.checkpoints else {
      throw .tooMuchKept(bytes: needed, limitBytes: Limits.checkpointBytes)
    }
    lastCheckpoint += 1
    let number = lastCheckpoint
    _ = await loops.onEach { $0.saveCheckpoint(number) }
    let saved = SavedCheckpoint(
      number: number, at: now, bytes: needed - kept,
      feedback: await feedback.checkpoint(),
      names: await loops.ask(0) { $0.settings.names.all } ?? [:],
      channels: await channels?.registry)
    checkpoints[name] = saved
    if let before { _ = await loops.onEach { $0.dropCheckpoint(before.number) } }
    try await settle()
    return CheckpointStatus(name: name, at: saved.at, bytes: saved.bytes)
  }

  /// Returns to a checkpoint, and waits until all phones on this clock have followed.
  package func rewind(to name: String) async throws(ClockError) -> CheckpointStatus {
    guard let feedback else { throw .storeOnDisk }
    let endTurn = await turns.next()
    defer { endTurn() }
    guard let saved = checkpoints[name] else { throw .noCheckpoint(name: name) }
    // A pending change would reach a loop that has its devices again.
    let endChange = await loops.turns.next()
    defer { endChange() }
    try await settle()
    let (number, epoch) = (saved.number, time.rewindCount + 1)
    let staying = await loops.onEach { $0.streams(goingBackTo: number) }
      .reduce(into: Set<StreamAddress>()) { $0.formUnion($1) }
    time.rewind(to: saved.at)
    _ = await loops.onEach { $0.rewind(to: number, epoch: epoch, staying: staying) }
    _ = await loops.onEach { $0.memoryAnswersAll() }
    await feedback.rewind(to: saved.feedback)
    _ = await loops.ask(0) { $0.settings.names.all = saved.names }
    if let registry = saved.channels { await channels?.rewind(to: registry) }
    try await settle()
    // The work that faults had delayed never comes.
    _ = await loops.onEach { $0.adminPeers.refuse() }
    return CheckpointStatus(name: name, at: saved.at, bytes: saved.bytes)
  }

  private var channels: Channels? {
    get async { await loops.ask(0) { $0.settings.channels } ?? nil }
  }

  package func dropCheckpoint(_ name: String) async throws(ClockError) {
    let endTurn = await turns.next()
    defer { endTurn() }
    guard let saved = checkpoints.removeValue(forKey: name) else { throw .noCheckpoint(name: name) }
    _ = await loops.onEach { $0.dropCheckpoint(saved.number) }
  }
}
