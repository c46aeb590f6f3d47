import Primitives
import RelayCore
import Testing

@testable import RelayServer

@Suite struct LoopHistoryTests {
  private let now = Instant(milliseconds: 1)

  private func id(_ number: UInt64) -> UniqueID { UniqueID(high: 1, low: number) }

  @Test func theLastNotesAreRemembered() {
    var history = LoopHistory(notes: 3)
    for number in 0..<5 as Range<UInt64> {
      history.remember(PushNote(CaseSet(PayloadWarning.mismatch)), of: id(number))
    }
    history.remember(PushNote(), of: id(9))
    #expect(history.notes[id(1)] == nil && history.notes[id(9)] == nil)
    for number in 2..<5 as Range<UInt64> {
      #expect(history.notes[id(number)]?.warnings.members == [.mismatch])
    }
  }

  @Test func theLastRefusalsAndChangesAreRemembered() {
    var history = LoopHistory()
    for number in 0...UInt64(Limits.rememberedRefusals) {
      history.refused(.badTopic, id(number), .fault("busy"), from: "", at: now)
    }
    #expect(history.refusals.count == Limits.rememberedRefusals)
    #expect(history.refusals.first?.uniqueID == id(1))
    for number in 0...UInt64(Limits.rememberedChanges) {
      history.remember(DeviceChange(at: now, device: DeviceID(id(number)), what: .connected))
    }
    #expect(history.changes.count == Limits.rememberedChanges)
    #expect(history.changes.first?.device == DeviceID(id(1)) && history.keptBytes > 0)
  }
}
