import DeviceModel
import Primitives

/// Plays a scenario in its own simulation.
struct ScenarioPlayer: Sendable {
  private enum Step: Sendable {
    case event(Int)
    case use(Scenario.Place)
    case endUse(Scenario.Place)
  }

  private let scenario: Scenario
  var simulation: Simulation
  private var random: SeededRandom
  private var apps: [[AppHandle]] = []
  private(set) var phones: [PhoneHandle] = []
  private var steps: [(at: Int64, order: Int, step: Step)] = []
  private var nextStep = 0

  init(_ scenario: Scenario, seed: UInt64) {
    let simulation = Simulation(
      seed: seed, policy: scenario.relay.policy, keepAlive: .milliseconds(scenario.relay.keepAlive),
      link: scenario.link)
    self.init(scenario, in: simulation, seed: seed)
  }

  /// The scenario's time starts now in the new simulation.
  init(
    _ scenario: Scenario, in simulation: Simulation, seed: UInt64,
    last: [String: LastingPhone] = [:]
  ) {
    self.scenario = scenario
    self.simulation = simulation
    self.simulation.origin = simulation.time
    // Separate from the simulation's, so that usage does not depend on the relay.
    random = SeededRandom(seed: ~seed)
    for plan in scenario.phones {
      let phone =
        if let last = last[plan.name] {
          self.simulation.addPhone(
            plan.name, restoring: last.memory, archives: last.archives, limits: plan.limits)
        } else {
          self.simulation.addPhone(
            plan.name, network: plan.network, isCharging: plan.isCharging,
            isLowPower: plan.isLowPower, limits: plan.limits)
        }
      phones.append(phone)
      self.simulation.phones[Int(phone.number)].account = plan.account
      if !plan.hasDrive, last[plan.name] == nil {
        self.simulation.tell(phone.number, .document(.driveSwitched(isOn: false)))
      }
      apps.append(plan.apps.map { self.simulation.install($0, on: phone) })
      if last[plan.name] != nil { self.simulation.update(phone, to: plan) }
    }
    planUsage()
    planEvents()
    steps.sort { ($0.at, $0.order) < ($1.at, $1.order) }
  }

  mutating func play() { play(until: simulation.origin + scenario.length) }

  /// At most to the end.
  mutating func play(until time: Int64) {
    let time = min(time, end)
    while nextStep < steps.count, simulation.origin + steps[nextStep].at <= time {
      simulation.advance(toMilliseconds: simulation.origin + steps[nextStep].at)
      perform(steps[nextStep].step)
      nextStep += 1
    }
    simulation.advance(toMilliseconds: time)
  }

  /// In the simulation's time.
  var end: Int64 { scenario.isEndless ? .max : simulation.origin + scenario.length }

  /// In the simulation's time.
  var nextMoment: Int64 {
    let step = nextStep < steps.count ? simulation.origin + steps[nextStep].at : end
    return min(step, end, simulation.nextHappening ?? .max)
  }

  private mutating func plan(_ step: Step, at moment: Int64) {
    steps.append((max(0, moment), steps.count, step))
  }

  // MARK: Days

  private mutating func planUsage() {
    for (number, plan) in scenario.phones.enumerated() {
      var usage = plan.usage
      if let habits = plan.habits {
        for app in plan.apps.indices { usage.append(draw(habits, app)) }
      }
      for one in usage { planUsage(one, Scenario.Place(phone: number, app: one.app)) }
    }
  }

  private mutating func draw(_ habits: Scenario.Habits, _ app: Int) -> Scenario.Usage {
    let count =
      habits.perDay.lowerBound
      + random.below(habits.perDay.upperBound - habits.perDay.lowerBound + 1)
    var clocks: [Int64] = []
    var clock = habits.between.lowerBound + random.below(habits.apart.upperBound + 1)
    while clocks.count < count, clock <= habits.between.upperBound {
      clocks.append(clock)
      clock +=
        max(1, habits.apart.lowerBound)
        + random.below(habits.apart.upperBound - habits.apart.lowerBound + 1)
    }
    return Scenario.Usage(
      app: app, clocks: clocks, jitter: habits.jitter, duration: habits.duration)
  }

  private mutating func planUsage(_ usage: Scenario.Usage, _ place: Scenario.Place) {
    // Its user goes by the phone's clock, as its learning does. A live phone's times count from its
    // start, which may be at any time of day.
    let isLive = simulation.relay == nil
    let ahead = isLive ? 0 : scenario.phones[place.phone].limits.timeZone.milliseconds
    var midnight = ahead < 0 ? -TimeText.day : 0
    while midnight < scenario.length + ahead {
      for clock in usage.clocks
      where usage.days.holds(midnight / TimeText.day) && midnight + clock >= ahead {
        // Two draws: usually close to the given time.
        let dice = random.below(usage.jitter + 1) + random.below(usage.jitter + 1)
        let at = max(0, midnight + clock + dice - usage.jitter - ahead)
        plan(.use(place), at: at)
        plan(.endUse(place), at: at + usage.duration)
      }
      midnight += TimeText.day
    }
  }

  // MARK: Events

  private mutating func planEvents() {
    for (index, event) in scenario.events.enumerated() {
      switch event.times {
      case .once(let at): planEvent(index, at: at)
      case .every(let interval, let from, let until, let count):
        var (at, left) = (from, count)
        while at <= min(until, scenario.length), left > 0 {
          planEvent(index, at: at)
          at += interval
          left -= 1
        }
      case .perDay(let count, let from, let until):
        var start = from
        while start < min(until, scenario.length) {
          for _ in 0..<count {
            let at = start + random.below(TimeText.day)
            if at < until { planEvent(index, at: at) }
          }
          start += TimeText.day
        }
      }
    }
  }

  private mutating func planEvent(_ index: Int, at moment: Int64) {
    plan(.event(index), at: moment)
    if case .app(let place, _, let duration?) = scenario.events[index].action {
      plan(.endUse(place), at: moment + duration)
    }
  }

  private func handle(_ place: Scenario.Place) -> AppHandle { apps[place.phone][place.app] }

  private mutating func perform(_ step: Step) {
    switch step {
    case .use(let place): simulation.open(handle(place))
    case .endUse(let place): simulation.endUse(handle(place))
    case .event(let index): perform(scenario.events[index].action)
    }
  }

  /// Somebody orders it now; a use has its end.
  mutating func order(_ action: Scenario.Action) {
    perform(action)
    guard case .app(let place, _, let duration?) = action else { return }
    steps.removeFirst(nextStep)
    nextStep = 0
    let at = simulation.time - simulation.origin + duration
    let later = steps.firstIndex { $0.at > at } ?? steps.endIndex
    steps.insert((at, 0, .endUse(place)), at: later)
  }

  mutating func perform(_ action: Scenario.Action) {
    switch action {
    case .push(let places, let payloads, let options):
      // Beside a real relay there are real providers.
      guard simulation.relay != nil else { return }
      let place = places[Int(random.below(Int64(places.count)))]
      let payload = payloads[Int(random.below(Int64(payloads.count)))]
      simulation.push(payload, to: handle(place), options)
    case .relay(let deed): deed(&simulation)
    case .app(let place, let deed, _): deed(&simulation, handle(place))
    case .phone(let phone, let deed): deed(&simulation, phones[phone])
    }
  }
}

extension Scenario {
  /// Plays the scenario. The same seed gives the same bytes.
  ///
  /// - Parameter keepsTrace: if false, keeps only entries that expectations look at: less memory,
  /// the same verdicts.
  public func run(seed: UInt64? = nil, keepsTrace: Bool = true) -> ScenarioResult {
    var player = ScenarioPlayer(self, seed: seed ?? self.seed)
    if !keepsTrace { player.simulation.keepOnly(Expectation.kinds(of: expectations)) }
    player.play()
    let simulation = player.simulation
    return ScenarioResult(
      title: title, file: file, simulation: simulation,
      verdicts: expectations.map { simulation.verdict($0) })
  }
}

/// The result of a scenario.
public struct ScenarioResult: Sendable {
  public let title: String
  public let file: String
  public let simulation: Simulation
  public let verdicts: [Verdict]

  public var isPassed: Bool { verdicts.allSatisfy(\.isPassed) }

  /// One JSON object per line: title and seed, the trace, the verdicts. The same scenario and seed
  /// give the same bytes.
  public var json: [String] {
    let head =
      "{\"scenario\":\(quoted(title)),\"file\":\(quoted(file)),\"seed\":\(simulation.seed)}"
    return [head] + simulation.trace().map(\.json) + verdicts.map(\.json)
  }
}
