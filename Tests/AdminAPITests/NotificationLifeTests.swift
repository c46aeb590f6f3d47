import Primitives
import RelayCore
import Testing

@testable import AdminAPI

@Suite struct NotificationLifeTests {
  private static let id = UniqueID(high: 1, low: 2)
  private static let other = UniqueID(high: 3, low: 4)
  private static let topic = Topic("com.example.app")!
  private static let first = DeliveryStep.received(
    .silent, apnsID: other, device: DeviceID(id), topic)

  private func life(_ steps: [DeliveryStep]) -> NotificationLife? {
    NotificationLife(
      steps.enumerated().map { place, step in
        DeliveryEvent(at: Instant(milliseconds: Int64(place)), uniqueID: Self.id, step: step)
      })
  }

  @Test func theFirstStepSaysWhoseItIs() throws {
    let life = try #require(self.life([Self.first]))
    #expect(life.uniqueId == Self.id.description)
    #expect(life.id == Self.other.description)
    #expect(life.topic == "com.example.app")
    #expect(life.kind == "silent")
    #expect(life.state == "received")
    #expect(self.life([]) == nil)
    #expect(self.life([.delivered]) == nil, "its beginning has left the ring")
  }

  @Test(arguments: [
    (DeliveryStep.restored, "restored"), (.sent(.refill), "sent"),
    (.sent(.piggyback, with: .push(other)), "sent"),
    (.sent(.piggyback, with: .line(.keepAlive)), "sent"), (.storedOffline, "stored"),
    (.storedPower(until: nil, limit: .inFlight), "stored"),
    (.storedPower(until: Instant(milliseconds: 9), limit: .perApp), "stored"),
    (.discarded(.expired), "discarded"), (.discarded(.replaced(by: other)), "discarded"),
    (.delivered, "delivered"),
  ])
  func everyStepHasAWord(_ step: DeliveryStep, _ word: String) throws {
    let life = try #require(self.life([Self.first, step]))
    #expect(life.state == word)
    let last = try #require(life.steps.last)
    #expect(last.step == word)
    #expect(last.text == step.description)
    switch step {
    case .sent(let via, .push(let id)):
      #expect(last.via == via.name && last.carriedBy == id.description && last.carrier == nil)
    case .sent(let via, .line(let line)):
      #expect(last.via == via.name && last.carriedBy == nil && last.carrier == line.name)
    case .sent(let via, nil):
      #expect(last.via == via.name && last.carriedBy == nil && last.carrier == nil)
    case .storedOffline: #expect(last.reason == "device offline")
    case .storedPower(let until, let limit):
      #expect(last.reason == "power considerations" && last.limit == limit.name)
      #expect(last.until == until?.milliseconds)
    case .discarded(.replaced(let id)):
      #expect(last.reason == "replaced" && last.replacedBy == id.description)
    case .discarded(let reason): #expect(last.reason == reason.name)
    default: #expect(last.reason == nil)
    }
  }

  @Test func anOutcomeIsNoState() throws {
    let outcome = DeliveryStep.outcome(.notLaunched(reason: "force-quit"))
    let life = try #require(self.life([Self.first, .sent(.direct), .delivered, outcome]))
    #expect(life.state == "delivered")
    #expect(life.steps.last?.outcome == "not launched: force-quit")
  }
}
