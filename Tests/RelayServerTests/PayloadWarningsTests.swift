import RelayCore
import Testing

@testable import RelayServer

@Suite struct PayloadWarningsTests {
  private func id(_ number: UInt64) -> UniqueID { UniqueID(high: 1, low: number) }

  @Test func theLastOnesAreRemembered() {
    var warnings = PayloadWarnings(limit: 3)
    for number in 0..<5 as Range<UInt64> {
      warnings.remember(CaseSet(PayloadWarning.mismatch), of: id(number))
    }
    warnings.remember(CaseSet(), of: id(9))
    #expect(warnings[id(1)].isEmpty && warnings[id(9)].isEmpty)
    for number in 2..<5 as Range<UInt64> { #expect(warnings[id(number)].members == [.mismatch]) }
  }
}
