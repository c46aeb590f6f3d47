import Glibc

/// What is wrong with how an input was handled.
struct Finding: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// What can be fuzzed: `scripts/fuzz NAME`. Each target is a function that throws when what it
/// checks does not hold, and traps or is stopped by the address sanitizer when worse happens.
enum FuzzTarget: String, CaseIterable {
  case connections
  case frames
  case headerBlocks = "header-blocks"
  case huffman
  case providerRequests = "provider-requests"
  case payloads
  case deviceLines = "device-lines"
  case binaryFrames = "binary-frames"
  case journalRows = "journal-rows"
  case recordedValues = "recorded-values"
  case scenarios
  case adminValues = "admin-values"
  case certificates
  case clusterMessages = "cluster-messages"
  case providerTokens = "provider-tokens"
  case proxyHeads = "proxy-heads"

  func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    switch self {
    case .connections: try Connections.run(input)
    case .frames: try Frames.run(input)
    case .headerBlocks: try HeaderBlocks.run(input)
    case .huffman: try Huffman.run(input)
    case .providerRequests: try ProviderRequests.run(input)
    case .payloads: try Payloads.run(input)
    case .deviceLines: try DeviceLines.run(input)
    case .binaryFrames: try BinaryFrames.run(input)
    case .journalRows: try JournalRows.run(input)
    case .recordedValues: try RecordedValues.run(input)
    case .scenarios: try Scenarios.run(input)
    case .adminValues: try AdminValues.run(input)
    case .certificates: try Certificates.run(input)
    case .clusterMessages: try ClusterMessages.run(input)
    case .providerTokens: try ProviderTokens.run(input)
    case .proxyHeads: try ProxyHeads.run(input)
    }
  }
}

/// The target of this process, from the environment: libFuzzer has all arguments.
private nonisolated(unsafe) var target = FuzzTarget.headerBlocks

@c(pushrelay_fuzz_begin) public func begin() {
  let name = getenv("RELAY_TEST_FUZZ_TARGET").map { String(cString: $0) } ?? ""
  guard let named = FuzzTarget(rawValue: name) else { preconditionFailure("no target \(name)") }
  target = named
}

@c(pushrelay_fuzz) public func fuzz(_ bytes: UnsafePointer<UInt8>?, _ count: Int) {
  do throws(Finding) {
    try target.run(UnsafeRawBufferPointer(start: bytes, count: count))
  } catch {
    // With optimization the text of a trap is not printed.
    var text = "\(target.rawValue): \(error)\n"
    text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    abort()
  }
}
