import NATS
import Primitives
import Testing

@testable import RelayCluster

/// What nats-server 2.15 says, as it was recorded.
@Suite("EngineAnswer") struct EngineAnswerTests {
  private func read(
    _ tag: String, _ body: String, _ headers: [String: String] = [:]
  ) -> (target: JournalNode.Target, event: SubjectWriter.Event)? {
    EngineAnswer.read(NATSMessage(tag: tag, body: Array(body.utf8), headers: headers))
  }

  @Test func anAckSaysWhere() {
    let answer = read("w.3.7", #"{"stream":"pushrelay","seq":5}"#)
    #expect(answer?.target == .stripe(3))
    #expect(answer?.event == .stored(number: 7, sequence: 5))
    #expect(read("w.lease.1", #"{"stream":"KV_pushrelay","seq":2}"#)?.target == .lease)
  }

  @Test(arguments: [
    #"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 4"},"seq":0}"#,
    #"{"stream":"pushrelay","seq":0}"#, #"{"stream":"pushrelay"}"#, "{", "",
  ])
  func everythingElseIsARefusal(body: String) {
    #expect(read("w.0.7", body)?.event == .refused(number: 7))
  }

  /// That somebody else came first is an answer like others; all else people should hear.
  @Test func whatTheEngineHasAgainstAMessageIsKnown() {
    func refusal(_ body: String) -> String? { EngineAnswer.refusal(Array(body.utf8)) }
    #expect(
      refusal(#"{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}"#)
        == "maximum bytes exceeded")
    #expect(
      refusal(#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 4"}}"#)
        == nil)
    #expect(refusal("{") == nil && refusal(#"{"stream":"pushrelay","seq":5}"#) == nil)
  }

  @Test func nobodyListens() {
    #expect(read("w.0.7", "", ["Status": "503"])?.event == .refused(number: 7))
  }

  @Test func theLastMessageSaysWhoWroteIt() throws {
    let stamp = Stamp(node: "b", run: 9, epoch: 2, number: 4)
    let message = StripeMessage(
      head: .init(stamp: stamp, writtenAt: Instant(milliseconds: 0)), entries: [])
    let answer = EngineAnswer.read(
      NATSMessage(tag: "l.0.7", body: message.bytes, headers: ["Nats-Sequence": "12"]))
    #expect(answer?.1 == .found(question: 7, sequence: 12, stamp))
    #expect(
      read("l.0.7", "", ["Status": "404"])?.event == .found(question: 7, sequence: 0, nil))
    #expect(
      read("l.0.7", "no relay's", ["Nats-Sequence": "3"])?.event
        == .found(question: 7, sequence: 3, nil))
    #expect(read("l.0.7", "", ["Status": "408"]) == nil)
    #expect(read("l.0.7", "no sequence") == nil)
  }

  @Test(arguments: ["", "w", "w.0", "x.0.1", "w.300.1", "w.0.-1", "w.0.1.2", "q.1"])
  func aTagThatIsNoneIsNoAnswer(tag: String) {
    #expect(read(tag, #"{"seq":5}"#) == nil)
  }

  @Test func tagsAreReadAsTheyAreWritten() {
    for target in [JournalNode.Target.stripe(0), .stripe(255), .lease] {
      let tag = EngineAnswer.Tag(kind: .last, target: target, number: .max)
      #expect(EngineAnswer.Tag(tag.text) == tag)
    }
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
