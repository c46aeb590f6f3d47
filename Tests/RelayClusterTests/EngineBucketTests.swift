import NATS
import Primitives
import RelayCore
import RelayRecording
import Testing

@testable import RelayCluster

@Suite("EngineBucket") struct EngineBucketTests {
  private func message(_ subject: String, at sequence: UInt64, _ body: [UInt8]) -> NATSMessage {
    NATSMessage(
      tag: "7", body: body,
      headers: ["Nats-Subject": subject, "Nats-Sequence": "\(sequence)"])
  }

  private func drain(_ node: String, at sequence: UInt64, run: UInt64?) -> NATSMessage {
    var writer = ByteWriter(form: ClusterForm.newest)
    writer.putForm(first: 1)
    writer.put(run ?? 0)
    return message(
      EngineBucket.Key.drain(node: node).subject, at: sequence, run == nil ? [] : writer.bytes)
  }

  /// The servers take turns to answer, and one has lost what the others have.
  @Test func aServerThatHasLostAKeyTakesNobodyBack() {
    var seen = EngineBucket.Seen()
    #expect(seen.sight.drains.isEmpty)
    seen.add([drain("a", at: 4, run: 7)])
    #expect(seen.sight.drains == ["a": 7])
    seen.add([])
    #expect(seen.sight.drains == ["a": 7])
    seen.add([drain("b", at: 5, run: 8)])
    #expect(seen.sight.drains == ["a": 7, "b": 8])
  }

  @Test func aServerThatIsBehindTakesNobodyBack() {
    var seen = EngineBucket.Seen()
    seen.add([drain("a", at: 9, run: 7)])
    seen.add([drain("a", at: 4, run: 6)])
    #expect(seen.sight.drains == ["a": 7])
    seen.add([drain("a", at: 10, run: 8)])
    #expect(seen.sight.drains == ["a": 8])
  }

  /// A key that is removed is an empty message, not a missing one.
  @Test func whatIsRemovedIsGone() {
    var seen = EngineBucket.Seen()
    seen.add([drain("a", at: 4, run: 7), message("$KV.pushrelay.common.form", at: 5, [3])])
    seen.add([drain("a", at: 6, run: nil)])
    #expect(seen.sight.drains.isEmpty && seen.sight.form == 3)
    seen.add([drain("a", at: 4, run: 7)])
    #expect(seen.sight.drains.isEmpty)
  }

  /// A node of another version is at work, even if its key cannot be read.
  @Test func nodesAreThoseWithALease() {
    var seen = EngineBucket.Seen()
    seen.add([message("$KV.pushrelay.lease.c", at: 3, Array("?".utf8))])
    #expect(seen.sight.nodes.map(\.stamp.node) == ["c"] && seen.sight.nodes[0].revision == 3)
    #expect(seen.sight.nodes[0].report == .unreadable)
    seen.add([message("$KV.pushrelay.lease.c", at: 8, [])])
    #expect(seen.sight.nodes.isEmpty)
  }

  /// It refuses whatever follows the value that the others have.
  @Test func aLeaderThatHasLostAValueIsBelievedInTheEnd() {
    var place = EngineBucket.Place()
    for _ in 0..<25 {
      #expect(place.behind(9) == 9)
      place.refused(behind: 9, leaderHas: 4)
    }
    #expect(place.behind(9) == 4)
  }

  /// Another node was faster, or no answer came: that says nothing of the server.
  @Test(arguments: [12, 9, nil] as [UInt64?])
  func aLeaderThatHasMoreIsNot(last: UInt64?) {
    var place = EngineBucket.Place()
    for _ in 0..<24 { place.refused(behind: 9, leaderHas: 0) }
    place.refused(behind: 9, leaderHas: last)
    place.refused(behind: 9, leaderHas: 0)
    #expect(place.behind(9) == 9)
  }
}
