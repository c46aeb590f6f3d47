import Primitives

@testable import RelayCore

/// Devices, their apps, and what those may spend.
extension Checker {
  /// Notes what the shard wants written; from then on it counts for the shard.
  mutating func note(_ content: JournalRecord.Content, _ sequence: UInt64) {
    switch content {
    case .accepted, .forwarded, .granted, .released, .forgotten, .subscribed, .unsubscribed: break
    case .enrolled(let device, _): enrolments[device] = false
    case .registered(let device, let topic, let token, _):
      if case .journal(.persistFailed) = eventAtHand {
        guard let known = alive(device, topic) else { return expect(false, "said again of no app") }
        expect(registrations[known].app.token == token, "said again with another token")
        restated[sequence] = known
        return
      }
      guard let (credential, request) = registrationAtHand(of: topic, token),
        credential.device == device
      else { return expect(false, "a registration of nobody's") }
      let app = PhoneApp(phone: Phone(credential: credential), topic: topic, token: token)
      deviceRequests[request] = .register(app, made: registrations.count)
      var registration = Registration(app: app, sequence: sequence)
      if case .alias = eventAtHand {
        registration.isAlive = false
      } else {
        expect(registrationOf[token] == nil, "a token of two apps")
        registrationOf[token] = registrations.count
      }
      registrations.append(registration)
    case .unregistered(_, _, let token, _) where registrationOf[token] == nil:
      if case .journal(.persistFailed) = eventAtHand { return }
      expect(false, "unregistered twice")
    case .unregistered(let device, let topic, let token, let moment):
      guard let registration = registrationOf[token] else {
        return expect(false, "unregistered twice")
      }
      let app = registrations[registration].app
      expect(app.phone.credential.device == device && app.topic == topic, "another's app")
      expect(moment == now, "the time of unregistration")
      guard case .asked(.unregistered(_), _, let request) = eventAtHand else {
        return remove(registration, by: sequence)
      }
      registrations[registration].removal = sequence
      deviceRequests[request] = .unregister(made: registration)
    case .spent(_, _, app: RateLimit.State(), _): fullSequence = sequence
    case .spent(let device, let topic, _, _):
      expect(spentSequence == nil, "noted twice")
      spentSequence = sequence
      let isKnown = registrations.indices.contains {
        isThere($0) && registrations[$0].app.phone.credential.device == device
          && registrations[$0].app.topic == topic
      }
      expect(isKnown, "a budget of no app")
    }
  }

  /// The app that the device has for this topic.
  func alive(_ device: DeviceID, _ topic: Topic) -> Int? {
    registrations.lastIndex {
      $0.isAlive && $0.app.phone.credential.device == device && $0.app.topic == topic
    }
  }

  /// Whether it is there, or was until something that was settled by the event at hand.
  func isThere(_ registration: Int) -> Bool {
    registrations[registration].isAlive
      || registrations[registration].removal.map { $0 > settledBefore } ?? false
  }

  /// Whose request is granted now: one for a minted token at once, for another when its shard has
  /// decided.
  private func registrationAtHand(
    of topic: Topic, _ token: DeviceToken
  ) -> (DeviceCredential, RequestID)? {
    switch eventAtHand {
    case .asked(.registered(topic, token, isOwn: false), let credential, let request):
      return (credential, request)
    case .alias(.decided(let own, .granted)) where own.token == token && own.topic == topic:
      for (request, asked) in deviceRequests {
        guard case .register(let app, made: nil) = asked, app.token == token, app.topic == topic,
          app.phone.credential.device == own.device
        else { continue }
        return (app.phone.credential, request)
      }
      return nil
    default:
      return nil
    }
  }

  /// The app of this registration is gone, and its token since that moment.
  mutating func remove(_ registration: Int, by sequence: UInt64, since: Instant? = nil) {
    let token = registrations[registration].app.token
    registrations[registration].isAlive = false
    registrations[registration].removal = sequence
    registrationOf[token] = nil
    goneTokens[token] = (since ?? now, sequence)
  }

  mutating func check(_ answer: DeviceAnswer, to request: RequestID) {
    guard let asked = deviceRequests.removeValue(forKey: request) else { return }
    switch (answer, asked) {
    case (.enrolled(let device), .enroll(let asked)):
      expect(device == asked, "another device")
      enrolments[device] = true
    case (.registered(let token), .register(_, let made?)):
      expect(registrations[made].app.token == token, "another token than it has")
      expect(registrations[made].isPersisted, "200 for an app that the journal does not have")
      registrations[made].isAnswered = true
    case (.registered(let token), .register(let app, nil)):
      // It had it already.
      guard let known = registrationOf[token] else { return expect(false, "a token of no app") }
      expect(registrations[known].app.phone == app.phone, "a token of another phone")
      expect(registrations[known].app.topic == app.topic, "a token of another app")
      expect(registrations[known].isPersisted, "200 for an app that the journal does not have")
      registrations[known].isAnswered = true
    case (.unregistered, .unregister(let made?)):
      registrations[made].isRemovalAnswered = true
    case (.inspected, .other), (.subscribed, .other), (.unsubscribed, .other): break
    case (.refused(let reason), _): refused(reason, asked)
    default: expect(false, "\(answer) as the answer to \(asked)")
    }
  }

  private mutating func refused(_ reason: DeviceRefusal, _ asked: DeviceRequest) {
    guard reason == .unavailable else { return }
    switch asked {
    case .enroll(let device):
      enrolments[device] = nil
    case .register(_, let made?) where registrations[made].isAlive:
      expect(!registrations[made].isAnswered, "taken back after it was answered")
      registrations[made].isAlive = false
      registrationOf[registrations[made].app.token] = nil
    case .register, .unregister, .other: break
    }
  }

  // MARK: Budgets

  /// In no window more than the burst and what the rate adds.
  mutating func takeBudget(_ registration: Int) {
    let device = registrations[registration].app.phone.credential.device
    let condition = conditions[device] ?? DeviceCondition()
    let policies = policies(of: device)
    let policy = policies[policies.count - 1].policy
    expect(!condition.withholdsSilent, "a silent push in Low Power Mode")
    let spending = Spending(
      at: now.milliseconds, sequence: spentSequence ?? fullSequence, ofApp: policy.perApp != nil,
      ofDevice: policy.perDevice != nil)
    (spentSequence, fullSequence) = (nil, nil)
    guard !condition.liftsBudget else { return }
    if spending.sequence == nil, spending.ofApp || spending.ofDevice {
      // Before a push, as far as it was settled before this event, not a record more had room.
      let waiting = count(through: lastSequence) - count(through: settledBefore)
      expect(waiting >= UInt64(pendingLimit), "a silent push without a note of its budget")
    }
    let key = BudgetKey(device: device, topic: registrations[registration].app.topic)
    appBudgets[key, default: []].append(spending)
    deviceBudgets[device, default: []].append(spending)
    check(appBudgets[key]!.filter(\.ofApp), \.perApp, "app", policies)
    check(deviceBudgets[device]!.filter(\.ofDevice), \.perDevice, "device", policies)
  }

  /// A bucket that gets one for each spending and leaks at the rate of whichever policy is in force
  /// never holds more than the burst when a push goes into it.
  private mutating func check(
    _ spendings: [Spending], _ limit: KeyPath<SilentPolicy, RateLimit?>, _ name: String,
    _ policies: [(since: Int64, policy: SilentPolicy)]
  ) {
    guard let burst = policies[policies.count - 1].policy[keyPath: limit]?.burst,
      var last = spendings.first?.at
    else { return }
    var level = 0.0
    for spending in spendings {
      level = max(0, level - leaked(limit, from: last, to: spending.at, policies)) + 1
      last = spending.at
    }
    expect(level <= Double(burst) + 0.001, "more silent pushes than the \(name) may have")
  }

  /// What a bucket has lost in that time. Without a limit, it goes on as before.
  private func leaked(
    _ limit: KeyPath<SilentPolicy, RateLimit?>, from first: Int64, to last: Int64,
    _ policies: [(since: Int64, policy: SilentPolicy)]
  ) -> Double {
    var rate = SilentPolicy.documented[keyPath: limit]!.interval
    var sum = 0.0
    for (index, (since, policy)) in policies.enumerated() {
      if let limit = policy[keyPath: limit] { rate = limit.interval }
      let end = index + 1 < policies.count ? policies[index + 1].since : .max
      let time = min(end, last) - max(since, first)
      if time > 0 { sum += Double(time) / Double(rate.milliseconds) }
    }
    return sum
  }
}
