// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
]

// A package of its own, so that what is only measured against never enters the relay's own build.
let package = Package(
  name: "push-relay-benchmarks",
  products: [
    .executable(name: "nio-http2-server", targets: ["nio-http2-server"])
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.36.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
  ],
  targets: [
    .executableTarget(
      name: "nio-http2-server",
      dependencies: [
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP2", package: "swift-nio-http2"),
        .product(name: "NIOHPACK", package: "swift-nio-http2"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      path: "Sources/NIOHTTP2Server",
      swiftSettings: settings
    )
  ]
)
