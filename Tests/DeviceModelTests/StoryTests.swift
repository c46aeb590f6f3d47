import Primitives
import Testing

@testable import DeviceModel

/// Stories such as those of WWDC 2013 session 204, each told on one phone.
@Suite struct StoryTests {
  private func order(_ bench: Bench, _ isIt: [(PhoneAction) -> Bool]) -> [Int] {
    isIt.map { one in bench.actions.firstIndex(where: one) ?? -1 }
  }

  private func isRising(_ places: [Int]) -> Bool {
    places.first != -1 && zip(places, places.dropFirst()).allSatisfy { $0 < $1 }
  }

  /// Alert and `content-available`; the message is there when the user slides. With a picture: the
  /// thumbnail at once, the full picture by transfer.
  @Test func messenger() {
    var bench = Bench([
      .ordinary("messenger") {
        $0.onPush.bytes = 8000
        $0.onPush.transfers = [TransferRequest(name: "picture.jpg", bytes: 3_000_000)]
        $0.onTransfers.bytes = 0
        $0.onTransfers.work = .milliseconds(100)
      }
    ])
    bench.send(.pushReceived(.alert(1, wakesApp: true)))
    bench.wait(.seconds(3))
    let banner = bench.bannersShown.first
    #expect(banner?.isContentReady == true)
    #expect(bench.phone[mail]?.content.files.count == 1, "fetched while locked, put beside")
    bench.wait(.minutes(2))
    // The transfer was discretionary, and there is Wi-Fi.
    #expect(bench.callbackSteps(of: mail).suffix(2) == [.began(.transfers), .completed(.newData)])
    guard let banner else { return }
    bench.send(.bannerOpened(banner.id))
    #expect(bench.merged(of: mail) == [2])
    #expect(bench.steps(of: mail).last == .contentShown(waited: .zero))
  }

  /// A silent push to all subscribers of a show; the app wakes, asks for new episodes, queues
  /// transfers, sleeps; on completion it wakes and posts a local notification.
  @Test func tvDownloads() {
    var bench = Bench([
      .ordinary("tv") {
        $0.onPush.transfers = (1...2).map {
          TransferRequest(session: "episodes", name: "episode \($0)", bytes: 300_000_000)
        }
        $0.onTransfers.notification = LocalNotification(text: "Two new episodes", badge: 2)
      }
    ])
    bench.send(.networkChanged(.cellular), .pushReceived(.silent(1)))
    bench.wait(.hours(3))
    #expect(bench.reports == [PushID(1): [.newData]])
    #expect(bench.bannersShown.isEmpty)
    // In the evening there is Wi-Fi and a charger.
    bench.send(.chargerChanged(isConnected: true), .networkChanged(.wifi))
    bench.wait(.seconds(100))
    #expect(bench.phone.wakefulness == .asleep, "the system transfers, the phone sleeps")
    #expect(bench.phone.service.transfers.count { $0.phase == .active } == 2)
    bench.wait(.minutes(10))
    #expect(bench.bannersShown.map(\.text) == ["Two new episodes"])
    #expect(bench.phone[mail]?.badge == 2)
    let places = order(
      bench,
      [
        { $0 == .report(PushID(1), .newData) },
        { if case .transfer(_, _, .started) = $0 { true } else { false } },
        { if case .transfer(_, _, .ended(.finished)) = $0 { true } else { false } },
        { if case .callback(_, _, .began(.transfers)) = $0 { true } else { false } },
        { if case .banner = $0 { true } else { false } },
        { if case .snapshot(_, let shot) = $0 { shot.callback?.number == 2 } else { false } },
      ])
    #expect(isRising(places), "\(places)")
  }

  /// A file edited on the desktop; a silent push; the app wakes, fetches the difference through
  /// transfers, updates the document.
  @Test func fileSync() {
    let plan = DocumentID(1)
    var bench = Bench([
      .ordinary("files") {
        $0.onPush.transfers = [
          TransferRequest(name: "plan.diff", bytes: 40_000, document: plan)
        ]
      }
    ])
    var files = bench.phone.apps[0].definition
    files.container = .own
    bench.send(.appInstalled(files), .unlocked, .appOpened(mail))
    bench.send(.document(.created(by: mail, name: "plan", bytes: 900_000)))
    bench.send(.document(.uploaded(plan, revision: 1)), .locked)
    bench.wait(.hours(1))
    bench.clear()
    bench.send(.document(.elsewhere(.changed(plan, DocumentBody(bytes: 940_000)))))
    #expect(bench.phone.documents.documents[plan]?.isStale == true)
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(1))
    #expect(bench.phone.documents.documents[plan]?.revision == 2)
    #expect(bench.phone.documents.documents[plan]?.isStale == false)
    #expect(bench.actions.contains(.document(plan, .changed(revision: 2, bytes: 940_000))))
    #expect(
      !bench.actions.contains { if case .document(_, .conflict) = $0 { true } else { false } })
    #expect(bench.bannersShown.isEmpty)
  }

  /// The user buys a magazine on the web; a silent push; the content is offline when they open the
  /// app.
  @Test func readLater() {
    var bench = Bench([
      .ordinary("magazines") {
        $0.onPush.transfers = [TransferRequest(name: "issue 7", bytes: 60_000_000)]
        $0.onTransfers.bytes = 0
      }
    ])
    bench.send(.pushReceived(.silent(1)))
    bench.wait(.minutes(5))
    bench.send(.networkChanged(.airplane), .unlocked, .appOpened(mail))
    #expect(bench.merged(of: mail) == [2])
    let opened = bench.steps(of: mail).compactMap { step -> Interval? in
      if case .opened(let age) = step { age } else { nil }
    }
    #expect(opened.count == 1 && opened[0] < .minutes(5))
    #expect(bench.phone.service.transfers.isEmpty)
  }

  /// An alert; while awake the whole mailbox is fetched.
  @Test func mailbox() {
    var bench = Bench([
      .ordinary("mail") {
        $0.onPush.work = .seconds(12)
        $0.onPush.bytes = 2_000_000
      }
    ])
    bench.send(.networkChanged(.cellular), .pushReceived(.alert(1, wakesApp: true)))
    bench.wait(.minutes(1))
    #expect(bench.bannersShown.map(\.isContentReady) == [true])
    #expect(bench.reports == [PushID(1): [.newData]])
    #expect(bench.phone[mail]?.behaviour.averageBytes == 500_000)
    // The next one without the permission: the banner alone, the mailbox as it was.
    bench.send(.refreshSwitched(mail, isOn: false))
    bench.send(.pushReceived(.alert(2, wakesApp: true)))
    #expect(bench.bannersShown.map(\.isContentReady) == [true, false])
    #expect(bench.reports[PushID(2)] == [.notLaunched(.refreshOff)])
  }

  /// Fetch with a learned pattern; signing out sets `never`.
  @Test func socialFeed() {
    var bench = Bench([.ordinary("feed")])
    bench.send(.unlocked, .appOpened(mail), .fetchIntervalSet(mail, .minimum), .locked)
    for _ in 0..<10 {
      bench.wait(.hours(23) + .minutes(59))
      bench.use(mail)
    }
    bench.clear()
    bench.wait(.hours(23) + .minutes(59))
    let before = bench.now
    let fetches = bench.effects.compactMap { effect -> Instant? in
      if case .callback(_, _, .began(.fetch)) = effect.action { effect.at } else { nil }
    }
    #expect(fetches.contains { before - $0 < .hours(1) }, "\(fetches)")
    #expect(fetches.count <= 2)
    bench.send(.unlocked, .appOpened(mail), .fetchIntervalSet(mail, .never), .locked)
    bench.clear()
    bench.wait(.days(3))
    #expect(bench.callbackSteps(of: mail).isEmpty)
    #expect(bench.phone.apps.map(\.plan.reason) == [.intervalNever])
  }
}
