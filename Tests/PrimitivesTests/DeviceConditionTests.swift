import Primitives
import Testing

@Suite struct DeviceConditionTests {
  @Test func aReportChangesWhatItSaysAndNothingElse() {
    for power in Power.allCases {
      for network in Network.allCases {
        for screen in Screen.allCases {
          let condition = DeviceCondition(power: power, network: network, screen: screen)
          var other = DeviceCondition(power: .low, network: .cellular, screen: .on)
          other.apply(ConditionReport(condition))
          #expect(other.power == power && other.screen == screen)
          // Without a network there is nobody to tell of it.
          #expect(other.network == (network.isConnected ? network : .cellular))
          other.apply(ConditionReport())
          #expect(other.power == power)
          #expect(condition.liftsBudget == (power == .charging && network == .wifi))
          #expect(condition.withholdsSilent == (power == .low))
        }
      }
    }
  }
}
