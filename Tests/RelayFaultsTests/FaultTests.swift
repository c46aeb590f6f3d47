import Primitives
import RelayCore
import Testing

@testable import RelayFaults

@Suite struct FaultTests {
  private let start = Instant(milliseconds: 1_790_000_000_000)

  private func hits(_ when: Fault.When, seed: UInt64 = 0, of count: Int) -> [Int] {
    var tally = FaultTally(seed: seed)
    let hits = (1...count).filter { _ in tally.decide(when, at: start) }
    #expect(tally.seen == count && tally.hit == hits.count)
    return hits
  }

  @Test func soManyPassFirstAndSoManyAreHit() {
    var when = Fault.When()
    #expect(hits(when, of: 5) == [1, 2, 3, 4, 5])
    when.skip = 2
    #expect(hits(when, of: 5) == [3, 4, 5])
    when.times = 2
    #expect(hits(when, of: 9) == [3, 4])
  }

  @Test func chancesAreDrawnFromTheSeedAlone() {
    var when = Fault.When()
    when.probability = 0.25
    let first = hits(when, seed: 7, of: 4000)
    #expect((800...1200).contains(first.count), "\(first.count)")
    #expect(first == hits(when, seed: 7, of: 4000))
    #expect(first != hits(when, seed: 8, of: 4000))
    // What is skipped does not shift the rest.
    when.skip = 100
    #expect(hits(when, seed: 7, of: 4000) == first.filter { $0 > 100 })
    when.probability = 0
    #expect(hits(when, of: 1000).isEmpty)
  }

  @Test func onlyWhatGoesBeyondARateIsHit() {
    var when = Fault.When()
    when.over = RateLimit(3, per: .minutes(1), burst: 3)
    #expect(hits(when, of: 5) == [4, 5])
    var tally = FaultTally(seed: 0)
    let later = (0..<5).map { tally.decide(when, at: start + .minutes(1) * Int64($0)) }
    #expect(later == [false, false, false, false, false])
  }

  @Test func aFaultIsOverAfterItsTime() {
    var fault = Fault(.provider, .drop)
    fault.duration = .minutes(5)
    let rule = FaultRule("x", fault, at: start)
    #expect(rule.hits(at: start + .minutes(4)))
    #expect(!rule.hits(at: start + .minutes(5)))
    #expect(rule.tally.seen == 1)
  }

  @Test func theFirstByNameThatMatchesActs() throws {
    let board = FaultBoard()
    var other = Fault(.provider, .drop)
    other.match.topic = "com.example.other"
    var once = Fault(.provider, .answer(.serviceUnavailable))
    once.when.times = 1
    #expect(board.set == nil)
    #expect(board.put(FaultRule("a", other, at: start)))
    #expect(board.put(FaultRule("b", once, at: start)))
    #expect(board.put(FaultRule("c", Fault(.provider, .reset), at: start)))
    #expect(board.put(FaultRule("d", Fault(.journal, .failWrite), at: start)))
    let set = try #require(board.set)
    let names = (0..<3).map { _ in set.hit(.provider, Self.notification, at: start)?.name }
    #expect(names == ["b", "c", "c"])
    #expect(set.hit(.connection, Self.notification, at: start) == nil)
    #expect(set.journalHit(failing: true, at: start)?.name == "d")
    #expect(set.journalHit(failing: false, at: start) == nil)
    #expect(board.hitCount == 4)
    #expect(board.remove("c") && !board.remove("c"))
    #expect(board.hitCount == 4 && board.rules.map(\.name) == ["a", "b", "d"])
  }

  /// A reason of both services answers both; one that only channels have leaves pushes alone.
  @Test func aReasonOfChannelsAnswersTheirRequestsOnly() throws {
    let bundle = Topic("com.example.app")!
    let both = FaultSet(rules: [FaultRule("a", Fault(.provider, .answer(.badPath)), at: start)])
    #expect(both.hit(channelsOf: bundle, at: start)?.refusal == .badPath)
    #expect(both.hit(.provider, Self.notification, at: start) != nil)
    let fault = Fault(.provider, .answerChannels(.cannotCreateChannelConfig))
    let rule = FaultRule("b", fault, at: start)
    let channels = FaultSet(rules: [rule])
    #expect(channels.hit(.provider, Self.notification, at: start) == nil)
    #expect(rule.tally.seen == 0)
    #expect(
      channels.hit(channelsOf: bundle, at: start)?.refusal == .cannotCreateChannelConfig)
    #expect(rule.tally.hit == 1)
  }

  @Test func thereAreNotTooMany() {
    let board = FaultBoard()
    for number in 0..<Limits.faults {
      #expect(board.put(FaultRule("f\(number)", Fault(.provider, .drop), at: start)))
    }
    #expect(!board.put(FaultRule("more", Fault(.provider, .drop), at: start)))
    #expect(board.put(FaultRule("f0", Fault(.provider, .reset), at: start)))
  }

  private static let notification = Notification.sample

  @Test func whatIsNotNamedMatches() {
    let notification = Self.notification
    var match = Fault.Match()
    #expect(match.holds(notification))
    match.kind = notification.notificationClass
    match.token = notification.token
    match.topic = notification.topic.description
    match.device = DeviceID(UniqueID(high: notification.token.routingKey, low: 1))
    #expect(match.holds(notification))
    for change in [
      { (match: inout Fault.Match) in match.kind = .visible },
      { $0.topic = "com.example.other" },
      { $0.token = DeviceToken(hexadecimal: "00ff") },
      { $0.device = DeviceID(UniqueID(high: 77, low: 1)) },
    ] {
      var changed = match
      change(&changed)
      #expect(!changed.holds(notification), "\(changed)")
    }
  }

  @Test func everyPlaceKnowsItsActions() {
    let all = Set(Fault.Action.Kind.allCases)
    let actions: [Fault.Action] = [
      .answer(.badTopic), .delay(.seconds(1)), .drop, .reset, .duplicate, .goAway(.once),
      .halfClose, .blackhole, .stall(.seconds(1)), .failWrite,
      .answerChannels(.badChannelID),
    ]
    #expect(Set(actions.map(\.name)) == Set(all.map(\.rawValue)))
    #expect(Set(Fault.Place.allCases.flatMap(\.actions)) == all)
  }
}

extension Notification {
  fileprivate static let sample = Notification(
    uniqueID: UniqueID(high: 1, low: 1), apnsID: UniqueID(high: 1, low: 1),
    token: DeviceToken(random: (1, 2, 3), routingKey: 0x1234), topic: Topic("com.example.app")!,
    notificationClass: .silent, pushType: .background, priority: .powerAware, wakesApp: true,
    collapseID: [], expiration: .at(Instant(milliseconds: 1_800_000_000_000)), payload: [])
}
