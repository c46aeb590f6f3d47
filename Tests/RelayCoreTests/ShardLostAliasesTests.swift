import Primitives
import Testing

@testable import RelayCore

/// Tokens that devices bring along, between nodes, where events get lost.
@Suite struct ShardLostAliasesTests {
  private static let topic = Topic("com.example.app")!

  private static let lost: [(from: Int, to: Int)] = [(0, 1), (1, 0)]

  /// The question or its answer: a second later it is asked again.
  @Test func whatGetsLostIsAskedAgain() {
    for (from, to) in Self.lost {
      var set = ShardSet(2, seed: 1)
      let (phone, token) = (set.enroll(on: 0), set.makeToken(on: 1))
      for isClaim in [true, false, true] {
        let request =
          isClaim ? set.put(phone, Self.topic, own: token) : set.delete(phone, Self.topic)
        while let step = set.steps.first, step != .deliver(from: from, to: to) { set.take(step) }
        set.take(.lose(from: from, to: to))
        set.settle()
        #expect(set.answers[request] == nil)
        set.wait()
        set.settle()
        #expect(set.answers[request] == (isClaim ? .registered(token) : .unregistered))
        set.checkSettled("\(from) to \(to), \(isClaim)")
      }
      #expect(set.problems == [])
    }
  }

  /// The device's shard has given up, as one that goes to another node does.
  private func orphan(_ set: inout ShardSet, _ phone: Phone, _ token: DeviceToken) {
    let request = set.put(phone, Self.topic, own: token)
    for _ in 0...Limits.tokenQuestions {
      while let step = set.steps.first {
        set.take(.lose(from: 1, to: 0))
        if set.steps.contains(step) { set.take(step) }
      }
      set.wait()
    }
    #expect(set.answers[request] == .refused(.unavailable))
    #expect(set.shards[0].tokenChanges.count == 0 && set.shards[1].aliases.count == 1)
  }

  @Test func anAppIsGrantedAgainWhatItWasGranted() {
    var set = ShardSet(2, seed: 1)
    let (phone, token) = (set.enroll(on: 0), set.makeToken(on: 1))
    orphan(&set, phone, token)
    let request = set.put(phone, Self.topic, own: token)
    set.settle()
    #expect(set.answers[request] == .registered(token))
    set.checkSettled("granted again")
    #expect(set.problems == [])
  }

  @Test func anOrphanedGrantIsFoundWhenSomebodyElseWantsTheToken() {
    var set = ShardSet(2, seed: 1)
    let (phone, other, token) = (set.enroll(on: 0), set.enroll(on: 0), set.makeToken(on: 1))
    orphan(&set, phone, token)
    for expected in [DeviceAnswer.refused(.tokenTaken), .registered(token)] {
      let request = set.put(other, Self.topic, own: token)
      set.settle()
      #expect(set.answers[request] == expected)
    }
    // Who has a token is asked, too, and keeps it.
    let late = set.put(phone, Self.topic, own: token)
    set.settle()
    #expect(set.answers[late] == .refused(.tokenTaken))
    set.checkSettled("found")
    #expect(set.problems == [])
  }

  @Test func anOrphanedGrantIsFoundByAPush() {
    var set = ShardSet(2, seed: 1)
    let (phone, token) = (set.enroll(on: 0), set.makeToken(on: 1))
    orphan(&set, phone, token)
    let (push, _) = set.push(token, Self.topic)
    set.settle()
    #expect(set.responses[push] == .rejected(.badDeviceToken))
    set.checkSettled("found by a push")
    #expect(set.problems == [])
  }

  /// An answer that comes when nobody waits for it any more.
  @Test func aLateGrantIsGivenBack() {
    var set = ShardSet(2, seed: 1)
    let (phone, token) = (set.enroll(on: 0), set.makeToken(on: 1))
    let own = OwnToken(token: token, device: phone.credential.device, topic: Self.topic)
    orphan(&set, phone, token)
    set.raise(.alias(.decided(own, .granted)), key: own.device.routingKey)
    set.settle()
    set.checkSettled("late")
    #expect(set.problems == [])
  }

  /// A token was removed, and is granted to another device whose registration then fails: for
  /// providers it is gone since it was removed.
  @Test func aTokenGivenBackIsGoneSinceBefore() {
    var set = ShardSet(3, seed: 5)
    let (old, new) = (set.enroll(on: 1), set.enroll(on: 2))
    let token = set.makeToken(on: 0)
    _ = set.put(old, Self.topic, own: token)
    set.settle()
    _ = set.delete(old, Self.topic)
    set.settle()
    let since = set.now
    set.now = set.now + .seconds(1)
    let request = set.put(new, Self.topic, own: token)
    while let step = set.steps.first {
      set.take(step == .write(2) && set.answers[request] == nil ? .fail(2) : step)
    }
    #expect(set.answers[request] == .refused(.unavailable))
    let (late, _) = set.push(token, Self.topic)
    set.settle()
    #expect(set.responses[late] == .gone(since: since))
    set.checkSettled("given back")
    #expect(set.problems == [])
  }
}
