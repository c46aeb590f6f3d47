import Foundation
import Testing

@testable import RelayServer

@Suite struct ClusterFindingsTests {
  private func status(
    _ change: (inout ClusterStatus) -> Void = { _ in }
  ) throws -> ClusterStatus {
    let node = #"""
      "number":1,"ageSeconds":0.5,"partitions":128,"provider":"p","device":"d","admin":"",
      "state":"active","leaseSeconds":2.5,"waiting":0,"waitingSeconds":0,
      "settings":["strict=true","keepAlive=900 s","environment="],"roomPercent":89,
      "snapshotPercent":299
      """#
    let json = #"""
      {"node":"a","partitions":256,"form":5,"formReason":"",
      "nodes":[{"name":"a","stripes":[0],\#(node)},
      {"name":"b","stripes":[1],\#(node)}],"stripes":[{"stripe":0,"state":"live","node":"a",
      "epoch":1},{"stripe":1,"state":"live","node":"b","epoch":1}]}
      """#
    var status = try JSONDecoder().decode(ClusterStatus.self, from: Data(json.utf8))
    change(&status)
    return status
  }

  private let quiet = [
    "cluster_clock_difference_seconds": 0.01, #"hops_total{fate="sent"}"#: 9,
    #"hops_total{fate="refused"}"#: 0, #"hops_total{fate="lost"}"#: 0,
  ]

  @Test func nothingIsWrong() throws {
    let findings = try status().findings(metrics: quiet)
    #expect(findings.count == 6 && findings.allSatisfy { !$0.isProblem })
  }

  private static let changes: [(text: String, change: @Sendable (inout ClusterStatus) -> Void)] = [
    ("stripe 1 has no node", { $0.stripes[1].state = "nobody" }),
    ("stripe 1 cannot be read", { $0.stripes[1].state = "unreadable" }),
    ("stripe 1 is on its way", { $0.stripes[1].state = "moving" }),
    ("cluster forget b", { $0.nodes[1].state = "gone" }),
    ("cluster drain b --undo", { $0.nodes[1].state = "draining" }),
    ("node b has no stripe", { $0.nodes[1].stripes = [] }),
    ("node b has had no lease for 1.5 s", { $0.nodes[1].leaseSeconds = -1.5 }),
    ("node b does not answer", { $0.nodes[1].leaseSeconds = nil }),
    ("node b waits for the NATS servers", { $0.nodes[1].waitingSeconds = 0.6 }),
    ("one node takes stripes", { $0.nodes.removeLast() }),
    ("node b has used 90 % of its room", { $0.nodes[1].roomPercent = 90 }),
    ("node b has 300 % of the bytes", { $0.nodes[1].snapshotPercent = 300 }),
    (
      "keepAlive differs, so phones and providers see another relay as stripes move: 60 s on b; "
        + "900 s on a", { $0.nodes[1].settings = ["strict=true", "keepAlive=60 s"] }
    ),
    ("environment differs", { $0.nodes[1].settings = ["environment=sandbox"] }),
    ("none on a; sandbox on b", { $0.nodes[1].settings = ["environment=sandbox"] }),
  ]

  @Test(arguments: changes.indices)
  func eachIsSaid(_ index: Int) throws {
    let (text, change) = Self.changes[index]
    let problems = try status(change).findings(metrics: quiet).filter(\.isProblem)
    #expect(problems.contains { $0.text.contains(text) }, "\(problems)")
  }

  @Test func whenAllDrainNobodyTakesAnything() throws {
    let problems = try status {
      for place in $0.nodes.indices { $0.nodes[place].state = "draining" }
    }.findings(metrics: quiet).filter(\.isProblem)
    #expect(problems.last?.text.hasPrefix("no node takes stripes") == true, "\(problems)")
  }

  /// It does not hear of the others, nor do they of it.
  @Test func aNodeWithoutALeaseSaysNothingOfTheOthers() throws {
    let findings = try status {
      ($0.nodes[0].leaseSeconds, $0.nodes[0].stripes) = (-1.5, [])
      ($0.nodes[1].leaseSeconds, $0.nodes[1].settings) = (nil, nil)
    }.findings(metrics: quiet)
    #expect(findings.count == 1 && findings[0].isProblem)
    #expect(findings[0].text.contains("node a has had no lease for 1.5 s"), "\(findings)")
  }

  /// A node before this, or one that does not answer, differs in nothing that is known.
  @Test func aNodeThatTellsNothingDoesNotDiffer() throws {
    let findings = try status {
      $0.nodes[1].settings = nil
      $0.nodes[1].roomPercent = nil
      $0.nodes[1].snapshotPercent = nil
    }.findings(metrics: quiet)
    #expect(findings.allSatisfy { !$0.isProblem })
  }

  @Test func metricsAreJudged() throws {
    let difference = try status().findings(
      metrics: quiet.merging(["cluster_clock_difference_seconds": 2]) { $1 })
    let problems = difference.filter(\.isProblem)
    #expect(problems.count == 1 && problems[0].text.contains("clock differs by 2.0 s"))
    for (name, text) in [
      (#"hops_total{fate="refused"}"#, "2 refused"), (#"hops_total{fate="lost"}"#, "2 messages"),
    ] {
      let findings = try status().findings(metrics: quiet.merging([name: 2]) { $1 })
      #expect(findings.contains { !$0.isProblem && $0.text.contains(text) }, "\(findings)")
    }
  }
}
