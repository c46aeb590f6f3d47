import Primitives
import Testing

@testable import RelayCore

/// Tokens that devices bring along: claimed, moved, refused and given back, over several shards.
@Suite struct ShardAliasesTests {
  private static let topic = Topic("com.example.app")!
  private static let other = Topic("com.example.other")!

  /// Shards, and one each for the token, the device that has it and the one that gets it.
  struct Places: CustomStringConvertible {
    var count: Int
    var token: Int
    var old: Int
    var new: Int

    var description: String { "\(count) shards, token \(token), old \(old), new \(new)" }
  }

  private static let places: [Places] = {
    var places: [Places] = []
    for count in 1...3 {
      for token in 0..<count {
        for old in 0..<count {
          for new in 0..<count {
            places.append(Places(count: count, token: token, old: old, new: new))
          }
        }
      }
    }
    return places
  }()

  @Test(arguments: places) func aTokenMovesFromOneDeviceToAnother(_ places: Places) {
    var set = ShardSet(places.count, seed: 7)
    let (old, new) = (set.enroll(on: places.old), set.enroll(on: places.new))
    let token = set.makeToken(on: places.token)
    let first = set.put(old, Self.topic, own: token)
    set.settle()
    #expect(set.answers[first] == .registered(token))
    let (_, before) = set.push(token, Self.topic)
    set.settle()
    #expect(set.holder(of: before)?.device == old.credential.device)
    let refused = set.put(new, Self.topic, own: token)
    set.settle()
    #expect(set.answers[refused] == .refused(.tokenTaken))
    let removal = set.delete(old, Self.topic)
    set.settle()
    #expect(set.answers[removal] == .unregistered)
    let (late, _) = set.push(token, Self.topic)
    set.settle()
    #expect(set.responses[late] == .gone(since: set.now))
    let second = set.put(new, Self.topic, own: token)
    set.settle()
    #expect(set.answers[second] == .registered(token))
    let (accepted, after) = set.push(token, Self.topic)
    set.settle()
    #expect(set.responses[accepted] == .accepted(uniqueID: after.uniqueID))
    #expect(set.holder(of: after)?.device == new.credential.device)
    set.checkSettled("\(places)")
    #expect(set.problems == [])
  }

  /// Whatever comes first: one has it, the other is told.
  @Test(arguments: places) func ofTwoThatWantATokenOneGetsIt(_ places: Places) {
    for seed in UInt64(0)..<20 {
      var set = ShardSet(places.count, seed: seed)
      let phones = [set.enroll(on: places.old), set.enroll(on: places.new)]
      let token = set.makeToken(on: places.token)
      let requests = phones.map { set.put($0, Self.topic, own: token) }
      while let step = set.steps.randomElement(using: &set.generator) {
        set.take(step)
        set.check("racing")
      }
      let answers = requests.map { set.answers[$0] }
      #expect(answers.contains(.registered(token)) && answers.contains(.refused(.tokenTaken)))
      set.checkSettled("seed \(seed)")
      #expect(set.problems == [])
    }
  }

  @Test(arguments: places) func aTokenReplacesAnother(_ places: Places) {
    var set = ShardSet(places.count, seed: 3)
    let phone = set.enroll(on: places.old)
    let tokens = [set.makeToken(on: places.token), set.makeToken(on: places.new)]
    for token in [nil] + tokens + tokens {
      let request = set.put(phone, Self.topic, own: token)
      set.settle()
      guard let token else { continue }
      #expect(set.answers[request] == .registered(token))
      // The one before is free for others, and dead for providers.
      for gone in tokens where gone != token {
        let (late, _) = set.push(gone, Self.topic)
        set.settle()
        #expect(set.responses[late] != nil)
        if case .accepted = set.responses[late] { Issue.record("the token before is alive") }
      }
      set.checkSettled("\(places)")
    }
    #expect(set.ownApps.map(\.token) == [tokens[1]])
    #expect(set.problems == [])
  }

  // MARK: Refusals leave nothing

  @Test func strangersLeaveNothing() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let own = DeviceToken(hexadecimal: "abcd")!
    #expect(fixture.register(app.phone, app.topic, own: own).answers == [.registered(own)])
    var stranger = app.phone.credential
    stranger.secret = SecretHash(words: (0, 0, 0, 0))
    let nobody = DeviceCredential(
      device: DeviceID(UniqueID(high: 99, low: 99)), secret: stranger.secret)
    let before = "\(fixture.shard)"
    let request = fixture.newRequest()
    // With the victim's token and with others.
    var attempts: [(Event, Effect)] = []
    for number in UInt64(0)..<1000 {
      let other = DeviceToken(random: (number, 2, 3), routingKey: number)
      let isUnknown = number % 3 == 0
      let refusal = isUnknown ? DeviceRefusal.unknownDevice : .unauthorized
      let attempt = Event.asked(
        .registered(app.topic, number % 2 == 0 ? own : other, isOwn: true),
        isUnknown ? nobody : stranger, from: request)
      attempts.append((attempt, .answer(request, .refused(refusal))))
    }
    var effects: [Effect] = []
    var wrong = 0
    for _ in 0..<1000 {
      for (attempt, expected) in attempts {
        fixture.shard.handle(attempt, at: fixture.now, into: &effects)
        if effects != [expected] { wrong += 1 }
        effects.removeAll(keepingCapacity: true)
      }
    }
    #expect(wrong == 0)
    #expect("\(fixture.shard)" == before)
  }

  /// Every refusal with the right secret, too: the shards are as they were.
  @Test(arguments: places) func refusalsLeaveNothing(_ places: Places) {
    var set = ShardSet(places.count, seed: 5)
    let (owner, phone) = (set.enroll(on: places.old), set.enroll(on: places.new))
    let token = set.makeToken(on: places.token)
    _ = set.put(owner, Self.topic, own: token)
    set.settle()
    let minted = set.put(owner, Self.other, own: nil)
    set.settle()
    guard case .registered(let mintedToken) = set.answers[minted] else {
      Issue.record("not registered")
      return
    }
    let before = set.shards.map { "\($0)" }
    for taken in [token, mintedToken] {
      let request = set.put(phone, Self.topic, own: taken)
      set.settle()
      #expect(set.answers[request] == .refused(.tokenTaken))
      #expect(set.shards.map { "\($0)" } == before)
    }
    let unknown = set.delete(phone, Self.topic)
    set.settle()
    #expect(set.answers[unknown] == .refused(.unknownApp))
    #expect(set.shards.map { "\($0)" } == before)
    set.checkSettled("\(places)")
    #expect(set.problems == [])
  }

  @Test func aDeviceHasFewChangesUnderWay() {
    var set = ShardSet(2, seed: 1)
    let phone = set.enroll(on: 0)
    var requests: [RequestID] = []
    for number in 0...Limits.tokenChangesPerDevice {
      let token = set.makeToken(on: 1)
      requests.append(set.put(phone, Topic("app\(number)")!, own: token))
    }
    #expect(set.answers[requests.last!] == .refused(.unavailable))
    #expect(set.shards[0].tokenChanges.count == Limits.tokenChangesPerDevice)
    // Nor two for one app, whatever they are.
    let removal = set.delete(phone, Topic("app0")!)
    let minted = set.put(phone, Topic("app0")!, own: nil)
    let token = set.makeToken(on: 1)
    let another = set.put(phone, Topic("app0")!, own: token)
    for request in [removal, minted, another] {
      #expect(set.answers[request] == .refused(.unavailable))
    }
    set.settle()
    for request in requests.dropLast() {
      guard case .registered = set.answers[request] else {
        Issue.record("\(String(describing: set.answers[request]))")
        return
      }
    }
    set.checkSettled("few")
    #expect(set.problems == [])
  }

  /// What a device is about to get counts as its own.
  @Test func theLastAppIsWhoseClaimIsUnderWay() {
    var set = ShardSet(2, seed: 1)
    let phone = set.enroll(on: 0)
    for number in 1..<Limits.appsPerDevice {
      _ = set.put(phone, Topic("app\(number)")!, own: nil)
    }
    set.settle()
    let token = set.makeToken(on: 1)
    let claim = set.put(phone, Self.topic, own: token)
    let late = set.put(phone, Self.other, own: nil)
    set.settle()
    #expect(set.answers[late] == .refused(.tooManyApps))
    #expect(set.answers[claim] == .registered(token))
    set.checkSettled("given back")
    #expect(set.problems == [])
  }

  /// The enrolment could not be written, and with it the device is gone when the grant comes.
  @Test func aGrantForADeviceThatIsGoneIsGivenBack() {
    var fixture = ShardFixture(.manual)
    let phone = fixture.enroll()
    let own = DeviceToken(hexadecimal: "abcd")!
    _ = fixture.register(phone, Self.topic, own: own)
    let request = fixture.lastRequest
    _ = fixture.handle(.journal(.persistFailed(through: 1)))
    let effects = fixture.handle(.journal(.persisted(through: 2)))
    #expect(effects.contains(.answer(request, .refused(.unknownDevice))))
    #expect(fixture.shard.aliases.count == 0 && fixture.shard.tokenChanges.count == 0)
    expectSound(fixture)
  }

  @Test func whatHasNoRoomForTheJournalIsRefusedAndLeavesNothing() {
    // Room at the device's shard, none at the token's.
    var set = ShardSet(2, seed: 1, configuration: .init(pendingPersists: 1))
    let (phone, filler) = (set.enroll(on: 0), set.enroll(on: 1))
    _ = set.put(filler, Self.topic, own: nil)
    let token = set.makeToken(on: 1)
    let request = set.put(phone, Self.topic, own: token)
    set.take(.deliver(from: 0, to: 1))
    set.take(.deliver(from: 1, to: 0))
    #expect(set.answers[request] == .refused(.unavailable))
    // Room when it is claimed, none when it is granted.
    set.settle()
    let second = set.put(phone, Self.topic, own: token)
    set.take(.deliver(from: 0, to: 1))
    _ = set.put(phone, Self.other, own: nil)
    set.take(.write(1))
    set.take(.deliver(from: 1, to: 0))
    #expect(set.answers[second] == nil, "told once the token is given back")
    set.settle()
    #expect(set.answers[second] == .refused(.unavailable))
    set.checkSettled("no room")
    #expect(set.problems == [])
  }

  // MARK: Failures and restarts at every step

  /// A token is claimed, replaced by another, and given back; each step of the way is one that
  /// something can happen after.
  private func story(
    _ places: Places, seed: UInt64, _ interfere: (inout ShardSet, Int) -> Bool
  ) -> Bool {
    var set = ShardSet(places.count, seed: seed)
    let phone = set.enroll(on: places.old)
    let tokens = [set.makeToken(on: places.token), set.makeToken(on: places.new)]
    var step = 0
    var isOver = false
    for request in 0..<3 where !isOver {
      let id =
        request < 2
        ? set.put(phone, Self.topic, own: tokens[request]) : set.delete(phone, Self.topic)
      while !isOver, let next = set.steps.first {
        isOver = interfere(&set, step)
        if isOver { break }
        set.take(next)
        set.check("\(places), step \(step)")
        step += 1
      }
      guard isOver else {
        #expect(
          set.answers[id] == (request < 2 ? .registered(tokens[request]) : .unregistered))
        continue
      }
      let answer = set.answers[id]
      set.settle()
      set.checkSettled("\(places), \(request), after step \(step)")
      // What was answered holds; what was not can be asked again.
      if request < 2, answer == .registered(tokens[request]) {
        #expect(set.ownApps.map(\.token) == [tokens[request]])
      }
      if answer == .unregistered { #expect(set.ownApps.isEmpty) }
      let again =
        request < 2
        ? set.put(phone, Self.topic, own: tokens[request]) : set.delete(phone, Self.topic)
      set.settle()
      if request < 2 {
        #expect(set.answers[again] == .registered(tokens[request]), "\(places), step \(step)")
      } else {
        let isGone = [.unregistered, .refused(.unknownApp)].contains(set.answers[again])
        #expect(isGone && set.ownApps.isEmpty)
      }
      set.checkSettled("\(places), \(request), again after step \(step)")
    }
    #expect(set.problems == [])
    return isOver
  }

  @Test(arguments: places) func aRestartAtAnyStepLeavesWhatWasAnswered(_ places: Places) {
    for count in 1...3 {
      for isWritten in [true, false, nil] {
        var at = 0
        while story(
          places, seed: UInt64(at + 100),
          { set, step in
            guard step == at else { return false }
            set.restart(count, writing: isWritten)
            return true
          })
        { at += 1 }
        #expect(at >= 8, "\(at) steps")
      }
    }
  }

  @Test(arguments: places) func aJournalThatFailsAtAnyStepLeavesNothing(_ places: Places) {
    for failures in 1...2 {
      var at = 0
      while story(
        places, seed: UInt64(at),
        { set, step in
          guard step == at else { return false }
          // The next record fails, or the next two.
          var left = failures
          while left > 0, let next = set.steps.first {
            if case .write(let shard) = next {
              set.take(.fail(shard))
              left -= 1
            } else {
              set.take(next)
            }
          }
          return true
        })
      { at += 1 }
      #expect(at >= 8, "\(at) steps")
    }
  }

  /// In flight to the device that had the token, and not forgotten on disk: not for the next one.
  @Test(arguments: places, [false, true])
  func whatWasForTheDeviceBeforeIsNotRestoredToTheNext(_ places: Places, keepsDevices: Bool) {
    var set = ShardSet(places.count, seed: 11, keepsDevices: keepsDevices)
    let (old, new) = (set.enroll(on: places.old), set.enroll(on: places.new))
    let token = set.makeToken(on: places.token)
    _ = set.put(old, Self.topic, own: token)
    set.settle()
    let connection = set.connect(old)
    let (_, secret) = set.push(token, Self.topic)
    set.settle()
    #expect(set.sent[connection] == [secret])
    _ = set.delete(old, Self.topic)
    set.settle()
    _ = set.put(new, Self.topic, own: token)
    set.settle()
    let (_, its) = set.push(token, Self.topic)
    set.settle()
    for count in [2, 3, 1] {
      set.restart(count)
      #expect(set.holder(of: secret) == nil)
      #expect(set.holder(of: its)?.device == new.credential.device)
      set.settle()
      set.checkSettled("\(places)")
    }
    #expect(set.problems == [])
  }

  /// The same device has it again, for the same app: that is not what it was pushed to.
  @Test(arguments: places, [false, true])
  func whatWasForTheRegistrationBeforeIsNotRestoredToTheNext(
    _ places: Places, keepsDevices: Bool
  ) {
    var set = ShardSet(places.count, seed: 12, keepsDevices: keepsDevices)
    let phone = set.enroll(on: places.old)
    let token = set.makeToken(on: places.token)
    _ = set.put(phone, Self.topic, own: token)
    set.settle()
    let connection = set.connect(phone)
    let (_, before) = set.push(token, Self.topic)
    set.settle()
    #expect(set.sent[connection] == [before])
    _ = set.delete(phone, Self.topic)
    set.settle()
    set.now = set.now + .seconds(1)
    _ = set.put(phone, Self.topic, own: token)
    set.settle()
    let (_, after) = set.push(token, Self.topic)
    set.settle()
    for count in [2, 3, 1] {
      set.restart(count)
      #expect(set.holder(of: before) == nil)
      #expect(set.holder(of: after)?.device == phone.credential.device)
      set.settle()
      set.checkSettled("\(places)")
    }
    #expect(set.problems == [])
  }

  /// A clock that was set back, or a virtual one that begins again: whose a token is goes by the
  /// order of what the journal was told.
  @Test(arguments: places, [false, true])
  func whatIsAcceptedAfterTimeWentBackIsRestored(_ places: Places, keepsDevices: Bool) {
    var set = ShardSet(places.count, seed: 13, keepsDevices: keepsDevices)
    let (old, new) = (set.enroll(on: places.old), set.enroll(on: places.new))
    let token = set.makeToken(on: places.token)
    let begin = set.now
    set.now = begin + .hours(10)
    _ = set.put(old, Self.topic, own: token)
    set.settle()
    _ = set.delete(old, Self.topic)
    set.settle()
    _ = set.put(new, Self.topic, own: token)
    set.settle()
    set.now = begin
    set.restart(2)
    let (request, push) = set.push(token, Self.topic)
    set.settle()
    #expect(set.responses[request] == .accepted(uniqueID: push.uniqueID))
    for count in [2, 3, 1] {
      set.restart(count)
      #expect(set.holder(of: push)?.device == new.credential.device)
      set.settle()
      set.checkSettled("\(places)")
    }
    #expect(set.problems == [])
  }

  /// A journal in which two apps have one token, as none of ours: one of them keeps it.
  @Test func ofTwoRegistrationsOfOneTokenOneIsKept() {
    for seed in UInt64(0)..<20 {
      var set = ShardSet(3, seed: seed)
      let phones = [set.enroll(on: 0), set.enroll(on: 1)]
      let token = set.makeToken(on: 2)
      set.damage { disk in
        for (number, phone) in phones.enumerated() {
          disk.write(
            JournalRecord(
              sequence: UInt64(number + 1),
              content: .registered(phone.credential.device, Self.topic, token, isOwn: true)),
            at: ShardFixture.start)
        }
      }
      set.restart(3)
      set.settle()
      #expect(set.ownApps.count == 1)
      set.checkSettled("seed \(seed)")
      #expect(set.problems == [])
    }
  }

  @Test func aPushToAnAliasHopsAndAMintedOneDoesNot() {
    var fixture = ShardFixture()
    let app = fixture.phoneWithApp()
    let minted = fixture.submit(fixture.push(.visible, app))
    #expect(!minted.contains { if case .tell = $0 { true } else { false } })
    var set = ShardSet(2, seed: 1)
    let phone = set.enroll(on: 0)
    let token = set.makeToken(on: 1)
    _ = set.put(phone, Self.topic, own: token)
    set.settle()
    let (request, push) = set.push(token, Self.topic)
    #expect(set.steps == [.deliver(from: 1, to: 0)])
    set.take(.deliver(from: 1, to: 0))
    set.take(.write(0))
    #expect(set.responses[request] == .accepted(uniqueID: push.uniqueID))
  }

  /// Before the registration is on disk no provider can know the token; and while a removal is.
  @Test func aPushMeetsAChangeUnderWay() {
    var set = ShardSet(2, seed: 1)
    let phone = set.enroll(on: 0)
    let token = set.makeToken(on: 1)
    _ = set.put(phone, Self.topic, own: token)
    set.take(.deliver(from: 0, to: 1))
    let (early, _) = set.push(token, Self.topic)
    #expect(set.responses[early] == .rejected(.badDeviceToken))
    set.settle()
    _ = set.delete(phone, Self.topic)
    let (late, push) = set.push(token, Self.topic)
    // When it was asked for, as the journal has it.
    let since = set.now
    set.now = set.now + .seconds(1)
    set.take(.deliver(from: 1, to: 0))
    set.settle()
    #expect(set.responses[late] == .accepted(uniqueID: push.uniqueID))
    #expect(set.holder(of: push) == nil)
    let (later, _) = set.push(token, Self.topic)
    #expect(set.responses[later] == .gone(since: since))
  }
}
