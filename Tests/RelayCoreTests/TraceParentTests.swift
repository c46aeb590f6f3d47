import Testing

@testable import RelayCore

/// `traceparent`, by the examples and rules of W3C, "Trace Context".
@Suite struct TraceParentTests {
  private static let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  private func read(_ text: String) -> String? {
    let bytes = Array(text.utf8)
    return TraceParent(bytes.span)?.description
  }

  @Test func whatIsInOrderIsTaken() {
    #expect(read(Self.good) == Self.good)
    #expect(
      read("01" + Self.good.dropFirst(2) + "-what-comes-later") == "01" + Self.good.dropFirst(2))
  }

  @Test(arguments: [
    "", "00", "ff" + good.dropFirst(2), good + "-more", good.uppercased(),
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
    "0g-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "01" + good.dropFirst(2) + "x",
  ])
  func whatIsNotIsIgnored(text: String) { #expect(read(text) == nil) }
}
