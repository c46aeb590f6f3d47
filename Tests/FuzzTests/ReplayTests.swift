import Foundation
import Testing

/// The inputs that scripts/fuzz found to be of interest, once more: each must be handled as its
/// target says.
@Suite struct ReplayTests {
  private static let corpora = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "Corpora")

  private static func inputs(of target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
    let folder = corpora.appending(path: target.rawValue)
    let names = try FileManager.default.contentsOfDirectory(
      atPath: folder.path(percentEncoded: false))
    return try names.sorted().map { name in
      (name, [UInt8](try Data(contentsOf: folder.appending(path: name))))
    }
  }

  /// As a value: a closure that throws it crashes the compiler of Swift 6.3.1.
  private static func finding(of target: FuzzTarget, in bytes: [UInt8]) -> String? {
    bytes.withUnsafeBytes { input in
      do throws(Finding) {
        try target.run(input)
        return nil
      } catch {
        return "\(error)"
      }
    }
  }

  @Test(arguments: FuzzTarget.allCases)
  func everyInputIsHandled(target: FuzzTarget) throws {
    let inputs = try Self.inputs(of: target)
    #expect(!inputs.isEmpty)
    for (name, bytes) in inputs {
      if let finding = Self.finding(of: target, in: bytes) {
        Issue.record("Corpora/\(target.rawValue)/\(name): \(finding)")
      }
    }
  }

  /// The lengths an input may have at its ends.
  @Test(arguments: FuzzTarget.allCases)
  func shortInputsAreHandled(target: FuzzTarget) throws {
    for byte in UInt8.min...UInt8.max {
      for count in 0...3 {
        let bytes = [UInt8](repeating: byte, count: count)
        #expect(Self.finding(of: target, in: bytes) == nil, "\(count) times \(byte)")
      }
    }
  }

  @Test func everyCorpusHasATarget() throws {
    let names = try FileManager.default.contentsOfDirectory(
      atPath: Self.corpora.path(percentEncoded: false))
    #expect(Set(names) == Set(FuzzTarget.allCases.map(\.rawValue)))
  }
}
