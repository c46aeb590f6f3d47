import RelayCore
import Testing

@testable import RelayServer

@Suite struct PushNotesTests {
  private func id(_ number: UInt64) -> UniqueID { UniqueID(high: 1, low: number) }

  @Test func theLastOnesAreRemembered() {
    var notes = PushNotes(limit: 3)
    for number in 0..<5 as Range<UInt64> {
      notes.remember(PushNote(CaseSet(PayloadWarning.mismatch)), of: id(number))
    }
    notes.remember(PushNote(), of: id(9))
    #expect(notes[id(1)].isEmpty && notes[id(9)].isEmpty)
    for number in 2..<5 as Range<UInt64> {
      #expect(notes[id(number)].warnings.members == [.mismatch])
    }
  }
}
