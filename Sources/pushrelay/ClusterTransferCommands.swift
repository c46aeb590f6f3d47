import ArgumentParser
import Configuration
import RelayCluster
import RelayCore
import RelayServer
import RelaySetup
import RelayStore

struct EngineOptions: ParsableArguments {
  @Option(help: "URLs of NATS servers with JetStream, with commas.")
  var nats: String?
  @Option(help: "PEM file of the authorities of their certificates (default: the system's).")
  var natsCA: String?
  @Option(help: "PEM file of the certificate that they demand.")
  var natsCertificate: String?
  @Option(help: "PEM file of its key.")
  var natsKey: String?
  @Option(help: "File with the JWT and the seed of a NATS user (.creds).")
  var natsCredentials: String?

  /// By the names of the settings.
  var texts: [String: String?] {
    [
      "nats": nats, "natsCA": natsCA, "natsCertificate": natsCertificate, "natsKey": natsKey,
      "natsCredentials": natsCredentials,
    ]
  }
}

struct TransferOptions: ParsableArguments {
  @Option(help: "A JSON file with settings, as of 'pushrelay serve'.")
  var config: String?
  @OptionGroup var engine: EngineOptions
  @Flag(help: "Print what was copied as JSON.")
  var json = false

  /// Reads the settings for a transfer; a node's own ones do not matter.
  func read() async throws -> RelayConfiguration {
    let own = [
      "store": "jetstream", "node": "none", "clock": "system", "at": "", "tokenClock": "system",
    ].merging(engine.texts.compactMapValues(\.self)) { $1 }
    return try await RelayConfiguration(
      flags: own.mapValues { .string($0) }, file: config)
  }
}

extension ClusterCommand {
  struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "export",
      abstract: "Copy a cluster's journal to a new SQLite journal, while its relays go on.",
      discussion: """
        Examples:

          pushrelay cluster export backup.sqlite --nats nats://127.0.0.1:4222
          pushrelay cluster export /var/lib/pushrelay/relay.sqlite \\
            --config relay.json --json

        This is the backup of a cluster, and the way back to one relay: put the file into an empty \
        state directory as relay.sqlite and start 'pushrelay serve --store sqlite' there; or bring \
        it into a new cluster with 'pushrelay cluster import'. It holds everything but private \
        keys: devices, apps, tokens, stored notifications, used budgets, unregistered tokens, \
        public halves of provider keys, from which a relay makes its keys/ when it has none.

        Relays are not disturbed. Each stripe is copied as of one moment, one after the other; a \
        device is on one stripe with all that is its own, so every device is consistent. What is \
        accepted, delivered or deleted after that is as it was. Of two phones between which a \
        token that one brought along went meanwhile, one has it.
        """)

    @Argument(help: "The file to write; it must not exist yet.")
    var file: String
    @OptionGroup var options: TransferOptions

    func run() async throws {
      let settings = try await options.read()
      let notes = ProgressNotes()
      let done = try await ClusterExport.run(settings.engine, to: file) { notes.report($0) }
      try TransferReport(file, done.counts, stripes: done.stripes)
        .say(options.json, "\(file) has the journal of the cluster")
    }
  }

  struct Import: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "import",
      abstract: "Bring a SQLite journal into NATS servers that have no cluster's journal yet.",
      discussion: """
        Examples:

          pushrelay cluster import .pushrelay/relay.sqlite --nats nats://127.0.0.1:4222
          pushrelay cluster import backup.sqlite --config relay.json

        End the relay first; the file is only read and stays as it is. The stream is made as the \
        first node makes it (natsReplicas and stripes in --config or in the environment), and no \
        node starts until all of the journal is there: after an interruption run the command \
        again, which begins from the start. Then start nodes: phones keep their secrets and \
        tokens, what was stored is stored, and the provider keys of the file are those of the \
        cluster.
        """)

    @Argument(help: "relay.sqlite of a relay that has ended, or a backup.")
    var file: String
    @OptionGroup var options: TransferOptions

    func run() async throws {
      let settings = try await options.read()
      let notes = ProgressNotes()
      let done = try await ClusterImport.run(
        file, into: settings.engine, stripes: settings.stripes, replicas: settings.natsReplicas,
        now: { WallClock.now }, onProgress: { notes.report($0) })
      try TransferReport(file, done.counts, stripes: done.stripes)
        .say(options.json, "the cluster has the journal of \(file)")
    }
  }
}

extension ClusterCommand {
  struct Restripe: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "restripe",
      abstract: "Give a cluster's journal another number of stripes, while no node runs.",
      discussion: """
        Examples:

          pushrelay cluster restripe 64 --nats nats://127.0.0.1:4222
          pushrelay cluster restripe 24 --keep backup.sqlite --config relay.json

        A cluster has at most as many nodes with phones as it has stripes (1 to 256, 8 unless \
        'stripes' said otherwise when its journal was made). End all nodes first. The journal is \
        exported to a file, deleted from the servers and imported again, on as many of them. The \
        file stays: after an interruption 'pushrelay cluster import' brings it back.
        """)

    @Argument(help: "How many, from 1 to 256.")
    var stripes: Int
    @Option(help: "The file for the journal in between; it must not exist yet.")
    var keep = "pushrelay-restripe.sqlite"
    @OptionGroup var options: TransferOptions

    func validate() throws {
      guard Limits.stripes.contains(stripes) else {
        throw ValidationError("a cluster has 1 to \(Limits.stripes.upperBound) stripes")
      }
    }

    func run() async throws {
      let settings = try await options.read()
      let notes = ProgressNotes()
      let replicas: Int
      do throws(StoreError) {
        replicas = try await ClusterExport.last(
          settings.engine, to: keep, onProgress: { notes.report($0) })
      } catch .exists {
        throw CommandError(
          "\(keep) exists already, as after a restripe before: move it away, or name another file "
            + "with --keep")
      }
      do {
        let done = try await ClusterImport.run(
          keep, into: settings.engine, stripes: stripes, replicas: replicas,
          now: { WallClock.now }, onProgress: { notes.report($0) })
        try TransferReport(keep, done.counts, stripes: done.stripes)
          .say(options.json, "the journal of the cluster is restriped, and still in \(keep)")
      } catch {
        throw CommandError(
          "\(error); the journal is in \(keep): PUSHRELAY_STRIPES=\(stripes) "
            + "PUSHRELAY_NATS_REPLICAS=\(replicas) pushrelay cluster import \(keep) goes on")
      }
    }
  }
}

/// Writes progress to standard error, once a second.
final class ProgressNotes {
  private var lastShown = ContinuousClock.now

  func report(_ text: String) {
    guard ContinuousClock.now - lastShown > .seconds(1) else { return }
    lastShown = ContinuousClock.now
    Console.log(text)
  }
}

private struct TransferReport: Encodable {
  private enum CodingKeys: CodingKey { case file, stripes }

  let file: String
  let stripes: Int
  let counts: JournalCounts

  init(_ file: String, _ counts: JournalCounts, stripes: Int) {
    (self.file, self.counts, self.stripes) = (file, counts, stripes)
  }

  func encode(to encoder: any Encoder) throws {
    try counts.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(file, forKey: .file)
    try container.encode(stripes, forKey: .stripes)
  }

  func say(_ isJSON: Bool, _ what: String) throws {
    if isJSON { return try Console.say(json: self) }
    Console.say(
      "\(what): \(counts.devices) devices, \(counts.apps) apps, \(counts.ownTokens) own tokens, "
        + "\(counts.notifications) notifications, \(counts.unregisteredTokens) unregistered "
        + "tokens, \(counts.providerKeys) provider keys, \(counts.channels) channels, "
        + "in \(stripes) stripes")
  }
}
