import ArgumentParser
import NIOHTTP1
import Primitives
import RelayServer
import RelaySetup

struct ClusterCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cluster",
    abstract: "Show the nodes of a cluster, have one give its phones away, or move its journal.",
    discussion: """
      Examples:

        pushrelay cluster status
        pushrelay cluster status --state /var/lib/pushrelay --json
        pushrelay cluster doctor
        pushrelay cluster drain a
        pushrelay cluster drain a --undo
        pushrelay cluster forget a
        pushrelay cluster export backup.sqlite --nats nats://127.0.0.1:4222
        pushrelay cluster import relay.sqlite --nats nats://127.0.0.1:4222

      Any node can be asked. One that drains gives its stripes, and with them the phones on them, \
      to the others, one after the other, and refuses no push meanwhile; it goes on taking \
      connections until it ends, and takes stripes again with --undo. One that died stays on the \
      list for a day, or until it is forgotten. export and import speak with the NATS servers \
      themselves. docs/CLUSTER.md says more.
      """,
    subcommands: [
      Status.self, Doctor.self, Drain.self, Forget.self, Export.self, Import.self, Restripe.self,
    ],
    defaultSubcommand: Status.self
  )

  struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "status", abstract: "Show the nodes, and who has which stripe.")
    @OptionGroup var common: AdminOptions

    func run() async throws { try await common.show(.GET, "/v1/cluster", as: ClusterCommand.show) }
  }

  struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "doctor",
      abstract:
        "Say all that is wrong with a cluster, and what to do; exit status 1 if anything is.")
    @OptionGroup var common: AdminOptions

    func run() async throws {
      let client = ControlClient(state: common.state)
      let path = "/v1/cluster"
      guard let status = try await client.ask(ClusterStatus.self, .GET, path, printing: false)
      else { return }
      let metrics = Self.samples(try await client.call(.GET, "/metrics"))
      let findings = status.findings(metrics: metrics)
      if common.json {
        try Console.say(json: findings)
      } else {
        Console.say("as node \(status.node) sees it:")
        for finding in findings {
          Console.say("\(finding.isProblem ? "problem" : "ok     ")  \(finding.text)")
        }
      }
      if findings.contains(where: \.isProblem) { throw ExitCode(1) }
    }

    /// The samples in Prometheus' text format.
    private static func samples(_ text: [UInt8]) -> [String: Double] {
      var samples: [String: Double] = [:]
      for line in String(decoding: text, as: UTF8.self).split(separator: "\n")
      where line.hasPrefix("pushrelay_") {
        let parts = line.dropFirst("pushrelay_".count).split(separator: " ")
        if parts.count == 2 { samples[String(parts[0])] = Double(parts[1]) }
      }
      return samples
    }
  }

  struct Drain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "drain", abstract: "Have a node give its stripes to the others.")
    @Argument(help: "The node's name.")
    var node: String
    @Flag(help: "Have it take stripes again.")
    var undo = false
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.show(
        undo ? .DELETE : .POST, "/v1/cluster/nodes/\(Query.escaped(node))/drain"
      ) {
        ClusterCommand.show($0)
        // That was the moment at which it was told.
        let hasTakers = $0.nodes.contains { $0.state == "active" && $0.name != node }
        let begun =
          undo
          ? "takes stripes again"
          : hasTakers
            ? "gives its stripes away"
            : "keeps its stripes until another node takes some: all drain"
        Console.log("\(node) \(begun); 'pushrelay cluster status' says how far it is")
      }
    }
  }

  struct Forget: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "forget", abstract: "Take a node that is gone off the list.")
    @Argument(help: "The node's name.")
    var node: String
    @OptionGroup var common: AdminOptions

    func run() async throws {
      try await common.show(
        .DELETE, "/v1/cluster/nodes/\(Query.escaped(node))", as: ClusterCommand.show)
    }
  }

  private static func show(_ status: ClusterStatus) {
    let width = status.nodes.map(\.name.count).max() ?? 0
    for (place, node) in status.nodes.enumerated() {
      let stripes = node.stripes.map(String.init).joined(separator: " ")
      let waits = node.waiting.flatMap { count in
        count == 0 ? nil : "  \(count) records wait, since \(node.waitingSeconds ?? 0) s"
      }
      Console.say(
        "\(node.name.padded(to: width))  \(node.state.padded(to: 8))  "
          + "stripes \(stripes.isEmpty ? "none" : stripes)  "
          + "(\(node.partitions) of \(status.partitions) partitions)  "
          + "provider \(node.provider)  device \(node.device)"
          + (RelayConfiguration.Endpoint(node.device)?.isWildcard == true
            ? " (no phone is led there: advertiseDevice)" : "")
          + (place == 0 ? "  this one" : "  seen \(node.ageSeconds) s ago")
          + (waits ?? ""))
    }
    if status.isAlone {
      Console.say(
        "this one has no lease: it answers pushes 503, and what it says of the others is from "
          + "before ('pushrelay cluster doctor')")
    }
    Console.say("form \(status.form) is written: \(status.formReason)")
    for stripe in status.stripes where stripe.node == nil {
      let what = stripe.state == "moving" ? "is on its way" : "has no node: its pushes get 503"
      Console.say("stripe \(stripe.stripe) \(what)")
    }
  }
}
