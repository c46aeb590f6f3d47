import ArgumentParser
import RelayCore
import RelayStore

extension StoreCommand {
  /// Fills a new journal with made-up devices and notifications, to measure starts and memory
  /// (`scripts/bench --restart`). Hidden in the help.
  struct Fill: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "fill", abstract: "Fill a new journal for measurements.", shouldDisplay: false)

    @OptionGroup var files: StateOptions
    @Option(help: "Devices, each with one app.")
    var devices: Int
    @Option(help: "Notifications for each device, 0 to 2: visible, then silent.")
    var notifications: Int
    @Option(help: "Bytes of a payload.")
    var payloadBytes = 220

    func validate() throws {
      guard (1...16_000_000).contains(devices), (0...2).contains(notifications),
        (32...4096).contains(payloadBytes)
      else {
        throw ValidationError("1 to 16000000 devices, 0 to 2 notifications, 32 to 4096 bytes")
      }
    }

    func run() async throws {
      guard PrivateFile.read(files.journal) == nil else {
        throw CommandError("\(files.journal) exists already; only a new journal is filled")
      }
      let journal = try Journal.open(.init(directory: files.state), report: { _ in })
      var writer = FillWriter(journal.sequences(ofShard: 0), payloadBytes: payloadBytes)
      for number in 0..<UInt64(devices) {
        writer.add(number, notifications: notifications)
        guard writer.records.count >= 4096 else { continue }
        journal.submit(shard: 0, records: writer.records, forgets: [])
        writer.records.removeAll()
        if number % 65_536 < 1024 { await journal.flush() }
      }
      journal.submit(shard: 0, records: writer.records, forgets: [])
      await journal.flush()
      await journal.stop()
      Console.say("\(journal.statistics.recordsWritten) records in \(files.journal)")
    }
  }
}

private struct FillWriter {
  var records: [JournalRecord] = []
  private let sequences: SequenceRanges
  private var count: UInt64 = 0
  private let payload: [UInt8]
  private let topic = Topic("com.example.app")
  private let now = WallClock.now

  init(_ sequences: SequenceRanges, payloadBytes: Int) {
    self.sequences = sequences
    let head = Array(#"{"aps":{"alert":"x"},"fill":""#.utf8)
    let tail = Array(#""}"#.utf8)
    let fill = [UInt8](
      repeating: UInt8(ascii: "x"), count: max(0, payloadBytes - head.count - tail.count))
    payload = head + fill + tail
  }

  mutating func add(_ number: UInt64, notifications: Int) {
    guard let topic else { return }
    // Spread like random numbers, so that routing and hashing see nothing special.
    let high = (number &+ 1) &* 0x9E37_79B9_7F4A_7C15
    let device = DeviceID(UniqueID(high: high, low: number))
    let token = DeviceToken(random: (number, high, ~number), routingKey: high)
    put(.enrolled(device, SecretHash(words: (number, high, 1, 2))))
    put(.registered(device, topic, token, isOwn: false))
    for kind in NotificationClass.allCases.prefix(notifications) {
      let id = UniqueID(generator: 1, number: count)
      put(
        .accepted(
          Notification(
            uniqueID: id, apnsID: id, token: token, topic: topic, notificationClass: kind,
            pushType: kind == .visible ? .alert : .background, priority: .immediate,
            wakesApp: false, collapseID: [], expiration: Expiration(unixSeconds: nil, at: now),
            payload: payload), at: now))
    }
  }

  private mutating func put(_ content: JournalRecord.Content) {
    records.append(JournalRecord(sequence: sequences.sequence(count), content: content))
    count += 1
  }
}
