import RelayCore
import Testing

@testable import RelayServer

@Suite struct IDSourceTests {
  @Test func theSameSeedMakesTheSame() {
    func all(_ seed: UInt64, _ loop: UInt16) -> String {
      var ids = IDSource(seed: seed, loop: loop)
      let device = ids.makeDevice()
      let (id, secret) = (ids.makeUniqueID(), ids.makeSecret())
      return "\(id) \(device) \(secret) \(ids.makeToken(.new(for: nil), for: device))"
    }
    #expect(all(5, 1) == all(5, 1))
    #expect(Set([all(5, 0), all(5, 1), all(6, 0)]).count == 3)
  }

  @Test(arguments: [5, nil] as [UInt64?])
  func onlyASeedGivesTheSameAgain(seed: UInt64?) {
    var ids = IDSource(seed: seed, loop: 0)
    let then = ids
    let first = ids.makeUniqueID()
    ids.goBack(to: then)
    #expect((ids.makeUniqueID() == first) == (seed != nil))
  }

  @Test func loopsNumberInTurn() {
    var (first, second) = (IDSource(seed: 5, loop: 0), IDSource(seed: 5, loop: 0))
    first.number(asLoop: 0, of: 2)
    second.number(asLoop: 1, of: 2)
    let made = (0..<3).flatMap { _ in [first.makeUniqueID(), second.makeUniqueID()] }
    var alone = IDSource(seed: 5, loop: 0)
    let expected = (0..<6).map { _ in alone.makeUniqueID() }
    #expect(made == expected)
  }

  @Test func aTokenLeadsToItsDevice() {
    var ids = IDSource(seed: nil, loop: 0)
    let device = ids.makeDevice()
    let (token, secrets) = (
      ids.makeToken(.new(for: nil), for: device), [ids.makeSecret(), ids.makeSecret()]
    )
    #expect(token.routingKey == device.routingKey)
    #expect(Set(secrets).count == 2 && secrets.allSatisfy { $0.count == 64 })
  }
}
