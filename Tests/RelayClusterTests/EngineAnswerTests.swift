import NATS
import Primitives
import Testing

@testable import RelayCluster

/// What nats-server 2.15 says, as it was recorded.
@Suite("EngineAnswer") struct EngineAnswerTests {
  private func message(_ body: String, _ headers: [String: String] = [:]) -> NATSMessage {
    NATSMessage(tag: "7", body: Array(body.utf8), headers: headers)
  }

  @Test func anAckSaysWhere() {
    #expect(message(#"{"stream":"pushrelay","seq":5}"#).storedSequence == 5)
  }

  @Test(arguments: [
    #"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 4"},"seq":0}"#,
    #"{"stream":"pushrelay","seq":0}"#, #"{"stream":"pushrelay"}"#, "{", "",
  ])
  func everythingElseIsARefusal(body: String) {
    #expect(message(body).storedSequence == nil)
  }

  /// That somebody else came first is an answer like others; all else people should hear.
  @Test func whatTheEngineHasAgainstAMessageIsKnown() {
    func refusal(_ body: String) -> String? { EngineStream.refusal(Array(body.utf8)).reason }
    #expect(
      refusal(#"{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}"#)
        == "maximum bytes exceeded")
    #expect(
      refusal(#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 4"}}"#)
        == nil)
    #expect(refusal("{") == nil && refusal(#"{"stream":"pushrelay","seq":5}"#) == nil)
    func last(_ body: String) -> UInt64? { EngineStream.refusal(Array(body.utf8)).last }
    #expect(
      last(#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 4"}}"#) == 4)
    #expect(
      last(#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence"}}"#) == nil)
    #expect(
      last(#"{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}"#)
        == nil)
  }

  @Test func nobodyListens() {
    #expect(message(#"{"seq":5}"#, ["Status": "503"]).storedSequence == nil)
  }

  @Test func theLastMessageSaysWhoWroteIt() throws {
    let stamp = Stamp(node: "b", run: 9, epoch: 2, number: 4)
    let bytes = StripeMessage(
      head: .init(form: ClusterForm.first, stamp: stamp, writtenAt: Instant(milliseconds: 0)),
      entries: []
    ).bytes
    let last = EngineClient.last(
      NATSMessage(tag: "7", body: bytes, headers: ["Nats-Sequence": "12"]))
    #expect(last?.sequence == 12 && last.flatMap { Stamp(ofMessage: $0.body) } == stamp)
    #expect(EngineClient.last(message("", ["Status": "404"]))?.sequence == 0)
    #expect(Stamp(ofMessage: Array("no relay's".utf8)) == nil && Stamp(ofMessage: []) == nil)
    #expect(EngineClient.last(message("", ["Status": "408"])) == nil)
    #expect(EngineClient.last(message("no sequence")) == nil)
  }

  @Test func aNodesNameIsPartOfASubject() {
    for name in ["a", "Node-1_b", String(repeating: "n", count: 64)] {
      #expect(ClusterJournal.isNodeName(name))
    }
    for name in ["", "a.b", "a b", "*", ">", "ä", String(repeating: "n", count: 65)] {
      #expect(!ClusterJournal.isNodeName(name))
    }
  }
}
