import Primitives
import Testing

@testable import DeviceModel

/// What work brings, and where it is written while the phone is locked (Apple, "Encrypting Your
/// App's Files").
@Suite struct ContentTests {
  private func bench(
    _ writes: DataProtection = .unlessOpen, limits: PhoneLimits = PhoneLimits()
  ) -> Bench {
    var bench = Bench(
      [
        .ordinary("mail") {
          $0.interface = sampleInterface()
          $0.onPush.writes = writes
          $0.onPush.brings = ["milk", "bread"]
          $0.onPush.changes = [.set(["window", "list"], key: "row", .number(7))]
        }
      ], limits: limits)
    bench.send(.unlocked, .appOpened(mail), .appLeft)
    bench.wait(.minutes(1))
    return bench
  }

  private func row(_ bench: Bench) -> StateValue? {
    let graph = bench.phone[mail]?.process.interface
    return graph?.find(["window", "list"]).flatMap { graph?[$0] }?["row"]
  }

  @Test func unlockedItGoesIntoTheDatabase() {
    var bench = bench()
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.phone[mail]?.content.items == ["milk", "bread"])
    #expect(bench.steps(of: mail).contains(.wrote(["milk", "bread"], isBeside: false)))
    #expect(row(bench) == .number(7) && bench.merged(of: mail).isEmpty)
  }

  /// Beside the database, and from there into it, with what it changes: in the order in which it
  /// came, and once.
  @Test(arguments: [false, true]) func lockedItIsMergedLater(isKilled: Bool) {
    var bench = bench()
    bench.send(.locked)
    for number in UInt64(1)...2 {
      bench.send(.pushReceived(.silent(number)))
      bench.wait(.minutes(30))
    }
    #expect(bench.phone[mail]?.content.items == [])
    let items = bench.phone[mail]?.content.files.map(\.items)
    #expect(items == [["milk", "bread"], ["milk", "bread"]])
    #expect(row(bench) == .number(0))
    // Launched while locked, or there all the time.
    if isKilled {
      bench.send(.memoryRanOut, .pushReceived(.silent(3)))
      bench.wait(.minutes(30))
    }
    bench.send(.unlocked, .appOpened(mail))
    let count = isKilled ? 3 : 2
    #expect(bench.merged(of: mail) == [count])
    #expect(bench.phone[mail]?.content.items.count == 2 * count)
    #expect(bench.phone[mail]?.content.files == [] && row(bench) == .number(7))
    bench.send(.appLeft, .appOpened(mail))
    #expect(bench.merged(of: mail) == [count])
  }

  @Test func whatCannotBeWrittenIsNotThere() {
    var bench = bench(.complete)
    bench.send(.locked, .pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    bench.send(.unlocked, .appOpened(mail))
    #expect(bench.phone[mail]?.content.items == [] && row(bench) == .number(0))
    #expect(bench.steps(of: mail).contains(.dataUnavailable(.complete)))
  }

  /// An app that was launched while locked lacks its state; what it has written is not merged into
  /// an interface that goes away.
  @Test func nothingIsMergedIntoWhatIsNotRestored() {
    var bench = bench()
    bench.send(.memoryRanOut, .locked, .pushReceived(.silent(1)))
    bench.wait(.minutes(30))
    bench.send(.pushReceived(.silent(2)))
    bench.wait(.seconds(1))
    bench.send(.unlocked)
    #expect(bench.merged(of: mail).isEmpty)
    bench.wait(.minutes(1))
    bench.send(.appOpened(mail))
    #expect(row(bench) == .number(7))
    #expect(bench.phone[mail]?.content.items.count == 4)
  }

  @Test func thereAreLimits() {
    var limits = PhoneLimits()
    limits.contentItems = 5
    limits.contentFiles = 2
    limits.silentBurst = 100
    var bench = bench(limits: limits)
    bench.send(.locked)
    for number in UInt64(1)...6 {
      bench.send(.pushReceived(.silent(number)))
      bench.wait(.hours(1))
    }
    let files = bench.phone[mail]?.content.files ?? []
    #expect(files.count == 2 && files.allSatisfy { $0.items.count <= 5 })
    bench.send(.unlocked, .appOpened(mail))
    #expect(bench.phone[mail]?.content.items == ["bread", "milk", "bread", "milk", "bread"])
  }

  /// What counts is when the app has it, not when it says so.
  @Test(arguments: [(2, 15, true), (20, 22, true), (20, 16, false), (40, 15, false)])
  func aLateHandlerHidesNoContent(work: Int64, openedAt: Int64, isReady: Bool) throws {
    var bench = Bench([
      .ordinary {
        $0.onPush.work = .seconds(work)
        $0.onPush.handler = .late(.seconds(25))
      }
    ])
    bench.send(.pushReceived(.alert(1, wakesApp: true)))
    bench.wait(PhoneLimits().bannerWait)
    let banner = try #require(bench.bannersShown.first)
    #expect(banner.isContentReady == (work == 2))
    bench.wait(.seconds(openedAt) - PhoneLimits().bannerWait)
    bench.send(.bannerOpened(banner.id))
    bench.wait(.minutes(1))
    #expect(bench.steps(of: mail).contains(.contentShown(waited: .zero)) == isReady)
  }
}
