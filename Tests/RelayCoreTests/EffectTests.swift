import Testing

@testable import RelayCore

@Suite struct EffectTests {
  @Test func everyRefusalHasItsRow() {
    let rows = DeviceRefusal.allCases.map(\.row)
    #expect(rows.map(\.status) == [401, 404, 404, 409, 409, 503, 503, 503, 404, 409])
    #expect(Set(rows.map(\.reason)).count == rows.count)
    #expect(rows.allSatisfy { !$0.text.isEmpty })
  }

  @Test func closeReasonsHaveDifferentWords() {
    #expect(Set(CloseReason.allCases.map(\.name)).count == CloseReason.allCases.count)
  }
}
