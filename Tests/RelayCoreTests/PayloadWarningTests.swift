import RelayCore
import Testing

@Suite struct PayloadWarningTests {
  @Test func everyLintHasItsOwnNameAndText() {
    #expect(Set(PayloadWarning.allCases.map(\.name)).count == PayloadWarning.allCases.count)
    #expect(Set(PayloadWarning.allCases.map(\.text)).count == PayloadWarning.allCases.count)
    for warning in PayloadWarning.allCases {
      #expect(warning.name == String(describing: warning))
      #expect(warning.text.count > 20 && !warning.text.hasSuffix("."))
    }
  }
}

@Suite struct CaseSetTests {
  @Test func everyCaseHasABit() {
    #expect(PayloadWarning.allCases.allSatisfy { $0.rawValue < 32 })
    #expect(ApsKey.allCases.allSatisfy { $0.rawValue < 32 })
  }

  @Test func behavesLikeASet() {
    for first in PayloadWarning.allCases {
      for second in PayloadWarning.allCases {
        var set = CaseSet(first)
        set.insert(second)
        #expect(set == CaseSet(first).union(CaseSet(second)))
        #expect(set.members == PayloadWarning.allCases.filter { $0 == first || $0 == second })
        #expect(set.intersects(CaseSet(second)))
        #expect(set.subtracting(CaseSet(second)) == (first == second ? CaseSet() : CaseSet(first)))
        set.set(second, to: false)
        #expect(!set.contains(second))
        #expect(set.isEmpty == (first == second))
        set.set(second, to: true)
        #expect(set.contains(second))
      }
    }
  }
}
