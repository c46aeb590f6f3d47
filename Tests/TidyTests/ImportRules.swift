/// Which modules a target may import. Imports go down only, never sideways (docs/ARCHITECTURE.md,
/// "Layers").
struct ImportRule {
  /// The target, a folder under `Sources/`.
  let target: String
  /// Our own modules it may import. Each stands earlier in `importRules` than the target itself.
  let own: Set<String>
  /// Modules of packages and of the toolchain that it may import.
  let others: Set<String>

  /// Whether an `import` of that module is in order.
  func allows(_ module: String) -> Bool {
    own.contains(module) || others.contains(module)
  }
}

private let collections: Set<String> = [
  "Collections", "DequeModule", "HeapModule", "OrderedCollections", "BasicContainers",
]
private let nio: Set<String> = [
  "NIOCore", "NIOPosix", "NIOConcurrencyHelpers", "NIOFoundationCompat",
]
/// Without all of Foundation, which would double the executable (docs/RELEASING.md).
private let toolchain: Set<String> = [
  "FoundationEssentials", "Synchronization", "Dispatch", "Glibc",
]
private let observability: Set<String> = ["Logging", "Metrics"]
private let lifecycle: Set<String> = ["ServiceLifecycle", "UnixSignals"]
private let layerZero: Set<String> = ["Primitives", "RelayCore", "DeviceModel", "TLS", "HTTP2"]

/// The table, from the bottom up. A target that is not in it fails the test: add it, with thought.
let importRules: [ImportRule] = [
  // Layer 0: decisions without I/O, clock, randomness, NIO or Foundation.
  ImportRule(target: "CVersion", own: [], others: []),
  ImportRule(target: "Primitives", own: ["CVersion"], others: []),
  ImportRule(target: "RelayCore", own: ["Primitives"], others: collections),
  ImportRule(target: "DeviceModel", own: ["Primitives"], others: collections),
  // Layer 0: sans-IO protocol engines; NIOCore for ByteBuffer only.
  ImportRule(target: "COpenSSL", own: [], others: []),
  ImportRule(target: "CNghttp2", own: [], others: []),
  // Synchronization: a client's tickets, kept by the context that all its threads share.
  ImportRule(target: "TLS", own: ["COpenSSL"], others: ["NIOCore", "Synchronization"]),
  ImportRule(target: "CSQLite", own: [], others: []),
  ImportRule(target: "SQLite", own: ["CSQLite"], others: ["Glibc", "SystemPackage"]),
  ImportRule(target: "CNATS", own: [], others: []),
  // Synchronization: which refusals were told, by whichever of the library's threads.
  ImportRule(target: "NATS", own: ["CNATS"], others: ["Dispatch", "Glibc", "Synchronization"]),
  ImportRule(target: "HTTP2", own: ["CNghttp2", "Primitives"], others: ["NIOCore", "Glibc"]),
  // Layer 1.
  ImportRule(target: "DeviceLink", own: ["Primitives", "RelayCore"], others: []),
  ImportRule(
    target: "RelayRecording", own: ["Primitives", "RelayCore"], others: ["DequeModule"]),
  ImportRule(target: "Transport", own: ["TLS", "HTTP2"], others: ["NIOCore"]),
  ImportRule(
    target: "RelayStore", own: ["Primitives", "RelayCore", "SQLite"],
    others: toolchain.union(["SystemPackage"])),
  ImportRule(
    target: "RelayCluster",
    own: ["Primitives", "RelayCore", "RelayRecording", "RelayStore", "NATS"],
    others: toolchain.union(collections)),
  // What goes wrong on purpose; and what both ends of the admin API and the device API say.
  ImportRule(
    target: "RelayFaults", own: ["Primitives", "RelayCore"], others: ["Synchronization"]),
  ImportRule(
    target: "RelayRequests", own: ["Primitives", "RelayCore"], others: collections),
  ImportRule(
    target: "AdminAPI", own: ["Primitives", "RelayCore", "RelayFaults", "RelayRequests"],
    others: ["FoundationEssentials"]),
  ImportRule(
    target: "RelayClient",
    own: ["AdminAPI", "HTTP2", "TLS", "Transport", "DeviceLink", "RelayCore", "Primitives"],
    others: nio.union(toolchain).union(observability)),
  // Relay and phones in virtual time: a library for others' tests, so nothing heavy.
  ImportRule(
    target: "DeviceSimulator", own: ["Primitives", "RelayCore", "DeviceModel"],
    others: collections.union(toolchain)),
  // Measures the core, recordings and the protocol engine; reads payload files and prints.
  ImportRule(
    target: "CoreBenchmarks",
    own: ["Primitives", "RelayCore", "RelayRecording", "DeviceLink", "HTTP2"],
    others: toolchain.union(["NIOCore", "Foundation"])),
  // Layer 1: keys, certificates, settings; nothing of loops and connections.
  ImportRule(
    target: "ProviderCredentials", own: ["Primitives", "RelayCore", "RelayStore", "TLS"],
    others: toolchain.union(["SystemPackage"])),
  ImportRule(
    target: "RelaySetup",
    own: [
      "Primitives", "RelayCore", "RelayRecording", "RelayCluster", "NATS", "ProviderCredentials",
    ],
    others: toolchain.union(["Configuration", "Logging"])),
  // Layer 2: sockets, threads, files.
  ImportRule(
    target: "RelayServer",
    own: layerZero.union([
      "DeviceLink", "Transport", "RelayRecording", "RelayStore", "RelayCluster", "NATS",
      "AdminAPI", "ProviderCredentials", "RelayFaults", "RelayRequests", "RelaySetup",
    ]),
    others: nio.union(toolchain).union(collections).union(observability).union(lifecycle)
      .union(["SystemPackage"])),
  // What people see and steer: the relay, and nothing of its wire.
  ImportRule(
    target: "Cockpit",
    own: [
      "AdminAPI", "Primitives", "ProviderCredentials", "RelayCore", "RelayFaults",
      "RelayRecording", "RelayRequests", "RelayServer", "RelaySetup",
    ],
    others: nio.union(toolchain).union(observability).union(lifecycle).union([
      "Hummingbird", "HummingbirdCore", "HTTPTypes", "NIOHTTPTypes",
    ])),
  // Phones in real time, NIOHTTP1 for their transfers. Never RelayServer: it is the other end of
  // the wire.
  ImportRule(
    target: "PhoneRuntime",
    own: [
      "Primitives", "RelayCore", "DeviceModel", "DeviceSimulator", "DeviceLink", "RelayClient",
      "TLS",
      "Transport",
    ],
    others: nio.union(toolchain).union(collections).union(observability).union(lifecycle)
      .union(["NIOHTTP1", "SystemPackage"])),
  // Layer 3: everything.
  // The relay for others' tests: all of it, in their process.
  ImportRule(
    target: "RelayTestKit",
    own: [
      "AdminAPI", "Primitives", "RelayCore", "DeviceLink", "ProviderCredentials", "RelayServer",
      "RelaySetup", "Cockpit",
    ],
    others: toolchain.union(observability).union(lifecycle)),
  ImportRule(
    target: "pushrelay",
    own: layerZero.union([
      "DeviceLink", "Transport", "RelayRecording", "RelayStore", "RelayCluster", "RelayClient",
      "RelayServer", "Cockpit", "DeviceSimulator", "PhoneRuntime", "AdminAPI",
      "ProviderCredentials", "RelayRequests", "RelaySetup",
    ]),
    others: nio.union(toolchain).union(collections).union(observability).union(lifecycle)
      .union([
        "ArgumentParser", "Configuration", "Histogram", "NIOHTTP1", "Subprocess", "SystemPackage",
      ])),
]

/// The modules that a source file imports, with the line of each, in whatever way it is written:
/// attributes, access level, single declarations, submodules.
func imports(in source: SourceText) -> [(module: String, line: Int)] {
  let accessLevels: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]
  let kinds: Set<Substring> = [
    "struct", "class", "enum", "protocol", "func", "var", "let", "typealias", "actor",
  ]
  return source.lines.enumerated().flatMap { index, line in
    line.split(separator: ";").compactMap { statement in
      var words = statement.split(whereSeparator: \.isWhitespace)[...]
      while let word = words.first, word.hasPrefix("@") || accessLevels.contains(word) {
        words.removeFirst()
      }
      guard words.popFirst() == "import" else { return nil }
      if let kind = words.first, kinds.contains(kind) { words.removeFirst() }
      guard let module = words.first?.split(separator: ".").first else { return nil }
      return (String(module), index + 1)
    }
  }
}
