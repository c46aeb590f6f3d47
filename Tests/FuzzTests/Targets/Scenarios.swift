@testable import DeviceSimulator

/// Scenario files: one is read, or what is wrong with it is said with the line where it is.
enum Scenarios {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    let bytes = [UInt8](input)
    let lines = 1 + bytes.count(where: { $0 == UInt8(ascii: "\n") })
    do throws(ScenarioProblem) {
      _ = try Scenario(json: bytes, file: "x.json")
    } catch {
      guard (1...lines).contains(error.line), !error.text.isEmpty else {
        throw Finding("line \(error.line) of \(lines): \(error.text)")
      }
    }
  }
}
