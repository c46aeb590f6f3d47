import Foundation
import Primitives
import Testing

@testable import DeviceModel

/// Random lives with the power cut at a random point.
@Suite struct PhoneMemoryPropertyTests {
  private struct Life {
    var random: RandomLife
    var phone: Phone
    var checker = Checker()
    var now = Bench.start

    init(seed: UInt64) {
      random = RandomLife(seed: seed)
      phone = Phone(seed: seed, at: Bench.start)
      for definition in random.definitions() { handle(.appInstalled(definition)) }
    }

    @discardableResult
    mutating func handle(_ event: PhoneEvent) -> [PhoneEffect] {
      var effects: [PhoneEffect] = []
      phone.handle(event, at: now, into: &effects)
      checker.saw(event, phone, effects)
      return effects
    }

    mutating func live(_ count: Int) {
      for _ in 0..<count {
        now = now + random.lapse()
        handle(random.event(phone))
      }
    }

    /// The app in front writes a document while it reads another.
    mutating func useDocument() {
      let app = AppID(0)
      for event in [PhoneEvent.unlocked, .appOpened(app)] { handle(event) }
      for isWriting in [true, false] {
        handle(.document(.created(by: app, name: "draft", bytes: 5)))
        guard let id = phone.documents.documents.keys.max(by: { $0.number < $1.number }) else {
          return
        }
        let use = DocumentUse(wants: [.init(id, isWriting: isWriting)], time: .minutes(1))
        for _ in 1...2 { handle(.document(.used(use, by: app))) }
      }
    }

    mutating func rest() {
      for event in [PhoneEvent.locked, .tick] {
        now = now + .minutes(10)
        handle(event)
      }
      checker.finish(phone)
    }
  }

  /// The rules hold over both lives, above all: every push is reported once in one of them.
  @Test func theRulesHoldAcrossACut() throws {
    for seed in UInt64(1)...25 {
      var life = Life(seed: seed)
      life.live(Int(seed % 7) * 30 + 20)
      for cut in 0..<3 {
        let memory = try reread(life.phone.memory())
        #expect(isAlike(memory, life.phone.memory()), "seed \(seed), cut \(cut)")
        let quit = life.phone.apps.map { $0.state == .forceQuit }
        let off: Interval = life.random.chance(20) ? .zero : life.random.lapse() * 10
        life.now = life.now + off
        var effects: [PhoneEffect] = []
        life.phone = Phone(restoring: memory, at: life.now, into: &effects)
        #expect(effects.allSatisfy { $0.at == life.now }, "seed \(seed), cut \(cut)")
        life.checker.powerFailed()
        life.checker.saw(.rebooted, life.phone, effects)
        #expect(!life.phone.apps.contains { $0.state.hasProcess }, "seed \(seed), cut \(cut)")
        #expect(life.phone.apps.map { $0.state == .forceQuit } == quit, "seed \(seed)")
        life.live(cut * 3)
        for (app, archive) in life.checker.lastSaved where !life.phone.vault.holds(app) {
          life.handle(.archiveFound(app, archive))
        }
        life.handle(.unlocked)
        life.live(60)
      }
      life.rest()
      let complaints = life.checker.complaints
      #expect(complaints.isEmpty, "seed \(seed): \(complaints.prefix(3))")
    }
  }

  /// Without time in between, a cut is a reboot: the same lasts, and the same is told of it.
  @Test func aCutIsAReboot() throws {
    var counts = (callbacks: 0, held: 0, transfers: 0, documents: 0, foreground: 0)
    for seed in UInt64(1)...75 {
      var life = Life(seed: seed)
      life.live(Int(seed % 11) * 20 + 15)
      if seed % 4 == 0 { life.useDocument() }
      life.handle(.tick)
      let memory = try reread(life.phone.memory())
      counts.callbacks += life.phone.callbacks.count
      counts.held += life.phone.apps.count { $0.heldPush != nil }
      counts.transfers += life.phone.service.transfers.count { $0.phase == .active }
      counts.documents += life.phone.coordination.accesses.count
      counts.foreground += life.phone.foreground == nil ? 0 : 1
      var effects: [PhoneEffect] = []
      let restored = Phone(restoring: memory, at: life.now, into: &effects)
      let expected = life.handle(life.phone.wakefulness == .off ? .switchedOn : .rebooted)
      #expect(isAlike(restored.memory(), life.phone.memory()), "seed \(seed)")
      // It may be the first to wake the phone, and documents come in their own order.
      let told = effects.map { "\($0)" }.filter { !$0.contains("phone(DeviceModel.PhoneStep.woke") }
      let wanted = expected.map { "\($0)" }.filter {
        !$0.contains("phone(DeviceModel.PhoneStep.woke")
      }
      #expect(told.sorted() == wanted.sorted(), "seed \(seed)")
    }
    // There was something under way to be cut.
    for count in [
      counts.callbacks, counts.held, counts.transfers, counts.documents, counts.foreground,
    ] { #expect(count > 3, "\(counts)") }
  }

  /// Time without power changes nothing that lasts, but for what the start itself decides.
  @Test func timeWithoutPowerChangesNothing() throws {
    for seed in UInt64(1)...60 {
      var life = Life(seed: seed)
      life.live(150)
      // What is due at this very moment would come before a reboot, and not before a power cut.
      life.handle(.tick)
      let memory = life.phone.memory()
      var effects: [PhoneEffect] = []
      let off = life.random.lapse() * 20
      let later = Phone(restoring: memory, at: life.now + off, into: &effects).memory().phone
      life.handle(.rebooted)
      let atOnce = life.phone.memory().phone
      for (one, other) in zip(later.apps, atOnce.apps) {
        #expect(one.energy == other.energy && one.data == other.data, "seed \(seed)")
        #expect(one.usage == other.usage && one.behaviour == other.behaviour, "seed \(seed)")
        #expect(one.content == other.content && one.snapshot == other.snapshot, "seed \(seed)")
        #expect(one.badge == other.badge && one.state == other.state, "seed \(seed)")
        #expect(one.heldPushes == other.heldPushes && one.usedUntil == other.usedUntil)
        #expect(one.fetchInterval == other.fetchInterval && one.plan.when == other.plan.when)
      }
      #expect(later.apps.count == atOnce.apps.count)
      #expect(later.energy == atOnce.energy && later.data == atOnce.data, "seed \(seed)")
      #expect(
        later.recentPushes.known == atOnce.recentPushes.known && later.random == atOnce.random)
      #expect(later.banners.banners.map(\.id) == atOnce.banners.banners.map(\.id), "seed \(seed)")
      #expect(later.documents == atOnce.documents, "seed \(seed)")
      let done = later.service.transfers.map { [Int64($0.id.number), $0.done] }
      #expect(done == atOnce.service.transfers.map { [Int64($0.id.number), $0.done] })
    }
  }

  // MARK: What is not a memory

  /// Numbers and words that a damaged file may hold where it held others.
  private static let oddities = [
    "-1", "0", "1", "7", "96", "4294967295", "4294967296", "9007199254740993",
    "9223372036854775807", "-9223372036854775808", "18446744073709551615", "1e300", "null", "[]",
    "{}", "true", "\"\"",
  ]

  /// Whatever a file says: it is refused, or the phone lives with it.
  @Test func damageIsRefusedOrSurvived() throws {
    var refused = 0
    var survived = 0
    for seed in UInt64(1)...6 {
      var life = Life(seed: seed)
      life.live(120)
      var random = SeededRandom(seed: seed)
      let text = try JSONEncoder().encode(life.phone.memory())
      let numbers = Self.numbers(in: Array(text))
      for _ in 0..<60 {
        let (key, places) = numbers[Int(random.below(Int64(numbers.count)))]
        let place = places[Int(random.below(Int64(places.count)))]
        let oddity = Self.oddities[Int(random.below(Int64(Self.oddities.count)))]
        var damaged = Array(text)
        damaged.replaceSubrange(place, with: oddity.utf8)
        let message = "seed \(seed), \(oddity) for \(key) at byte \(place.lowerBound)"
        guard let memory = try? JSONDecoder().decode(PhoneMemory.self, from: Data(damaged)) else {
          refused += 1
          continue
        }
        survived += 1
        var other = life
        var effects: [PhoneEffect] = []
        other.now = other.now + .hours(random.below(50))
        other.phone = Phone(restoring: memory, at: other.now, into: &effects)
        other.handle(.unlocked)
        other.live(40)
        other.handle(.tick)
        #expect(other.phone.now >= other.now, "\(message)")
      }
    }
    #expect(refused > 50 && survived > 50, "\(refused) refused, \(survived) survived")
  }

  /// Where numbers stand in a JSON text, by the key or text before them.
  private static func numbers(in text: [UInt8]) -> [(key: String, places: [Range<Int>])] {
    var found: [String: [Range<Int>]] = [:]
    var key = ""
    let whole = String(decoding: text, as: UTF8.self)
    for match in whole.matches(of: /"([^"]*)"|-?[0-9]+/) {
      let start = whole.utf8.distance(from: whole.startIndex, to: match.range.lowerBound)
      if let word = match.1 {
        key = String(word)
      } else {
        found[key, default: []].append(start..<start + match.0.utf8.count)
      }
    }
    return found.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  @Test(arguments: [
    ("\"parent\":{\"number\":1}", "\"parent\":{\"number\":2}", "app 0"),
    ("\"bytes\":12345", "\"bytes\":-12345", "app 0"), ("\"score\":500", "\"score\":1001", "app 0"),
    ("\"badge\":7", "\"badge\":null", nil),
    ("\"name\":\"news\"", "\"name\":\"mail\"", "an app's name"),
    ("\"perDay\":2000000,", "\"perDay\":0,", "a budget"), ("\"apps\":[{", "\"apps\":[{},{", nil),
    ("\"text\":\"hello\"", "\"text\":0", nil),
    ("\"now\":{\"milliseconds\":1", "\"now\":{\"milliseconds\":-1", "the time"),
    ("\"numbering\":{\"last\":1}},\"call", "\"numbering\":{\"last\":0}},\"call", "a banner"),
  ])
  func whatCannotBeIsNamed(part: String, damage: String, what: String?) throws {
    var bench = Bench([
      .ordinary("mail") { script in
        script.interface = sampleInterface()
        script.onLeave.transfers = [TransferRequest(name: "film", bytes: 12345)]
      }, .ordinary("news"),
    ])
    var push = RemotePush.alert(1)
    (push.alert, push.badge) = ("hello", 7)
    bench.send(.pushReceived(push))
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let text = String(decoding: try encoder.encode(bench.phone.memory()), as: UTF8.self)
    let damaged = text.replacing(part, with: damage)
    #expect(damaged != text)
    #expect {
      _ = try JSONDecoder().decode(PhoneMemory.self, from: Data(damaged.utf8))
    } throws: { error in
      what.map { error as? PhoneMemoryError == .impossible($0) } ?? (error is DecodingError)
    }
  }

  /// A transfer of our model has as many bytes as it was asked for; one over a real network has as
  /// many as came.
  @Test(arguments: [false, true]) func howMuchOfATransferIsDone(isPerformed: Bool) throws {
    var bench = Bench([.ordinary()], transferMode: isPerformed ? .performed : .modelled)
    let url = isPerformed ? "https://example.com/film" : nil
    let film = TransferRequest(name: "film", bytes: 12345, url: url)
    bench.send(.unlocked, .appOpened(mail), .networkChanged(.airplane))
    bench.send(.transferQueued(mail, film))
    let text = String(decoding: try JSONEncoder().encode(bench.phone.memory()), as: UTF8.self)
    for (done, isSound) in [(12345, true), (12346, isPerformed), (-1, false)] {
      let changed = text.replacing("\"done\":0", with: "\"done\":\(done)")
      #expect(changed != text)
      let read = Result { try JSONDecoder().decode(PhoneMemory.self, from: Data(changed.utf8)) }
      #expect((try? read.get()) == nil ? !isSound : isSound, "\(done): \(read)")
    }
  }

  @Test func aTransfersNumberIsItsOwn() throws {
    var bench = Bench([.ordinary()])
    bench.send(.unlocked, .appOpened(mail), .networkChanged(.airplane))
    for name in ["film", "song"] {
      bench.send(.transferQueued(mail, TransferRequest(name: name, bytes: 12345)))
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let text = String(decoding: try encoder.encode(bench.phone.memory()), as: UTF8.self)
    let changes = [
      ("\"id\":{\"number\":2}", "\"id\":{\"number\":1}"),
      ("\"numbering\":{\"last\":2}", "\"numbering\":{\"last\":1}"),
    ]
    for (part, damage) in changes {
      let damaged = text.replacing(part, with: damage)
      #expect(damaged != text)
      #expect(throws: PhoneMemoryError.impossible("a transfer")) {
        try JSONDecoder().decode(PhoneMemory.self, from: Data(damaged.utf8))
      }
    }
  }

  @Test func anotherFormatIsSaid() throws {
    let text = try JSONEncoder().encode(Bench([.ordinary()]).phone.memory())
    let other = String(decoding: text, as: UTF8.self)
      .replacing("\"format\":2", with: "\"format\":3")
    #expect(throws: PhoneMemoryError.unknownFormat(3)) {
      try JSONDecoder().decode(PhoneMemory.self, from: Data(other.utf8))
    }
    #expect(throws: (any Error).self) {
      try JSONDecoder().decode(PhoneMemory.self, from: text.dropLast())
    }
  }
}
