import RelayCore
import Testing

@testable import RelayServer

@Suite struct ConnectionTableTests {
  @Test func aConnectionIsFoundUntilItIsRemoved() throws {
    let scene = ConnectionScene()
    let (first, second) = (
      try scene.connect(provider: true).handler, try scene.connect(provider: false).handler
    )
    #expect(first.number == 1 && second.number == 2)
    let found = [1, 2, 2, 1].map { scene.runner.connections[$0] }
    #expect(found[0] === first && found[1] === second && found[2] === second && found[3] === first)
    #expect(scene.runner.connections.count == 2)
    scene.runner.connections.remove(2)
    let left = [1, 2].map { scene.runner.connections[$0] }
    #expect(left[0] === first && left[1] == nil)
    scene.runner.closeAll()
    let late = scene.runner.connections.add(second)
    #expect(late == nil)
  }
}

@Suite struct ConnectionNumbersTests {
  @Test func theyCountUpFromOne() {
    var numbers = ConnectionNumbers()
    #expect((0..<3).map { _ in numbers.next { _ in false } } == [1, 2, 3])
  }

  @Test func theyBeginAgainAndPassOverOperatorsAndThoseInUse() {
    var numbers = ConnectionNumbers(last: ConnectionNumber(.max - 1))
    let taken: Set<ConnectionNumber> = [1, 2, 4]
    let next = (0..<4).map { _ in numbers.next { taken.contains($0) } }
    #expect(next == [ConnectionNumber(.max), 3, 5, 6])
  }
}
