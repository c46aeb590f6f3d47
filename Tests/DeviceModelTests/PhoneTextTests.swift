import Primitives
import Testing

@testable import DeviceModel

@Suite struct PhoneTextTests {
  @Test func aTimeline() {
    var bench = Bench([.ordinary("mail", modes: [.remoteNotification])])
    bench.send(.pushReceived(.alert(1, wakesApp: true)))
    bench.wait(.minutes(1))
    #expect(
      bench.effects.map { bench.phone.line(for: $0) } == [
        "2026-11-21T00:00:00.000Z phone: woke",
        "2026-11-21T00:00:00.000Z mail: launched for push 1",
        "2026-11-21T00:00:00.000Z mail: started without its state: locked",
        "2026-11-21T00:00:00.000Z mail: callback 1 began: push 1",
        "2026-11-21T00:00:02.800Z mail: spent 1740 mJ, 50000 bytes, radio on for 3100 ms",
        "2026-11-21T00:00:02.800Z mail: callback 1 completed: newData",
        "2026-11-21T00:00:02.800Z mail: standing 500 to 562, silent pushes 1125 s apart",
        "2026-11-21T00:00:02.800Z mail: snapshot of revision 0",
        "2026-11-21T00:00:02.800Z mail: state kept as it was",
        "2026-11-21T00:00:02.800Z mail: banner \"message 1\", content ready",
        "2026-11-21T00:00:02.800Z relay: push 1 newData",
        "2026-11-21T00:00:02.800Z mail: suspended",
        "2026-11-21T00:00:02.800Z relay: power battery, network wifi, screen on",
        "2026-11-21T00:00:10.800Z phone: slept",
        "2026-11-21T00:00:10.800Z relay: power battery, network wifi, screen off",
      ])
  }

  @Test func refusalsReadAsInTheRelaysLog() {
    let texts = LaunchRefusal.allCases.map { PushOutcome.notLaunched($0).description }
    #expect(texts.first == "not launched: force-quit")
    #expect(Set(texts).count == texts.count)
    #expect(
      CallbackOutcome.allCases.map { "\(PushOutcome($0))" } == ["newData", "noData", "failed"])
    #expect(Set(TerminationReason.allCases.map(\.text)).count == TerminationReason.allCases.count)
  }

  /// Whatever happens has a line, and a line is one line.
  @Test func everythingHasALine() {
    for seed in UInt64(1)...5 {
      var life = RandomLife(seed: seed)
      var phone = Phone(seed: seed, at: Bench.start)
      var effects: [PhoneEffect] = []
      for definition in life.definitions() {
        phone.handle(.appInstalled(definition), at: phone.now, into: &effects)
      }
      for _ in 0..<200 {
        phone.handle(life.event(phone), at: phone.now + life.lapse(), into: &effects)
      }
      for line in effects.map({ phone.line(for: $0) }) {
        #expect(!line.contains("\n") && !line.contains("ID(") && !line.contains("DeviceModel"))
      }
    }
  }
}
