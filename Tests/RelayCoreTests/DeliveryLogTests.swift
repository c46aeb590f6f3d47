import Primitives
import Testing

@testable import RelayCore

@Suite struct DeliveryLogTests {
  private let topic = Topic("com.example.app")!
  private let device = DeviceID(UniqueID(high: 7, low: 7))

  private func id(_ number: UInt64) -> UniqueID { UniqueID(generator: 1, number: number) }

  private func event(_ number: UInt64, _ step: DeliveryStep) -> DeliveryEvent {
    DeliveryEvent(at: Instant(milliseconds: Int64(number)), uniqueID: id(number), step: step)
  }

  private func received(_ number: UInt64, apnsID: UniqueID) -> DeliveryEvent {
    event(number, .received(.visible, apnsID: apnsID, device: device, topic))
  }

  @Test func stepsComeInOrderUnderEitherId() {
    var log = DeliveryLog(notifications: 10)
    let name = UniqueID(generator: 9, number: 9)
    log.append(received(1, apnsID: name))
    log.append(received(2, apnsID: id(2)))
    log.append(event(1, .storedOffline))
    log.append(event(1, .delivered))
    let steps: [DeliveryStep] = [
      .received(.visible, apnsID: name, device: device, topic), .storedOffline, .delivered,
    ]
    #expect(log.steps(of: id(1)).map(\.step) == steps)
    #expect(log.steps(of: name).map(\.step) == steps)
    #expect(log.steps(of: id(2)).count == 1)
    #expect(log.steps(of: id(3)).isEmpty)
  }

  /// Its device moved from one shard to another, in the millisecond of its first steps.
  @Test func aLifeInSeveralLogsIsOne() {
    let all = [
      received(1, apnsID: id(7)), event(1, .storedOffline), event(1, .sent(.connect)),
      event(1, .delivered),
    ]
    let parts = [[], Array(all[2...]), Array(all[..<2])]
    #expect(DeliveryLog.join(parts) == all)
    #expect(DeliveryLog.join([[], all, []]) == all)
    #expect(DeliveryLog.join([[], []]).isEmpty)
    var later = event(1, .outcome(.newData))
    later.at = Instant(milliseconds: 9)
    #expect(DeliveryLog.join([[all[0], later], [all[3]]]) == [all[0], all[3], later])
  }

  @Test func ofTwoThatTheirProviderCallsTheSameTheLatestCounts() {
    var log = DeliveryLog(notifications: 10)
    let name = UniqueID(generator: 9, number: 9)
    log.append(received(1, apnsID: name))
    log.append(received(2, apnsID: name))
    #expect(log.steps(of: name) == [received(2, apnsID: name)])
  }

  @Test func theOldestStepsMakeRoom() {
    var log = DeliveryLog(notifications: 3)
    let capacity = UInt64(3 * DeliveryLog.stepsPerNotification)
    for number in 0..<capacity * 2 + 1 { log.append(event(number, .storedOffline)) }
    #expect(log.count == Int(capacity))
    #expect(log.steps(of: id(capacity)).isEmpty)
    for number in capacity + 1..<capacity * 2 + 1 {
      #expect(log.steps(of: id(number)).count == 1, "\(number)")
    }
  }

  /// Against a list that is searched from one end to the other.
  @Test func randomLivesAreFoundAsBySearching() {
    for seed in UInt64(0)..<60 {
      var generator = SeededRandom(seed: seed)
      let notifications = Int.random(in: 1...40, using: &generator)
      var log = DeliveryLog(notifications: notifications)
      var all: [DeliveryEvent] = []
      for number in UInt64(0)..<600 {
        // Ids of two loops, and names that are theirs, shared, or of nobody else.
        let id = UniqueID(generator: number % 2, number: number / 2)
        let step: DeliveryStep
        var subject = id
        if generator.chance(40) {
          let names = [id, UniqueID(high: 0, low: number % 7), UniqueID(high: number, low: 9)]
          let name = names.randomElement(using: &generator)!
          step = .received(.visible, apnsID: name, device: device, topic)
        } else {
          step = .storedOffline
          subject = all.suffix(30).randomElement(using: &generator)?.uniqueID ?? id
        }
        all.append(
          DeliveryEvent(at: Instant(milliseconds: Int64(number)), uniqueID: subject, step: step))
        log.append(all[all.count - 1])
        all = Array(all.suffix(notifications * DeliveryLog.stepsPerNotification))
        guard number % 50 == 49 else { continue }
        let names = all.compactMap { event -> UniqueID? in
          if case .received(_, let name, _, _) = event.step { name } else { nil }
        }
        let ids = Set(all.map(\.uniqueID) + names + [UniqueID(high: 5, low: 5)])
        for id in ids { #expect(log.steps(of: id) == search(all, id), "seed \(seed)") }
      }
    }
  }

  private func search(_ all: [DeliveryEvent], _ id: UniqueID) -> [DeliveryEvent] {
    let unique = all.filter { $0.uniqueID == id }
    guard unique.isEmpty else { return unique }
    let named = all.last { event in
      if case .received(_, id, _, _) = event.step { true } else { false }
    }
    return named.map { named in all.filter { $0.uniqueID == named.uniqueID } } ?? []
  }
}

extension DeliveryLog {
  fileprivate mutating func append(_ event: DeliveryEvent) {
    var event = event
    append(&event)
  }
}
