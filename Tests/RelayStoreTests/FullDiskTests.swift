import CFaultVFS
import Primitives
import RelayCore
import Testing

@testable import RelayStore

/// A shard and its journal on a disk that is full for an hour of virtual time.
private final class FullDisk {
  private let directory: TemporaryDirectory
  private let listener = Listener()
  let journal: Journal
  private(set) var shard: Shard
  private var now = Instant(unixSeconds: 1_767_225_600)
  private var number: UInt64 = 0
  private var reported = 0
  private var records: [JournalRecord] = []
  private var forgets: [UInt64] = []
  private(set) var forgetCount = 0
  private(set) var answers: [ProviderAnswer: Int] = [:]
  private let credential = DeviceCredential(device: Make.device(1), secret: Make.secret(1))
  private let topic: Topic
  private let connection = ConnectionID(loop: 1, connection: 1, stream: 1)
  private var inFlight: [UniqueID] = []

  init() throws {
    faultvfs_install()
    directory = try TemporaryDirectory(prefix: "relay-fault")
    faultvfs_watch(directory.number)
    journal = try listener.open(directory) {
      $0.isUntimed = true
      $0.rangeBits = 16
    }
    topic = try Make.topic()
    shard = Shard(
      configuration: .init(policy: .unlimited), at: now, sequences: journal.sequences(ofShard: 0))
  }

  func handle(_ event: Event) {
    var effects: [Effect] = []
    shard.handle(event, at: now, into: &effects)
    for effect in effects {
      switch effect {
      case .persist(let record): records.append(record)
      case .forget(let sequence):
        forgets.append(sequence)
        forgetCount += 1
      case .respond(_, .accepted):
        answers[.accepted(uniqueID: .init(high: 0, low: 0)), default: 0] += 1
      case .respond(_, let answer): answers[answer, default: 0] += 1
      case .send(_, let delivery): inFlight.append(delivery.notification.uniqueID)
      default: break
      }
    }
  }

  private var request: RequestID { RequestID(loop: 0, connection: 1, stream: 1) }

  func begin(isConnected: Bool) async {
    handle(.asked(.enrolled, credential, from: request))
    handle(.asked(.registered(topic, Make.token(0), isOwn: false), credential, from: request))
    await writeBatch()
    if isConnected { handle(.asked(.connected, credential, from: connection)) }
  }

  /// The writer has its turn; what it reports, the shard hears when `hear` says so.
  func writeBatch() async {
    journal.submit(shard: 0, records: records, forgets: forgets)
    (records, forgets) = ([], [])
    await journal.flush()
    hear()
  }

  func hear() {
    let outcomes = listener.allOutcomes
    for outcome in outcomes[reported...] {
      switch outcome {
      case .persisted(_, let sequence): handle(.journal(.persisted(through: sequence)))
      case .failed(_, let sequence): handle(.journal(.persistFailed(through: sequence)))
      }
    }
    reported = outcomes.count
  }

  func push(count: Int) throws {
    for _ in 0..<count {
      number += 1
      let push = try Make.notification(number * 50, expiration: .at(now + .days(1)))
      handle(.submitted(push, from: request))
    }
  }

  /// The phone acknowledges what it was sent, before the shard hears what became of the records.
  func acknowledgeBeforeItIsKnown() async {
    journal.submit(shard: 0, records: records, forgets: forgets)
    (records, forgets) = ([], [])
    await journal.flush()
    acknowledge()
    hear()
  }

  func acknowledge() {
    for id in inFlight { handle(.stream(connection, .acked(id, nil))) }
    inFlight = []
  }

  func advance(_ interval: Interval) {
    now = now + interval
    handle(.clock(.tick))
  }

  /// Everything that is kept, in shard and journal.
  var keptCount: Int {
    shard.keptCount + journal.keptCount
  }

  func accepted() -> Int { answers[.accepted(uniqueID: .init(high: 0, low: 0)), default: 0] }
  func refused() -> Int { answers[.rejected(.serviceUnavailable), default: 0] }
}

extension FaultTests {
  /// An hour of 503: whatever is kept stays below a constant, and afterwards all is well.
  @Test(arguments: [false, true]) func anHourOnAFullDiskKeepsNothing(isConnected: Bool) async throws
  {
    let world = try FullDisk()
    await world.begin(isConnected: isConnected)
    faultvfs_fail_writes(1, .max / 2, Int32(FAULTVFS_FULL.rawValue))
    var highest = 0
    for step in 0..<900 {
      try world.push(count: 40)
      if step % 2 == 0 {
        await world.writeBatch()
        // So that the next ones are sent at once.
        world.acknowledge()
      } else {
        await world.acknowledgeBeforeItIsKnown()
      }
      world.advance(.seconds(4))
      highest = max(highest, world.keptCount)
      if step == 50 { #expect(highest < 1000) }
    }
    #expect(highest < 1000, "kept: \(highest)")
    if isConnected {
      #expect(world.forgetCount >= 450, "forgets: \(world.forgetCount)")
    } else {
      #expect(world.refused() == 900 * 40)
    }
    faultvfs_heal()
    let before = world.accepted()
    try world.push(count: 1)
    await world.writeBatch()
    #expect(world.accepted() == before + 1)
    await world.journal.stop()
  }
}
