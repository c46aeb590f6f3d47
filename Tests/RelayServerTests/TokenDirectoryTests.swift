import RelayCore
import Testing

@testable import RelayServer

@Suite struct TokenDirectoryTests {
  private let token = DeviceToken(hexadecimal: "abcd")!

  @Test func mintedTokensSayTheirShardThemselves() {
    let directory = TokenDirectory()
    for key in UInt64(0)..<100 {
      let minted = DeviceToken(random: (1, 2, 3), routingKey: key &* 0x1234_5678_9ABC_DEF1)
      #expect(
        directory.shard(of: minted, count: 4)
          == shardIndex(forRoutingKey: minted.routingKey, count: 4))
      #expect(directory.shard(of: minted, count: 1) == 0)
    }
  }

  @Test func aReservedTokenGoesToItsOwnerAndToNobodyElse() {
    var directory = TokenDirectory()
    let answers = [2, 2, 1].map { directory.reserve(token, for: $0) }
    #expect(answers == [true, true, false])
    #expect(directory.shard(of: token, count: 4) == 2)
  }

  @Test func onlyTheOwnerTakesItsTokenOut() {
    var directory = TokenDirectory()
    directory.apply(.init(token: token, owner: 3, isHere: true))
    directory.apply(.init(token: token, owner: 1, isHere: false))
    #expect(directory.shard(of: token, count: 4) == 3)
    directory.apply(.init(token: token, owner: 3, isHere: false))
    let isFree = directory.reserve(token, for: 1)
    #expect(isFree)
  }
}
