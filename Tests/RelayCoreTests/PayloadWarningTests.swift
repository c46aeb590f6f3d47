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

@Suite struct UnknownAlertKeyTests {
  @Test(arguments: [
    (#"{"aps":{"alert":"Hello"}}"#, false), (#"{"aps":{"alert":{}}}"#, false),
    (#"{"aps":{"alert":{"title":"a","body":"b","launch-image":"c"}}}"#, false),
    (#"{"aps":{"alert":{"title":{"loc-key":"a"},"sound":"b"}}}"#, false),
    (#"{"aps":{"sound":{"critical":1,"name":"a","volume":0.5}}}"#, false),
    (#"{"aps":{"alert":{"title":"a","bdy":"b"}}}"#, true),
    (#"{"aps":{"sound":{"critical":1,"nam":"a"}}}"#, true),
    (#"{"aps":{"alert":{"Title":"a"}}}"#, true), (#"{"aps":[],"alert":{"x":1}}"#, false),
    (#"{"alert":{"x":1}}"#, false),
  ])
  func alertsAndSoundsHaveTheirKeys(payload: String, isNoted: Bool) throws {
    #expect(try JSONTree.read(Array(payload.utf8)).hasUnknownAlertKey == isNoted)
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
