import RelayCore
import Testing

@Suite struct LintTests {
  @Test func everyLintHasItsOwnNameAndText() {
    #expect(Set(Lint.allCases.map(\.name)).count == Lint.allCases.count)
    #expect(Set(Lint.allCases.map(\.text)).count == Lint.allCases.count)
    for lint in Lint.allCases {
      #expect(lint.name == String(describing: lint))
      #expect(lint.text.count > 20 && !lint.text.hasSuffix("."))
    }
  }
}

@Suite struct CaseSetTests {
  @Test func everyCaseHasABit() {
    #expect(Lint.allCases.allSatisfy { $0.rawValue < 32 })
    #expect(ApsKey.allCases.allSatisfy { $0.rawValue < 32 })
  }

  @Test func behavesLikeASet() {
    for first in Lint.allCases {
      for second in Lint.allCases {
        var set = CaseSet(first)
        set.insert(second)
        #expect(set == CaseSet(first).union(CaseSet(second)))
        #expect(set.members == Lint.allCases.filter { $0 == first || $0 == second })
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
