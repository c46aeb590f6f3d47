import Primitives
import TestSeeds
import Testing

@testable import RelayCore

/// Several shards, phones that bring tokens along, a journal that is slow or fails, crashes after
/// which there may be another number of shards: whatever happens in whatever
/// order, a token has one app, every request one answer, and nothing is left over.
@Suite struct ShardAliasesPropertyTests {
  private struct Life {
    var set: ShardSet
    var phones: [Phone] = []
    var tokens: [DeviceToken] = []
    let topics = [Topic("app0")!, Topic("app1")!]
    /// Requests of this run of the relay.
    var requests: [RequestID] = []
    var pushes: [RequestID] = []
    var answers: [DeviceAnswer: Int] = [:]
    var restarts = 0
    let fails: Bool
    /// Events between shards get lost, as between nodes.
    let loses: Bool
    var losses = 0

    init(seed: UInt64) {
      var generator = SeededRandom(seed: seed)
      let count = Int.random(in: 1...3, using: &generator)
      set = ShardSet(
        count, seed: seed,
        configuration: .init(
          pendingPersists: generator.chance(20) ? 2 : 1000,
          partitionCount: [3, 16, 256].randomElement(using: &generator)!),
        keepsDevices: seed % 2 == 1)
      fails = generator.chance(50)
      loses = generator.chance(50)
      for _ in 0..<3 { phones.append(set.enroll()) }
      for _ in 0..<3 { tokens.append(set.makeToken()) }
    }

    mutating func step() {
      let dice = Int.random(in: 0..<100, using: &set.generator)
      let phone = phones.randomElement(using: &set.generator)!
      let topic = topics.randomElement(using: &set.generator)!
      let token = tokens.randomElement(using: &set.generator)!
      switch dice {
      case 0..<14: requests.append(set.put(phone, topic, own: token))
      case 14..<17: requests.append(set.put(phone, topic, own: nil))
      case 17..<25: requests.append(set.delete(phone, topic))
      case 25..<35: pushes.append(set.push(token, topic).0)
      case 35..<37: set.now = set.now + .milliseconds(Int64(dice))
      case 37: restart()
      case 38: quiet()
      default:
        guard let step = set.steps.randomElement(using: &set.generator) else { return }
        if case .write(let shard) = step, fails, set.generator.chance(20) {
          set.take(.fail(shard))
        } else if case .deliver(let from, let to) = step, loses, set.generator.chance(10) {
          set.take(.lose(from: from, to: to))
          losses += 1
        } else if loses, set.generator.chance(2) {
          set.wait()
        } else {
          set.take(step)
        }
      }
      set.check("step")
    }

    private mutating func restart() {
      set.restart(Int.random(in: 1...3, using: &set.generator))
      restarts += 1
      // Nobody is there any more to hear an answer.
      count()
      set.check("restart")
    }

    private mutating func count() {
      for request in requests {
        if let answer = set.answers[request] { answers[answer, default: 0] += 1 }
      }
      requests = []
      pushes = []
    }

    /// Nothing is under way: then there is one right answer to everything.
    mutating func quiet() {
      set.settle()
      while set.shards.contains(where: { $0.tokenChanges.count > 0 }) {
        set.wait()
        set.settle()
      }
      if loses { for phone in phones { findOrphans(for: phone) } }
      set.checkSettled("quiet")
      for request in requests where set.answers[request] == nil {
        set.problems.append("a request without an answer")
      }
      for push in pushes where set.responses[push] == nil {
        set.problems.append("a push without an answer")
      }
      count()
      let phone = phones.randomElement(using: &set.generator)!
      let topic = topics.randomElement(using: &set.generator)!
      let token = tokens.randomElement(using: &set.generator)!
      let holder = set.ownApps.first { $0.token == token }
      let wanted = OwnToken(token: token, device: phone.credential.device, topic: topic)
      let request = set.put(phone, topic, own: token)
      set.settle()
      let isFree = holder == nil || holder == wanted
      let expected = isFree ? DeviceAnswer.registered(token) : .refused(.tokenTaken)
      // With hardly any room in the journal, it may have had none.
      let isUnlucky = set.answers[request] == .refused(.unavailable)
      if set.answers[request] != expected, !isUnlucky {
        set.problems.append("\(String(describing: set.answers[request])) instead of \(expected)")
      }
      push(token)
      set.checkSettled("quiet, after a request")
    }

    /// Whoever is refused a token has its holder asked.
    private mutating func findOrphans(for phone: Phone) {
      for token in tokens where !set.ownApps.contains(where: { $0.token == token }) {
        for _ in 0..<2 { requests.append(set.put(phone, Topic("orphans")!, own: token)) }
        set.settle()
        requests.append(set.delete(phone, Topic("orphans")!))
        set.settle()
      }
    }

    private mutating func push(_ token: DeviceToken) {
      let holder = set.ownApps.first { $0.token == token }
      let (request, notification) = set.push(token, holder?.topic ?? topics[0])
      set.settle()
      switch set.responses[request] {
      case .accepted:
        let found = set.holder(of: notification)
        if found == nil || found != holder { set.problems.append("pushed to \(found as Any)") }
      case .rejected(.serviceUnavailable): break
      case .gone, .rejected, nil:
        if holder != nil { set.problems.append("\(set.responses[request] as Any) for a token") }
      }
    }
  }

  @Test func promisesHoldOverSeveralShards() {
    var answers: [DeviceAnswer: Int] = [:]
    var restarts = 0
    for seed in seeds(0..<120) {
      var life = Life(seed: seed)
      for _ in 0..<300 where life.set.problems.isEmpty { life.step() }
      if life.set.problems.isEmpty { life.quiet() }
      #expect(life.set.problems.isEmpty, "seed \(seed): \(life.set.problems.prefix(3))")
      answers.merge(life.answers, uniquingKeysWith: +)
      restarts += life.restarts
    }
    let registered = answers.reduce(0) { sum, item in
      if case .registered = item.key { sum + item.value } else { sum }
    }
    // Worth something only if everything happens.
    #expect(registered >= 500 && restarts >= 200, "\(registered), \(restarts)")
    for answer in [
      DeviceAnswer.unregistered, .refused(.tokenTaken), .refused(.unavailable),
      .refused(.unknownApp),
    ] {
      #expect(answers[answer, default: 0] >= 100, "\(answer): \(answers[answer, default: 0])")
    }
  }
}
