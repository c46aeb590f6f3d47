import Testing

@testable import RelayCore

@Suite struct LifeLogTests {
  private let topic = Topic("com.example.app")!

  private func id(_ number: UInt64) -> UniqueID { UniqueID(generator: 1, number: number) }

  private func event(_ number: UInt64, _ step: LifeStep) -> LifeEvent {
    LifeEvent(at: Instant(milliseconds: Int64(number)), uniqueID: id(number), step: step)
  }

  private func received(_ number: UInt64, apnsID: UniqueID) -> LifeEvent {
    event(number, .received(.visible, apnsID: apnsID, topic))
  }

  @Test func stepsComeInOrderUnderEitherId() {
    var log = LifeLog(notifications: 10)
    let name = UniqueID(generator: 9, number: 9)
    log.append(received(1, apnsID: name))
    log.append(received(2, apnsID: id(2)))
    log.append(event(1, .storedOffline))
    log.append(event(1, .delivered))
    let steps: [LifeStep] = [
      .received(.visible, apnsID: name, topic), .storedOffline, .delivered,
    ]
    #expect(log.steps(of: id(1)).map(\.step) == steps)
    #expect(log.steps(of: name).map(\.step) == steps)
    #expect(log.steps(of: id(2)).count == 1)
    #expect(log.steps(of: id(3)).isEmpty)
  }

  @Test func ofTwoThatTheirProviderCallsTheSameTheLatestCounts() {
    var log = LifeLog(notifications: 10)
    let name = UniqueID(generator: 9, number: 9)
    log.append(received(1, apnsID: name))
    log.append(received(2, apnsID: name))
    #expect(log.steps(of: name) == [received(2, apnsID: name)])
  }

  @Test func theOldestStepsMakeRoom() {
    var log = LifeLog(notifications: 3)
    let capacity = UInt64(3 * LifeLog.stepsPerNotification)
    for number in 0..<capacity * 2 + 1 { log.append(event(number, .storedOffline)) }
    #expect(log.count == Int(capacity))
    #expect(log.steps(of: id(capacity)).isEmpty)
    for number in capacity + 1..<capacity * 2 + 1 {
      #expect(log.steps(of: id(number)).count == 1, "\(number)")
    }
  }
}
