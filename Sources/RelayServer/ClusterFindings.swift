/// One thing about a cluster: in order, or what is wrong and what to do.
package struct ClusterFinding: Codable, Equatable, Sendable {
  package var isProblem: Bool
  package var text: String

  package init(problem text: String) { (isProblem, self.text) = (true, text) }
  package init(inOrder text: String) { (isProblem, self.text) = (false, text) }
}

extension ClusterStatus {
  /// Everything in which a cluster can be less than it should be, as far as one node sees it: what
  /// the alerts of `Docker/prometheus/alerts.yml` wake somebody for.
  ///
  /// - Parameter metrics: that node's samples, without the prefix `pushrelay_`; labels as printed.
  package func findings(metrics: [String: Double]) -> [ClusterFinding] {
    // Without a lease it does not hear of the others, and what it knows of them is from before.
    guard !isAlone else {
      return nodes.prefix(1).flatMap(problems).map { ClusterFinding(problem: $0) }
    }
    return stripeFindings + nodeFindings + roomFindings + settingFindings + metricFindings(metrics)
  }

  /// This node has no lease.
  package var isAlone: Bool { nodes.first?.leaseSeconds.map { $0 < 0 } ?? false }

  private var stripeFindings: [ClusterFinding] {
    let advice = [
      "nobody":
        "has no node, so its pushes are answered 503: start a node, or see the logs of those "
        + "that are there",
      "unreadable": "cannot be read, so its pushes are answered 503: the log of the node whose "
        + "/health/ready is 503 names the message",
      "moving": "is on its way from one node to another: look again in a second",
    ]
    let problems = stripes.compactMap { stripe in
      advice[stripe.state].map { ClusterFinding(problem: "stripe \(stripe.stripe) \($0)") }
    }
    return problems.isEmpty
      ? [ClusterFinding(inOrder: "each of \(stripes.count) stripes has a node")] : problems
  }

  private var nodeFindings: [ClusterFinding] {
    var problems = nodes.flatMap(problems)
    switch nodes.count(where: { $0.state == "active" }) {
    case 0:
      problems.append(
        "no node takes stripes, as each drains or is gone: start one, or have one take stripes "
          + "again with 'pushrelay cluster drain NODE --undo'")
    case 1: problems.append("one node takes stripes: if it dies nobody takes its phones")
    default: break
    }
    return problems.isEmpty
      ? [ClusterFinding(inOrder: "\(nodes.count) nodes are at work, with their leases")]
      : problems.map { ClusterFinding(problem: $0) }
  }

  private func problems(of node: Node) -> [String] {
    let name = "node \(node.name)"
    guard node.state != "gone" else {
      return [
        "\(name) has been gone for \(node.ageSeconds) s: start it again, or take it off the list "
          + "with 'pushrelay cluster forget \(node.name)'"
      ]
    }
    var problems: [String] = []
    let hasNoLease = node.leaseSeconds.map { $0 < 0 } ?? false
    if node.state == "draining" {
      problems.append(
        "\(name) drains: end it, or have it take stripes again with 'pushrelay cluster drain "
          + "\(node.name) --undo'")
    } else if node.stripes.isEmpty, !hasNoLease {
      problems.append(
        "\(name) has no stripe and passes everything on: it has just come, or there are more "
          + "nodes than stripes ('pushrelay cluster restripe')")
    }
    if let left = node.leaseSeconds, left < 0 {
      problems.append(
        "\(name) has had no lease for \(-left) s, and answers pushes 503: it does not reach the "
          + "NATS servers, they have no leader or do not accept it, or another relay has its name; "
          + "see its log and theirs")
    } else if node.leaseSeconds == nil {
      problems.append("\(name) does not answer the others: see its log")
    }
    if let waiting = node.waitingSeconds, waiting > Self.slowSeconds {
      problems.append(
        "\(name) waits for the NATS servers, \(node.waiting ?? 0) records for \(waiting) s: see "
          + "their disks")
    }
    return problems
  }

  /// As the alerts have it.
  private static let slowSeconds = 0.5
  private static let roomPercent = 90
  private static let snapshotPercent = 300

  private var roomFindings: [ClusterFinding] {
    var problems: [String] = []
    for node in nodes {
      if let percent = node.roomPercent, percent >= Self.roomPercent {
        problems.append(
          "a stripe of node \(node.name) has used \(percent) % of its room, and refuses pushes "
            + "when that is full: give the stream more ('nats stream edit pushrelay --max-bytes'), "
            + "then restart the nodes one after the other")
      }
      if let percent = node.snapshotPercent, percent >= Self.snapshotPercent {
        problems.append(
          "a stripe of node \(node.name) has \(percent) % of the bytes that make a snapshot due, "
            + "and none came about: who takes it over has to read them all; see that node's log")
      }
    }
    let isBounded = nodes.contains { $0.roomPercent != nil }
    return problems.isEmpty
      ? [
        ClusterFinding(
          inOrder: isBounded
            ? "each stripe has room and a recent snapshot"
            : "each stripe has a recent snapshot; the stream has no bound but the servers' disks")
      ] : problems.map { ClusterFinding(problem: $0) }
  }

  private var settingFindings: [ClusterFinding] {
    var values: [String: [String: [String]]] = [:]
    for node in nodes {
      for setting in node.settings ?? [] {
        let parts = setting.split(separator: "=", maxSplits: 1).map(String.init)
        guard let key = parts.first else { continue }
        values[key, default: [:]][parts.count > 1 ? parts[1] : "", default: []].append(node.name)
      }
    }
    let problems = values.filter { $0.value.count > 1 }.sorted { $0.key < $1.key }
    // Of a node that does not answer they are not known.
    let isKnown = nodes.allSatisfy { $0.settings != nil || $0.state == "gone" }
    return problems.isEmpty
      ? isKnown ? [ClusterFinding(inOrder: "the nodes' settings are alike")] : []
      : problems.map { key, values in
        let each = values.sorted { $0.key < $1.key }.map { value, names in
          "\(value.isEmpty ? "none" : value) on \(names.joined(separator: ", "))"
        }
        return ClusterFinding(
          problem: "\(key) differs, so phones and providers see another relay as stripes move: "
            + each.joined(separator: "; ")
            + ": configure them alike, and restart those that differ")
      }
  }

  private func metricFindings(_ metrics: [String: Double]) -> [ClusterFinding] {
    let difference = metrics["cluster_clock_difference_seconds"] ?? 0
    let refused = metrics[#"hops_total{fate="refused"}"#] ?? 0
    let lost = metrics[#"hops_total{fate="lost"}"#] ?? 0
    // Since the start: an hour ago is no problem now.
    let hops =
      refused + lost == 0
      ? "no message to another node was lost or refused"
      : "since \(node) started \(Int(lost)) messages to other nodes were lost and \(Int(refused)) "
        + "refused: phones connected again, providers got 503; if it goes on see the network"
    return [
      difference > 1
        ? ClusterFinding(
          problem: "another node's clock differs by \(difference) s, so hops are refused: see NTP")
        : ClusterFinding(inOrder: "the nodes' clocks differ by \(difference) s at most"),
      ClusterFinding(inOrder: hops),
    ]
  }
}
