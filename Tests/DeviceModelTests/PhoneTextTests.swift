import Testing

@testable import DeviceModel

@Suite struct PhoneTextTests {
  @Test func refusalsReadAsInTheRelaysLog() {
    let texts = LaunchRefusal.allCases.map { PushOutcome.notLaunched($0).description }
    #expect(texts.first == "not launched: force-quit")
    #expect(Set(texts).count == texts.count)
    #expect(
      CallbackOutcome.allCases.map { "\(PushOutcome($0))" } == ["newData", "noData", "failed"])
  }
}
