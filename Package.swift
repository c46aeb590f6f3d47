// swift-tools-version: 6.2
import PackageDescription

/// For every target of ours: Swift 6, explicit existentials and imports, no warnings.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

/// For every target but `TLS`, `HTTP2`, `NATS` and `SQLite`, which wrap C libraries: no unsafe code
/// unseen.
let safe: [SwiftSetting] = strict + [.strictMemorySafety()]

/// What `pushrelay --version` says of the source: scripts/package names it. What the package
/// manager knows of git is as old as its cache of this file.
let commit = Context.environment["PUSHRELAY_COMMIT"] ?? "unknown"

// What the admin listener serves is compiled in: a copied binary still has it.
let cockpitFiles = [
  "Page/index.html", "Page/cockpit.css", "Page/cockpit.js", "Page/kit.js", "Page/lanes.js",
  "Page/find.js", "Page/push.js", "Page/phone.js", "Page/policy.js", "Page/drawer.js",
  "Page/nodes.js", "openapi.json",
]

let package = Package(
  name: "push-relay",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "pushrelay", targets: ["pushrelay"]),
    // Relay and phones in virtual time, for tests of those who send pushes (docs/SCENARIOS.md).
    .library(
      name: "PushRelaySimulation", targets: ["Primitives", "DeviceSimulator", "DeviceModel"]),
    // A relay in the process of a test (examples/swift).
    .library(name: "RelayTestKit", targets: ["RelayTestKit"]),
    // Devices of one's own, any number in a process.
    .library(name: "RelayClient", targets: ["RelayClient"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    // Its traits would bring all of Foundation.
    .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: []),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    // The admin API: HTTP/1.1 with routes, off the hot path. Its traits would bring all of
    // Foundation and a configuration of its own.
    .package(
      url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    // Percentiles of `pushrelay load`, to three digits at any length.
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    // `pushrelay run`. Its traits would bring all of Foundation.
    .package(
      url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2", traits: []),
  ],
  targets: [
    // Layer 0: pure decisions, and protocols without I/O; below them what they share.
    .target(
      name: "CVersion", cSettings: [.define("PUSHRELAY_COMMIT", to: "\"\(commit)\"")]),
    .target(name: "Primitives", dependencies: ["CVersion"], swiftSettings: safe),
    .target(
      name: "RelayCore",
      dependencies: ["Primitives", .product(name: "DequeModule", package: "swift-collections")],
      swiftSettings: safe),
    .target(
      name: "DeviceModel",
      dependencies: [
        "Primitives",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HeapModule", package: "swift-collections"),
      ],
      swiftSettings: safe),
    .systemLibrary(name: "COpenSSL"),
    .target(
      name: "TLS",
      dependencies: ["COpenSSL", .product(name: "NIOCore", package: "swift-nio")],
      swiftSettings: strict),
    .systemLibrary(name: "CNghttp2"),
    .target(
      name: "HTTP2",
      dependencies: [
        "CNghttp2", "Primitives", .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: strict),

    .systemLibrary(name: "CSQLite"),
    .target(
      name: "SQLite",
      dependencies: ["CSQLite", .product(name: "SystemPackage", package: "swift-system")],
      swiftSettings: strict),

    .systemLibrary(name: "CNATS"),
    .target(name: "NATS", dependencies: ["CNATS"], swiftSettings: strict),

    // Layer 1: codecs and clients.
    .target(name: "DeviceLink", dependencies: ["Primitives", "RelayCore"], swiftSettings: safe),
    .target(
      name: "Transport",
      dependencies: ["TLS", "HTTP2", .product(name: "NIOCore", package: "swift-nio")],
      swiftSettings: safe),
    .target(
      name: "RelayClient",
      dependencies: [
        "AdminAPI", "Primitives", "RelayCore", "DeviceLink", "TLS", "HTTP2", "Transport",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: safe),

    .target(
      name: "RelayStore",
      dependencies: [
        "Primitives", "RelayCore", "SQLite",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: safe),

    // Layer 1: events and effects as bytes, recordings, replay.
    .target(
      name: "RelayRecording",
      dependencies: [
        "Primitives", "RelayCore", .product(name: "DequeModule", package: "swift-collections"),
      ],
      swiftSettings: safe),

    // Layer 1: the journal in a cluster's engine.
    .target(
      name: "RelayCluster",
      dependencies: [
        "Primitives", "RelayCore", "RelayRecording", "RelayStore", "NATS",
        .product(name: "DequeModule", package: "swift-collections"),
      ],
      swiftSettings: safe),

    // Layer 1: who may push; the files that say so.
    .target(
      name: "ProviderCredentials",
      dependencies: [
        "Primitives", "RelayCore", "RelayStore", "TLS",
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: safe),

    // Layer 1: what goes wrong on purpose.
    .target(
      name: "RelayFaults", dependencies: ["Primitives", "RelayCore"], swiftSettings: safe),

    // Layer 1: what providers sent, for people.
    .target(
      name: "RelayRequests",
      dependencies: [
        "Primitives", "RelayCore", .product(name: "DequeModule", package: "swift-collections"),
      ],
      swiftSettings: safe),

    // Layer 1: what the admin API and the device API say, for both ends.
    .target(
      name: "AdminAPI",
      dependencies: ["Primitives", "RelayCore", "RelayFaults", "RelayRequests"],
      swiftSettings: safe),

    // Layer 1: how a relay is set up.
    .target(
      name: "RelaySetup",
      dependencies: [
        "Primitives", "RelayCore", "RelayRecording", "RelayCluster", "NATS", "ProviderCredentials",
        .product(name: "Configuration", package: "swift-configuration"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: safe),

    // Layer 2: the server.
    .target(
      name: "RelayServer",
      dependencies: [
        "Primitives", "RelayCore", "RelayRecording", "RelayStore", "RelayCluster", "NATS",
        "AdminAPI", "DeviceLink", "TLS", "HTTP2", "Transport", "ProviderCredentials",
        "RelayFaults", "RelayRequests", "RelaySetup",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: safe),

    // Layer 2: what people see and steer.
    .target(
      name: "Cockpit",
      dependencies: [
        "AdminAPI", "Primitives", "ProviderCredentials", "RelayCore", "RelayFaults",
        "RelayRecording", "RelayRequests",
        "RelayServer", "RelaySetup",
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      resources: cockpitFiles.map { .embedInCode($0) },
      swiftSettings: safe),

    // Layer 1: the other end of the wire, in virtual time.
    .target(
      name: "DeviceSimulator",
      dependencies: [
        "Primitives", "RelayCore", "DeviceModel",
        .product(name: "HeapModule", package: "swift-collections"),
      ],
      swiftSettings: safe),

    // Layer 2: simulated phones in real time, their files, their transfers.
    .target(
      name: "PhoneRuntime",
      dependencies: [
        "Primitives", "RelayCore", "DeviceModel", "DeviceLink", "RelayClient", "DeviceSimulator",
        "TLS",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      swiftSettings: safe),

    // Layer 3: the executable.
    .executableTarget(
      name: "pushrelay",
      dependencies: [
        "Primitives", "RelayCore", "RelayRecording", "RelayStore", "RelayCluster", "DeviceLink",
        "DeviceModel", "TLS", "RelayClient", "RelayServer", "Cockpit", "DeviceSimulator",
        "PhoneRuntime", "AdminAPI", "ProviderCredentials", "RelayRequests", "RelaySetup",
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Configuration", package: "swift-configuration"),
        .product(name: "Histogram", package: "hdrhistogram-swift"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "Subprocess", package: "swift-subprocess"),
        .product(name: "SystemPackage", package: "swift-system"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      swiftSettings: safe),

    // The whole relay for tests of those who send pushes.
    .target(
      name: "RelayTestKit",
      dependencies: [
        "AdminAPI", "Primitives", "RelayCore", "DeviceLink", "ProviderCredentials", "RelayServer",
        "RelaySetup", "Cockpit",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      swiftSettings: safe),

    // How long the core's decisions take; for us, no product (docs/PERFORMANCE.md).
    .executableTarget(
      name: "core-benchmarks",
      dependencies: [
        "DeviceLink", "HTTP2", "Primitives", "RelayCore", "RelayRecording",
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      path: "Sources/CoreBenchmarks", swiftSettings: safe),

    .testTarget(name: "PrimitivesTests", dependencies: ["Primitives"], swiftSettings: safe),
    .testTarget(
      name: "DeviceModelTests", dependencies: ["Primitives", "DeviceModel", "TestSeeds"],
      swiftSettings: safe),
    .testTarget(
      name: "DeviceSimulatorTests",
      dependencies: ["Primitives", "DeviceSimulator", "DeviceModel", "TestSeeds"],
      swiftSettings: safe),
    .testTarget(
      name: "PhoneRuntimeTests",
      dependencies: [
        "Primitives",
        "PhoneRuntime", "DeviceModel", "DeviceSimulator", "RelayClient", "RelayServer",
        "RelaySetup", "TestSupport", "TLS",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: safe),
    .testTarget(
      name: "RelayCoreTests",
      dependencies: [
        "Primitives", "RelayCore", "RelayRecording", "TestSeeds",
        .product(name: "DequeModule", package: "swift-collections"),
      ],
      exclude: ["Golden"], swiftSettings: safe),
    .testTarget(
      name: "RelayRecordingTests",
      dependencies: [
        "DeviceSimulator", "Primitives", "RelayCore", "RelayRecording",
        .product(name: "DequeModule", package: "swift-collections"),
      ],
      swiftSettings: safe),
    .testTarget(
      name: "TLSTests",
      dependencies: ["Primitives", "TLS", .product(name: "NIOCore", package: "swift-nio")],
      swiftSettings: strict),
    .testTarget(
      name: "HTTP2Tests",
      dependencies: ["Primitives", "HTTP2", .product(name: "NIOCore", package: "swift-nio")],
      swiftSettings: strict),
    // ProviderCredentials makes its certificates.
    .testTarget(
      name: "TransportTests",
      dependencies: [
        "Transport", "HTTP2", "TLS", "ProviderCredentials",
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: safe),
    .testTarget(
      name: "DeviceLinkTests", dependencies: ["Primitives", "DeviceLink", "RelayCore"],
      swiftSettings: safe),
    .testTarget(
      name: "RelayClientTests",
      dependencies: [
        "AdminAPI", "Primitives", "RelaySetup",
        "TestSupport", "RelayClient", "RelayServer", "RelayCore", "DeviceLink", "Transport",
        "HTTP2", "TLS",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: safe),
    .testTarget(
      name: "AdminAPITests",
      dependencies: ["AdminAPI", "Primitives", "RelayCore", "RelayRequests"],
      swiftSettings: safe),
    .testTarget(
      name: "ProviderCredentialsTests",
      dependencies: [
        "Primitives", "ProviderCredentials", "RelayCore", "RelayStore", "TestSupport", "TLS",
      ],
      swiftSettings: safe),
    .testTarget(
      name: "RelayFaultsTests", dependencies: ["Primitives", "RelayCore", "RelayFaults"],
      swiftSettings: safe),
    .testTarget(
      name: "RelayRequestsTests", dependencies: ["Primitives", "RelayCore", "RelayRequests"],
      swiftSettings: safe),
    .testTarget(
      name: "RelaySetupTests",
      dependencies: [
        "NATS", "Primitives", "ProviderCredentials", "RelayCore", "RelaySetup",
        .product(name: "Configuration", package: "swift-configuration"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: safe),
    .testTarget(
      name: "RelayServerTests",
      dependencies: [
        "AdminAPI", "Primitives", "ProviderCredentials", "RelayFaults", "RelayRequests",
        "RelaySetup", "RelayServer", "RelayClient", "RelayCluster", "RelayCore", "RelayRecording",
        "RelayStore", "SQLite",
        "TestSupport", "DeviceLink",
        "HTTP2", "NATS", "TLS", "Transport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      swiftSettings: safe),
    .testTarget(
      name: "RelayTestKitTests", dependencies: ["RelayTestKit"], swiftSettings: safe),
    // The example for others, as it stands there.
    .testTarget(
      name: "SwiftExample", dependencies: ["RelayTestKit"], path: "examples/swift/Tests/PushTests",
      swiftSettings: safe),
    // A relay in the process of a test of ours.
    .target(
      name: "TestSupport",
      dependencies: [
        "RelayServer", "RelayClient", "RelaySetup",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      path: "Tests/TestSupport", swiftSettings: safe),
    // Which histories the properties look at.
    .target(name: "TestSeeds", path: "Tests/TestSeeds", swiftSettings: safe),
    // A file system that fails on demand, under SQLite.
    .target(
      name: "CFaultVFS", path: "Tests/CFaultVFS", linkerSettings: [.linkedLibrary("sqlite3")]),
    .testTarget(
      name: "SQLiteTests",
      dependencies: ["SQLite", .product(name: "SystemPackage", package: "swift-system")],
      swiftSettings: strict),
    .testTarget(
      name: "RelayStoreTests",
      dependencies: [
        "Primitives",
        "RelayStore", "RelayCore", "CFaultVFS", "SQLite", "TestSeeds",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "RelayClusterTests",
      dependencies: [
        "TestSeeds",
        "Primitives", "RelayCore", "RelayRecording", "RelayStore", "RelayCluster", "NATS",
      ],
      exclude: ["Fixtures"], swiftSettings: safe),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "Primitives",
        "AdminAPI", "RelayCore", "RelayClient", "RelayRecording", "DeviceLink", "DeviceModel",
        "PhoneRuntime", "TLS",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "Subprocess", package: "swift-subprocess"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      exclude: ["clients"],
      swiftSettings: safe),
    .testTarget(
      name: "CockpitTests",
      dependencies: [
        "AdminAPI", "Primitives", "RelayCore", "RelayFaults", "RelayRequests", "RelayServer",
        "RelaySetup", "Cockpit", "RelayTestKit",
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
      ],
      swiftSettings: safe),
    .testTarget(name: "TidyTests", swiftSettings: safe),
  ]
)

// What is read from outside is fuzzed (docs/FUZZING.md). The functions that do it are a test target
// that feeds them the inputs of the repository; for scripts/fuzz they become a program, and what
// they call is instrumented.
let fuzzTargets: [Target.Dependency] = [
  "CNghttp2", "DeviceLink", "DeviceSimulator", "HTTP2", "Primitives", "ProviderCredentials",
  "RelayCluster", "RelayCore", "RelayRecording", "RelayRequests", "RelayStore", "TLS",
  .product(name: "NIOCore", package: "swift-nio"),
]
if Context.environment["RELAY_TEST_FUZZ"] == nil {
  package.targets.append(
    .testTarget(
      name: "FuzzTests", dependencies: fuzzTargets, exclude: ["Corpora", "Dictionaries"],
      swiftSettings: strict))
} else {
  let sanitizers = "-sanitize=fuzzer,address"
  package.targets += [
    .target(
      name: "FuzzTests", dependencies: fuzzTargets, path: "Tests/FuzzTests",
      sources: ["Targets"], swiftSettings: strict),
    .executableTarget(
      name: "fuzz", dependencies: ["FuzzTests"], path: "Tests/Fuzz",
      linkerSettings: [.unsafeFlags([sanitizers])]),
  ]
  let instrumented = [
    "DeviceLink", "DeviceModel", "DeviceSimulator", "FuzzTests", "HTTP2", "Primitives",
    "ProviderCredentials", "RelayCluster", "RelayCore", "RelayRecording", "RelayRequests",
    "RelayStore", "TLS",
  ]
  for target in package.targets where instrumented.contains(target.name) {
    target.swiftSettings?.append(.unsafeFlags([sanitizers, "-enable-testing"]))
  }
}
