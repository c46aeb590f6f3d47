import Primitives
import RelayCore
import Testing

@testable import RelayCluster

/// Who is taken for alive, and which node does what about a stripe.
@Suite("Membership") struct MembershipTests {
  private static func at(_ milliseconds: Int64) -> Instant {
    Instant(milliseconds: 100_000 + milliseconds)
  }

  private static func key(_ number: UInt16, revision: UInt64 = 1) -> Membership.Key {
    .init(
      revision: revision, stamp: Stamp(node: "n\(number)", run: UInt64(number)),
      report: NodeReport(number: number, loopCount: 2))
  }

  @Test func aKeyThatDoesNotChangeForALeaseIsNobodys() {
    var membership = Membership(length: .seconds(3))
    for time in stride(from: Int64(0), through: 5000, by: 250) {
      membership.observe(
        [Self.key(1, revision: 9), Self.key(2, revision: UInt64(time))], at: Self.at(time))
      let alive = membership.alive(at: Self.at(time)).map(\.report.number)
      #expect(alive == (time < 3000 ? [1, 2] : [2]), "at \(time)")
    }
    // It goes on.
    membership.observe([Self.key(1, revision: 10), Self.key(2, revision: 6000)], at: Self.at(5250))
    #expect(membership.alive(at: Self.at(5250)).count == 2)
  }

  @Test func theFirstNodeAtWorkForgetsThoseLongGone() {
    var membership = Membership(length: .seconds(3))
    let day = Limits.goneNodeKept.milliseconds
    for time in stride(from: Int64(0), through: day, by: 1000) {
      membership.observe(
        [Self.key(1, revision: 9), Self.key(3, revision: UInt64(time))], at: Self.at(time))
      let overdue = membership.overdue(at: Self.at(time), me: 2).map(\.stamp.node)
      #expect(overdue == (time < day ? [] : ["n1"]), "at \(time)")
      #expect(membership.overdue(at: Self.at(time), me: 4).isEmpty)
    }
  }

  @Test func anOldViewIsNoSignOfLife() {
    var membership = Membership(length: .seconds(3))
    for time in stride(from: Int64(0), through: 4000, by: 250) {
      // A server that lags behind and one that does not answer in turn.
      membership.observe([Self.key(1, revision: time % 500 == 0 ? 7 : 5)], at: Self.at(time))
    }
    #expect(membership.alive(at: Self.at(4000)).isEmpty)
  }

  @Test func whoHasGivenItsLeaseUpIsGoneAtOnce() {
    var membership = Membership(length: .seconds(3))
    membership.observe([Self.key(1), Self.key(2)], at: Self.at(0))
    membership.observe([Self.key(2)], at: Self.at(250))
    #expect(membership.alive(at: Self.at(250)).map(\.report.number) == [2])
    #expect(membership.all(at: Self.at(500)).map(\.age) == [.milliseconds(500)])
  }

  /// The engine was away for longer than a lease, and nobody could renew theirs.
  @Test func nobodyIsGoneBecauseNobodyCouldLook() {
    var membership = Membership(length: .seconds(3))
    membership.observe([Self.key(1)], at: Self.at(0))
    // Nor while nobody can.
    for time in stride(from: Int64(0), through: 9000, by: 100) {
      #expect(membership.all(at: Self.at(time)).map(\.isAlive) == [true], "at \(time)")
    }
    membership.observe([Self.key(1)], at: Self.at(10_000))
    #expect(membership.alive(at: Self.at(10_000)).count == 1)
    for time in stride(from: Int64(10_250), through: 13_000, by: 250) {
      membership.observe([Self.key(1)], at: Self.at(time))
    }
    #expect(membership.alive(at: Self.at(13_000)).isEmpty)
  }

  /// The servers have no leader: all can look, and nobody can say that it is there.
  @Test func silenceMeansNothingToWhoHasNoLease() {
    var membership = Membership(length: .seconds(3))
    for time in stride(from: Int64(0), through: 10_000, by: 250) {
      membership.observe([Self.key(1)], at: Self.at(time), hasLease: time < 1000 || time > 9000)
    }
    #expect(membership.alive(at: Self.at(10_000)).count == 1)
    #expect(membership.all(at: Self.at(10_000)).map(\.age) == [.seconds(10)])
    // One that was gone before does not come back by that.
    for time in stride(from: Int64(10_250), through: 20_000, by: 250) {
      membership.observe(
        [Self.key(1)], at: Self.at(time), hasLease: time < 15_500 || time > 18_000)
      #expect(membership.alive(at: Self.at(time)).isEmpty == (time >= 12_000), "at \(time)")
    }
  }

  /// A node that comes does not know when another has died; that one's key does.
  @Test func aNodeIsGoneSinceItHasWritten() {
    var membership = Membership(length: .seconds(3))
    let day = Limits.goneNodeKept
    var gone = Self.key(3)
    gone.writtenAt = Self.at(0)
    for time in stride(from: Int64(0), through: 3000, by: 1000) {
      membership.observe([gone], at: Self.at(time), wall: Self.at(time) + day)
      #expect(membership.all(at: Self.at(time)).map(\.age) == [day + .milliseconds(time)])
      #expect(membership.overdue(at: Self.at(time), me: 2).count == (time < 3000 ? 0 : 1))
    }
  }

  /// The key of one that died names what another has had since, and gives to this one.
  @Test func whatIsGivenIsNotThatOfOneThatMayHaveDied() {
    var membership = Membership(length: .seconds(3))
    var (dead, giver) = (Self.key(1), Self.key(2))
    dead.report.holdings = [.init(stripe: 0, epoch: 4, phase: .live)]
    giver.report.offers = [.init(stripe: 0, run: 9)]
    func step(of run: UInt64) -> ClusterView.Step? {
      ClusterView(
        stripeCount: 1, run: run, report: NodeReport(number: UInt16(run), loopCount: 1),
        others: membership.alive(at: Self.at(0)), unproven: membership.unproven
      ).step
    }
    membership.observe([dead, giver], at: Self.at(0))
    #expect(step(of: 9) == .claim(0))
    #expect(step(of: 8) == nil, "it is given to another")
    dead.revision += 1
    membership.observe([dead, giver], at: Self.at(250))
    #expect(step(of: 9) == nil, "it has not died")
    // Of another run of that name nothing is known either.
    dead.revision += 1
    dead.stamp.run += 100
    membership.observe([dead, giver], at: Self.at(500))
    #expect(step(of: 9) == .claim(0))
  }
}

/// What a node notices of itself and of the others' clocks.
@Suite("Time between nodes") struct NodeTimeTests {
  private static func at(_ milliseconds: Int64) -> Instant { Instant(milliseconds: milliseconds) }

  /// Polls come late, and some keys do: none of that is a clock.
  @Test func clocksThatDifferAreNoticed() {
    var membership = Membership(length: .seconds(3))
    let offsets: [String: Int64] = ["right": 0, "ahead": 5000, "behind": -90_000]
    for round in 0..<6 as Range<Int64> {
      let wall = 1_000_000 + round * 1000
      let delay = [40, 900, 250, 10, 2000, 30][Int(round)]
      let keys = offsets.enumerated().map { index, node in
        Membership.Key(
          revision: UInt64(round * 3) + UInt64(index) + 1,
          stamp: Stamp(node: node.key, run: UInt64(index) + 1),
          report: NodeReport(number: UInt16(index) + 1, loopCount: 1),
          writtenAt: Self.at(wall - Int64(delay) + node.value))
      }
      membership.observe(keys, at: Self.at(round * 1000), wall: Self.at(wall))
      let found = membership.clockDifferences(at: Self.at(round * 1000))
      guard round >= 3 else {
        #expect(found.isEmpty)
        continue
      }
      #expect(found["right"] == .milliseconds(10))
      #expect(found["ahead"] == .milliseconds(-4990))
      #expect(found["behind"] == .milliseconds(90_010))
    }
    #expect(membership.clockDifferences(at: Self.at(60_000)).isEmpty)
  }

  @Test func whoStoodStillLooksBeforeItSpeaks() {
    var still = Standstill(lease: .seconds(6))
    // Before anybody looks after it, nothing is known.
    #expect(!still.isStill(at: Self.at(100_000)))
    still.turn(at: Self.at(0))
    for now in stride(from: Int64(250), through: 5000, by: 250) {
      #expect(!still.isStill(at: Self.at(now)))
      still.turn(at: Self.at(now))
    }
    // A look that began before it stood still says nothing.
    let before = still.count
    #expect(still.isStill(at: Self.at(8000)))
    still.turn(at: Self.at(8000))
    still.looked(after: before)
    #expect(still.isStill(at: Self.at(8001)))
    still.looked(after: still.count)
    #expect(!still.isStill(at: Self.at(8002)))
    still.turn(at: nil)
    #expect(!still.isStill(at: Self.at(100_000)))
  }

  @Test func numbersOfRunsBeginAgain() {
    #expect(ClusterJournal.number(ofStart: 1) == 1)
    #expect(ClusterJournal.number(ofStart: 65_535) == 65_535)
    #expect(ClusterJournal.number(ofStart: 65_536) == 1)
    #expect(ClusterJournal.number(ofStart: .max) == 65_535)
  }
}

@Suite("ClusterView") struct ClusterViewTests {
  /// Nodes with what they hold; by number, which is their run, too.
  private struct Scene {
    var reports: [NodeReport]

    init(_ holdings: [[(Int, NodeReport.Phase)]]) {
      reports = holdings.enumerated().map { index, list in
        var report = NodeReport(number: UInt16(index + 1), loopCount: 1)
        report.holdings = list.map {
          .init(stripe: UInt8($0.0), epoch: 1, phase: $0.1)
        }
        return report
      }
    }

    func view(of number: Int, stripes: Int, due: Set<UInt8> = []) -> ClusterView {
      ClusterView(
        stripeCount: stripes, run: UInt64(number), report: reports[number - 1],
        others: reports.filter { Int($0.number) != number }.map {
          .init(revision: 1, stamp: Stamp(node: "\($0.number)", run: UInt64($0.number)), report: $0)
        }, due: due)
    }

    /// Lets each node do what it does next, at once, until nobody does anything; how many stripes
    /// moved.
    mutating func settle(stripes: Int) -> Int {
      var (epoch, offers) = (UInt64(2), 0)
      for _ in 0..<1000 {
        var isQuiet = true
        for index in reports.indices {
          switch view(of: index + 1, stripes: stripes).step {
          case .claim(let stripe):
            reports[index].holdings.append(
              .init(stripe: UInt8(stripe), epoch: epoch, phase: .live))
            for other in reports.indices {
              reports[other].offers.removeAll { Int($0.stripe) == stripe }
            }
          case .offer(let stripe, let run):
            reports[index].holdings.removeAll { Int($0.stripe) == stripe }
            reports[index].offers.append(.init(stripe: UInt8(stripe), run: run))
            offers += 1
          case nil: continue
          }
          epoch += 1
          isQuiet = false
        }
        if isQuiet { return offers }
      }
      Issue.record("it never ends")
      return offers
    }

    var loads: [Int] { reports.map(\.holdings.count) }
  }

  @Test(arguments: 1...5, [1, 3, 8, 16])
  func everybodyGetsAsMany(nodes: Int, stripes: Int) {
    var scene = Scene(Array(repeating: [], count: nodes))
    #expect(scene.settle(stripes: stripes) == 0)
    #expect((scene.loads.max() ?? 0) - (scene.loads.min() ?? 0) <= 1)
    #expect(scene.loads.reduce(0, +) == stripes)
    // Each sees all stripes with somebody, and all see the same.
    for number in 1...nodes {
      let view = scene.view(of: number, stripes: stripes)
      #expect(view.isComplete)
      let mine = scene.reports[number - 1].holdings.map { Int($0.stripe) }
      for (stripe, route) in view.routes.enumerated() {
        #expect((route == .here) == mine.contains(stripe))
      }
    }
  }

  @Test func aNewNodeGetsItsShareAndNoStripeMovesTwice() {
    var scene = Scene([(0..<8).map { ($0, .live) }, []])
    #expect(scene.settle(stripes: 8) == 4)
    #expect(scene.loads == [4, 4])
    scene.reports.append(NodeReport(number: 3, loopCount: 1))
    #expect(scene.settle(stripes: 8) == 2)
    #expect(scene.loads.sorted() == [2, 3, 3])
  }

  /// What a dead node had falls to those with fewest; before they have it nobody gives any of its
  /// own away, for that would move phones that have nothing to do with it.
  @Test func aDeathMovesOnlyWhatTheDeadNodeHad() {
    var scene = Scene([[(4, .live), (5, .live), (6, .live)], [(3, .live), (7, .live)]])
    #expect(scene.view(of: 1, stripes: 8).step == .claim(1))
    scene.reports[0].holdings.append(.init(stripe: 1, epoch: 2, phase: .live))
    #expect(scene.view(of: 1, stripes: 8).step == nil)
    #expect(scene.settle(stripes: 8) == 0)
    #expect(scene.loads == [4, 4])
  }

  /// One that still says that it has what another one took is dead, or does not know yet.
  @Test func aNodeThatIsBehindGetsNothing() {
    var scene = Scene([[(0, .live), (1, .live)], [(2, .live), (3, .live)], [(4, .live)]])
    for stripe in [UInt8(0), 1] {
      scene.reports[1].holdings.append(.init(stripe: stripe, epoch: 2, phase: .live))
    }
    #expect(scene.view(of: 2, stripes: 5).step == .offer(3, to: 3))
    scene.reports[2].holdings.append(.init(stripe: 5, epoch: 1, phase: .live))
    #expect(scene.view(of: 3, stripes: 6).step == nil)
    // Nor what nobody has.
    #expect(scene.view(of: 3, stripes: 7).step == .claim(6))
    // Once it knows, it gets its share again.
    scene.reports[0].holdings = []
    #expect(scene.view(of: 2, stripes: 6).step == .offer(3, to: 1))
  }

  /// Its first key says that it is there, the next that it has looked.
  @Test func aNodeThatHasNotLookedIsGivenNothing() {
    var scene = Scene([[(0, .live), (1, .live)], []])
    scene.reports[1].loopCount = 0
    #expect(scene.view(of: 1, stripes: 2).step == nil)
    scene.reports[1].loopCount = 1
    #expect(scene.view(of: 1, stripes: 2).step == .offer(1, to: 2))
  }

  /// Two that end together: the one's taker is the other.
  @Test func whatIsGivenToOneThatLeavesIsTakenByAnother() {
    var scene = Scene([[], [(1, .live)], [(2, .live)]])
    scene.reports[0].offers = [.init(stripe: 0, run: 3)]
    (scene.reports[0].isDraining, scene.reports[2].isDraining) = (true, true)
    let routes = (1...3).map { scene.view(of: $0, stripes: 3).routes[0] }
    #expect(routes == [.moving, .moving, .moving], "pushes wait, they are not refused")
    #expect(scene.view(of: 2, stripes: 3).step == .claim(0))
  }

  @Test func aNodeThatDrainsGivesAllAwayAndTakesNone() {
    var scene = Scene([[(0, .live), (1, .live)], [(2, .live)], []])
    scene.reports[0].isDraining = true
    #expect(scene.settle(stripes: 4) >= 2)
    #expect(scene.loads[0] == 0 && scene.loads.reduce(0, +) == 4)
    // When all drain, somebody has to have the stripes all the same.
    var last = Scene([[]])
    last.reports[0].isDraining = true
    #expect(last.settle(stripes: 2) == 0 && last.loads == [2])
  }

  @Test func whatIsOnItsWayWaits() {
    var scene = Scene([[(0, .leaving), (1, .loading), (2, .live)], []])
    let other = scene.view(of: 2, stripes: 4)
    #expect(other.routes == [.moving, .moving, .node(1), .nobody] && !other.isComplete)
    // One at a time.
    #expect(scene.view(of: 1, stripes: 3).step == nil)
    scene.reports[0].holdings.removeFirst()
    scene.reports[0].offers = [.init(stripe: 0, run: 2)]
    #expect(scene.view(of: 2, stripes: 3).routes[0] == .moving)
    #expect(scene.view(of: 2, stripes: 3).step == .claim(0))
    #expect(scene.view(of: 1, stripes: 3).step == nil)
    // Whom it was offered to is gone: another takes it.
    scene.reports[0].offers = [.init(stripe: 0, run: 77)]
    #expect(scene.view(of: 2, stripes: 3).routes[0] == .moving)
    #expect(scene.view(of: 2, stripes: 3).step == .claim(0))
  }

  @Test func theLaterEpochCounts() {
    var scene = Scene([[(0, .live)], [(0, .live)]])
    scene.reports[1].holdings[0].epoch = 2
    #expect(scene.view(of: 1, stripes: 1).routes == [.node(2)])
    #expect(scene.view(of: 2, stripes: 1).routes == [.here])
  }

  /// Whoever has tried says so: first the others, whose servers may have more, then each again.
  @Test func whatCannotBeReadHindersNothingElse() {
    var scene = Scene([[], []])
    scene.reports[0].unread = [0]
    #expect(scene.view(of: 1, stripes: 5).step == .claim(1))
    #expect(scene.view(of: 2, stripes: 5).step == .claim(2))
    scene.reports[1].unread = [0]
    #expect(scene.settle(stripes: 5) == 0 && scene.loads == [2, 2])
    // One that comes gets its share, and tries.
    scene.reports.append(NodeReport(number: 3, loopCount: 1))
    scene.reports[2].unread = [0]
    #expect(scene.settle(stripes: 5) == 1 && scene.loads.sorted() == [1, 1, 2])
    scene.reports[2].unread = []
    #expect(scene.view(of: 3, stripes: 5).step == .claim(0))
    scene.reports[2].unread = [0]
    for number in 1...3 {
      let view = scene.view(of: number, stripes: 5)
      #expect(view.step == nil && view.unread == [0])
      #expect(scene.view(of: number, stripes: 5, due: [0]).step == .claim(0))
    }
    // It could be read after all, by somebody.
    scene.reports[1].holdings.append(.init(stripe: 0, epoch: 1, phase: .live))
    #expect(scene.view(of: 1, stripes: 5, due: [0]).step == nil)
    #expect(scene.view(of: 3, stripes: 5).unread == [])
    scene.reports[1].holdings.removeLast()
    scene.reports[0].isDraining = true
    scene.reports[0].holdings = []
    #expect(scene.view(of: 1, stripes: 5, due: [0]).step == nil)
  }

  /// Between nodes whose servers do not have the same, a stripe would come and go.
  @Test func whatANodeCouldNotReadIsNotGivenToIt() {
    var scene = Scene([[(0, .live), (1, .live), (2, .live), (3, .live)], []])
    #expect(scene.view(of: 1, stripes: 4).step == .offer(3, to: 2))
    scene.reports[1].unread = [3, 2]
    #expect(scene.view(of: 1, stripes: 4).step == .offer(1, to: 2))
    scene.reports[1].unread = [0, 1, 2, 3]
    #expect(scene.view(of: 1, stripes: 4).step == nil)
    // Another one gets its share.
    scene.reports.append(NodeReport(number: 3, loopCount: 1))
    #expect(scene.view(of: 1, stripes: 4).step == .offer(3, to: 3))
    scene.reports.removeLast()
    // It goes all the same, and so do its stripes.
    scene.reports[0].isDraining = true
    #expect(scene.view(of: 1, stripes: 4).step == .offer(3, to: 2))
  }

  @Test func whatIsLeftAloneIsSoForLongerAndLonger() {
    var quarantine = Quarantine()
    var now = Instant(milliseconds: 1000)
    var pauses: [Int64] = []
    for _ in 0..<8 {
      let pause = quarantine.add(3, at: now)
      pauses.append(pause.milliseconds / 1000)
      #expect(quarantine.stripes == [3] && quarantine.due(at: now).isEmpty)
      now = now + pause
      #expect(quarantine.due(at: now) == [3])
    }
    #expect(pauses == [1, 2, 4, 8, 10, 10, 10, 10])
    // Another node has it.
    quarantine.keep([1], at: now + .milliseconds(299_999))
    #expect(quarantine.stripes == [3])
    quarantine.keep([3], at: now + .seconds(3600))
    #expect(quarantine.stripes == [3])
    quarantine.keep([1], at: now + .seconds(300))
    #expect(quarantine.stripes.isEmpty && quarantine.add(3, at: now) == .seconds(1))
    quarantine.remove(3)
    #expect(quarantine.stripes.isEmpty)
  }

  /// Phones are led to whoever has their stripe, or will have it.
  @Test func theAddressOfEachStripesOwnerIsKnown() {
    var scene = Scene([
      [(0, .live), (1, .leaving)], [(2, .live), (3, .loading)], [(4, .leaving)],
    ])
    for index in scene.reports.indices { scene.reports[index].device = "n\(index + 1):5223" }
    scene.reports[2].offers = [.init(stripe: 5, run: 2)]
    let view = scene.view(of: 1, stripes: 7)
    #expect(view.owners() == ["", "", "n2:5223", "n2:5223", "", "n2:5223", ""])
    let giving = view.owners(giving: .init(stripe: 1, run: 3))
    #expect(giving == ["", "n3:5223", "n2:5223", "n2:5223", "", "n2:5223", ""])
    #expect(
      scene.view(of: 2, stripes: 7).owners() == ["n1:5223", "", "", "", "", "", ""])
  }

  /// A key that cannot be read is somebody's, who has what nobody here knows.
  @Test func nobodyTakesAnythingBesideANodeThatCannotBeUnderstood() {
    let stranger = Membership.Key(
      revision: 1, stamp: Stamp(node: "new", run: 0), report: .unreadable)
    let view = ClusterView(
      stripeCount: 3, run: 1, report: NodeReport(number: 1, loopCount: 1), others: [stranger])
    #expect(view.step == nil && !view.isComplete)
  }

  /// One that reads the next form as well has its share; one that does not read what is written,
  /// nothing.
  @Test func aNodeGetsStripesThatItReads() {
    var scene = Scene([[(0, .live), (1, .live), (2, .live)], []])
    scene.reports[1].form += 1
    #expect(scene.settle(stripes: 4) == 1 && scene.loads == [2, 2])
    scene = Scene([[(0, .live), (1, .live), (2, .live)], []])
    scene.reports[1].form -= 1
    #expect(scene.settle(stripes: 4) == 0 && scene.loads == [4, 0])
  }
}
