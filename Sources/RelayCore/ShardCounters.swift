/// A shard's counts as a value; snapshots can be added.
package struct ShardCounters: Hashable, Sendable {
  package var received = 0
  /// From the journal.
  package var restored = 0
  /// Lives moved to another node with their partitions.
  package var handedOver = 0
  /// By `Rejection.rawValue`; the edge counts its own refusals.
  package var rejected = [Int](repeating: 0, count: Rejection.allCases.count)
  /// Frames by `Via.rawValue`. One notification may be sent more than once.
  package var sent = [Int](repeating: 0, count: Via.allCases.count)
  /// Times a slot was taken.
  package var stored = 0
  /// Fired timers by `TimerWheel.Subject.Kind.rawValue`.
  package var fired = [Int](repeating: 0, count: TimerWheel.Subject.Kind.allCases.count)
  /// Broadcasts handed to connected subscribers.
  package var broadcasts = 0
  // Ends of lives.
  package var delivered = 0
  package var expired = 0
  package var discardedUnregistered = 0
  package var notStored = 0
  package var replaced = 0
  package var repeated = 0
  package var journalFailed = 0
  package var cleared = 0
  // Gauges.
  package var waiting = 0
  package var inSlots = 0
  package var inFlight = 0
  package var devices = 0
  package var apps = 0
  package var aliases = 0
  package var connections = 0
  package var subscriptions = 0

  /// All numbers, in encoding order.
  package static let numbers: [any WritableKeyPath<ShardCounters, Int> & Sendable] = [
    \.received, \.restored, \.handedOver, \.stored, \.delivered, \.expired,
    \.discardedUnregistered, \.notStored, \.replaced, \.repeated, \.journalFailed, \.cleared,
    \.waiting, \.inSlots, \.inFlight, \.devices, \.apps, \.aliases, \.connections,
    \.broadcasts, \.subscriptions,
  ]
  package static let lists: [any WritableKeyPath<ShardCounters, [Int]> & Sendable] = [
    \.rejected, \.sent, \.fired,
  ]

  package init() {}

  package var ended: Int {
    delivered + expired + discardedUnregistered + notStored + replaced + repeated
      + journalFailed + cleared
  }

  /// Every accepted notification is counted somewhere.
  package var addsUp: Bool {
    received + restored == ended + handedOver + waiting + inSlots + inFlight
  }

  /// The same in words: "7 received = 5 ended + 1 held + 1 in flight".
  package var balance: String {
    let came = [(restored, "restored")]
    let stayed = [
      (inSlots, "held"), (inFlight, "in flight"), (waiting, "waiting for the journal"),
      (handedOver, "handed over"),
    ]
    func more(_ terms: [(count: Int, word: String)]) -> String {
      terms.map { $0.count == 0 ? "" : " + \($0.count) \($0.word)" }.joined()
    }
    return "\(received) received\(more(came)) = \(ended) ended\(more(stayed))"
  }

  package mutating func count(_ reason: DiscardReason) {
    switch reason {
    case .expired: expired += 1
    case .unregistered: discardedUnregistered += 1
    case .notStored: notStored += 1
    case .replaced: replaced += 1
    case .repeated: repeated += 1
    case .journalFailed: journalFailed += 1
    case .cleared: cleared += 1
    }
  }

  package static func + (left: ShardCounters, right: ShardCounters) -> ShardCounters {
    var sum = left
    for number in numbers { sum[keyPath: number] += right[keyPath: number] }
    for list in lists {
      for index in sum[keyPath: list].indices {
        sum[keyPath: list][index] += right[keyPath: list][index]
      }
    }
    return sum
  }
}
