import Primitives
import Testing

@testable import RelayCore

@Suite struct TokenChangesTests {
  private func own(_ number: UInt64, device: UInt64 = 1) -> OwnToken {
    OwnToken(
      token: DeviceToken(random: (number, 0, 0), routingKey: 1),
      device: DeviceID(UniqueID(high: device, low: 1)), topic: Topic("app\(number)")!)
  }

  private let request = RequestID(loop: 0, connection: 1, stream: 1)
  private var reply: TokenChanges.Reply { .init(request: request, answer: .unregistered) }

  @Test func whatBeginsEndsOnce() {
    var changes = TokenChanges()
    changes.begin(own(1), .claiming(request))
    changes.begin(own(2), .leaving(since: nil, then: reply))
    #expect(changes.contains(own(1).device, own(1).topic))
    #expect(!changes.contains(own(1, device: 2).device, own(1).topic))
    #expect(changes.end(own(1)) == .claiming(request))
    #expect(changes.end(own(1)) == nil)
    #expect(changes.count == 1)
    #expect(changes.end(own(2)) == .leaving(since: nil, then: reply))
    #expect(changes.count == 0 && changes.changes(of: own(1).device).isEmpty)
  }

  @Test func whatIsUnderWayIsFoundByItsToken() {
    var changes = TokenChanges()
    changes.begin(own(1), .claiming(request))
    changes.begin(own(2), .leaving(since: Instant(milliseconds: 7), then: reply))
    #expect(changes.step(of: own(1).token, own(1).device) == .claiming(request))
    #expect(changes.step(of: own(1).token, own(1, device: 2).device) == nil)
    #expect(
      changes.step(of: own(2).token, own(2).device)
        == .leaving(since: Instant(milliseconds: 7), then: reply))
    #expect(changes.step(of: own(3).token, own(3).device) == nil)
  }

  /// Whom nothing is left to be asked about, nobody wakes.
  @Test func theLastOneThatEndsTakesItsQuestionAlong() {
    let due = Instant(milliseconds: 7)
    var changes = TokenChanges()
    changes.state = [1, 2].map {
      TokenChanges.Change(own: own($0), step: .claiming(request), nextAt: due)
    }
    #expect(changes.nextQuestion == due)
    _ = changes.end(own(1))
    #expect(changes.nextQuestion == due)
    _ = changes.end(own(2))
    #expect(changes.nextQuestion == nil)
    changes.state = [TokenChanges.Change(own: own(3), step: .claiming(request), nextAt: due)]
    #expect(changes.removeAll { _ in true }.count == 1 && changes.nextQuestion == nil)
  }

  @Test func aDeviceHasRoomForFewAndAShardForMany() {
    var changes = TokenChanges()
    let first = own(0).device
    for number in 0..<UInt64(Limits.tokenChangesPerDevice) {
      #expect(changes.hasRoom(for: first))
      changes.begin(own(number), .claiming(request))
    }
    #expect(!changes.hasRoom(for: first))
    #expect(changes.hasRoom(for: own(1, device: 2).device))
    for number in UInt64(Limits.tokenChangesPerDevice)..<UInt64(Limits.tokenChangesPerShard) {
      changes.begin(own(number, device: number), .claiming(request))
    }
    #expect(!changes.hasRoom(for: own(1, device: 2).device))
  }
}
