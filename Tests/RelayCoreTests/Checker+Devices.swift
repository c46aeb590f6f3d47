@testable import RelayCore

/// Devices, their apps, and what those may spend.
extension Checker {
  /// Notes what the shard wants written; from then on it counts for the shard.
  mutating func note(_ content: JournalRecord.Content, _ sequence: UInt64) {
    switch content {
    case .accepted, .budgetsCleared, .granted, .released: break
    case .enrolled(let device, _): enrolments[device] = false
    case .registered(let device, let topic, let token, _):
      guard let (credential, request) = registrationAtHand(of: topic, token),
        credential.device == device
      else { return expect(false, "a registration of nobody's") }
      let older = registrations.lastIndex {
        $0.isAlive && $0.app.phone.credential == credential && $0.app.topic == topic
      }
      if let older { remove(older, by: sequence) }
      expect(registrationOf[token] == nil, "a token of two apps")
      registrationOf[token] = registrations.count
      let app = PhoneApp(phone: Phone(credential: credential), topic: topic, token: token)
      deviceRequests[request] = .register(app, made: registrations.count)
      registrations.append(Registration(app: app, sequence: sequence))
    case .unregistered(let device, let topic, let token, let moment):
      guard let registration = registrationOf[token] else {
        return expect(false, "unregistered twice")
      }
      let app = registrations[registration].app
      expect(app.phone.credential.device == device && app.topic == topic, "another's app")
      expect(moment == now, "the time of unregistration")
      remove(registration, by: sequence)
      if case .unregistered(_, _, let request) = eventAtHand {
        deviceRequests[request] = .unregister(made: registration)
      }
    case .spent(let device, let topic, _, _):
      expect(spentSequence == nil, "noted twice")
      spentSequence = sequence
      let isKnown = apps.contains { $0.phone.credential.device == device && $0.topic == topic }
      expect(isKnown, "a budget of no app")
    }
  }

  /// Whose request is granted now: one for a minted token at once, for another when its shard has
  /// decided.
  private func registrationAtHand(
    of topic: Topic, _ token: DeviceToken
  ) -> (DeviceCredential, RequestID)? {
    switch eventAtHand {
    case .registered(let credential, topic, token, isOwn: false, let request):
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

  /// The app of this registration is gone, and its token from now on.
  private mutating func remove(_ registration: Int, by sequence: UInt64) {
    let token = registrations[registration].app.token
    registrations[registration].isAlive = false
    registrations[registration].removal = sequence
    registrationOf[token] = nil
    goneTokens[token] = (now, sequence)
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
    case (.inspected, .other): break
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
    expect(!condition.withholdsSilent, "a silent push in Low Power Mode")
    let spending = Spending(at: now.milliseconds, sequence: spentSequence)
    spentSequence = nil
    guard !condition.liftsBudget else { return }
    if spending.sequence == nil, policy.perApp != nil || policy.perDevice != nil {
      // Before a push, as far as it was settled before this event, not a record more had room.
      let mayBeFull = lastSequence - settledBefore >= UInt64(pendingLimit)
      expect(mayBeFull, "a silent push without a note of its budget")
    }
    registrations[registration].budget.append(spending)
    deviceBudgets[device, default: []].append(spending)
    check(registrations[registration].budget, policy.perApp, "app")
    check(deviceBudgets[device]!, policy.perDevice, "device")
  }

  private mutating func check(_ spendings: [Spending], _ limit: RateLimit?, _ name: String) {
    guard let limit else { return }
    for (index, first) in spendings.enumerated() {
      let allowed = limit.burst + (now.milliseconds - first.at) / limit.interval.milliseconds
      expect(
        Int64(spendings.count - index) <= allowed, "more silent pushes than the \(name) may have")
    }
  }
}
