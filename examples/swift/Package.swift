// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "push-tests",
  platforms: [.macOS(.v15)],
  // With yours: .package(url: "…/push-relay", branch: "main").
  dependencies: [.package(name: "push-relay", path: "../..")],
  targets: [
    .testTarget(
      name: "PushTests",
      dependencies: [.product(name: "RelayTestKit", package: "push-relay")])
  ])
