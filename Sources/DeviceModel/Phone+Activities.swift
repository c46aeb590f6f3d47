import Primitives

/// Live Activities (ActivityKit, "Starting and updating Live Activities with ActivityKit push
/// notifications" and "Displaying live data with Live Activities"). Numbers that Apple does not
/// publish are the policy `live-activities`, in `PhoneLimits`, and ours.
extension Phone {
  mutating func perform(_ event: ActivityEvent, _ effects: inout [PhoneEffect]) {
    switch event {
    case .pushed(let push, let rides): received(push, rides: rides, &effects)
    case .allowed(nil, let isOn): allowActivitiesForAll(isOn, &effects)
    case .started(let app, _, _, _, _), .updated(let app, _, _), .ended(let app, _, _),
      .renewed(let app, _), .swipedAway(let app, _), .allowed(let app?, _),
      .frequentAllowed(let app, _):
      guard apps.indices.contains(app.number), apps[app.number].state != .uninstalled else {
        return ignore(.unknownApp, &effects)
      }
      perform(event, of: app.number, &effects)
    }
  }

  private mutating func perform(
    _ event: ActivityEvent, of index: Int, _ effects: inout [PhoneEffect]
  ) {
    switch event {
    case .pushed, .allowed(nil, _): break
    case .started(_, let type, let attributes, let content, let channel):
      start(type, attributes, content, channel, index, &effects)
    case .updated(_, let id, let content):
      change(id, index, mustRun: true, &effects) { phone, effects in
        phone.show(content, id, index, &effects)
      }
    case .ended(_, let id, let content):
      change(id, index, mustRun: true, &effects) { phone, effects in
        if let content { phone.show(content, id, index, &effects) }
        phone.end(id, index, leavesAt: nil, &effects)
      }
    case .renewed(_, let id):
      change(id, index, mustRun: false, &effects) { phone, effects in
        guard phone.apps[index].live[id]?.hasToken == true else {
          return phone.ignore(.notAllowed, &effects)
        }
        phone.renewToken(of: id, index, &effects)
      }
    case .swipedAway(_, let id):
      guard apps[index].live[id] != nil else { return ignore(.unknownActivity, &effects) }
      end(id, index, leavesAt: now, &effects)
    case .allowed(_, let isOn):
      guard apps[index].live.isAllowed != isOn else { return ignore(.alreadySo, &effects) }
      change(index, &effects) { $0.isAllowed = isOn }
      tell(.allowed(isOn), index, &effects)
    case .frequentAllowed(_, let isOn):
      guard apps[index].live.allowsFrequent != isOn else { return ignore(.alreadySo, &effects) }
      apps[index].live.allowsFrequent = isOn
      tell(.frequentAllowed(isOn), index, &effects)
    }
  }

  func tell(_ step: ActivityStep, _ index: Int, _ effects: inout [PhoneEffect]) {
    emit(.activity(AppID(index), step), &effects)
  }

  private mutating func change(
    _ id: ActivityID, _ index: Int, mustRun: Bool, _ effects: inout [PhoneEffect],
    _ deed: (inout Phone, inout [PhoneEffect]) -> Void
  ) {
    guard !mustRun || isRunning(index) else { return ignore(.notRunning, &effects) }
    guard let activity = apps[index].live[id], activity.state != .ended else {
      return ignore(.unknownActivity, &effects)
    }
    deed(&self, &effects)
  }

  // MARK: What is allowed

  /// Switched on for all, unless its user did otherwise.
  package var areActivitiesOn: Bool { hasActivitiesOff != true }

  package func mayShowActivities(_ app: AppID) -> Bool {
    areActivitiesOn && apps[app.number].live.isAllowed
      && apps[app.number].state != .uninstalled
  }

  private mutating func allowActivitiesForAll(_ isOn: Bool, _ effects: inout [PhoneEffect]) {
    guard areActivitiesOn != isOn else { return ignore(.alreadySo, &effects) }
    let before = apps.indices.map { addresses(of: AppID($0)) }
    hasActivitiesOff = isOn ? nil : true
    for index in apps.indices { followTokens(index, before[index], &effects) }
  }

  /// Changes what tokens depend on.
  private mutating func change(
    _ index: Int, _ effects: inout [PhoneEffect], _ deed: (inout ActivityBook) -> Void
  ) {
    let before = addresses(of: AppID(index))
    deed(&apps[index].live)
    followTokens(index, before, &effects)
  }

  /// Ends what may not be shown any more, and tells which tokens came and went.
  mutating func followTokens(
    _ index: Int, _ before: [ActivityAddress], _ effects: inout [PhoneEffect]
  ) {
    if !mayShowActivities(AppID(index)) {
      for activity in apps[index].live.activities {
        end(activity.id, index, leavesAt: now, &effects)
      }
    }
    let after = addresses(of: AppID(index))
    for case .start(let type) in before where !after.contains(.start(type)) {
      tell(.address(.start(type), isValid: false), index, &effects)
    }
    for case .start(let type) in after where !before.contains(.start(type)) {
      tell(.address(.start(type), isValid: true), index, &effects)
    }
  }

  /// The tokens that the app's server has now, and the channels that the app subscribes to.
  package func addresses(of app: AppID) -> [ActivityAddress] {
    guard let found = self[app], mayShowActivities(app) else { return [] }
    let types = found.definition.activities?.types ?? []
    let alive = found.live.activities.filter { $0.state != .ended }
    return types.map { .start($0) } + alive.filter(\.hasToken).map { .update($0.id) }
      + Set(alive.compactMap(\.channel)).sorted().map { .channel($0) }
  }

  // MARK: Started

  /// By the app, which must be in the foreground; its token is there at once.
  private mutating func start(
    _ type: String, _ attributes: [UInt8], _ content: [UInt8], _ channel: String?, _ index: Int,
    _ effects: inout [PhoneEffect]
  ) {
    guard apps[index].state == .foreground else { return ignore(.notInForeground, &effects) }
    if let refusal = obstacle(type, index) {
      if case .tooMany = refusal { return ignore(.limitReached, &effects) }
      return ignore(.notAllowed, &effects)
    }
    let id = add(type, attributes, content, channel, by: nil, index, &effects)
    handToken(of: id, index, &effects)
  }

  private func obstacle(_ type: String, _ index: Int) -> ActivityRefusal? {
    guard areActivitiesOn else { return .offForAll }
    guard apps[index].live.isAllowed else { return .off }
    guard apps[index].definition.activities?.types.contains(type) == true else {
      return .unknownType(String(type.prefix(64)))
    }
    // The room of one that has ended is free, once it has left the screen or not.
    let count = apps[index].live.activities.count { $0.state != .ended }
    return count < limits.activities ? nil : .tooMany(count)
  }

  private mutating func add(
    _ type: String, _ attributes: [UInt8], _ content: [UInt8], _ channel: String?,
    by push: PushID?, _ index: Int, _ effects: inout [PhoneEffect]
  ) -> ActivityID {
    // Of those that have ended the oldest makes room, so that the list has a bound.
    if apps[index].live.activities.count >= 2 * limits.activities,
      let oldest = apps[index].live.activities.first(where: { $0.state == .ended })
    {
      leaveScreen(oldest.id, index, &effects)
    }
    apps[index].live.lastNumber += 1
    let id = ActivityID(apps[index].live.lastNumber)
    let isNews = channel.map { listeners(to: $0, index).isEmpty } ?? false
    apps[index].live.activities.append(
      LiveActivity(
        id, type: type, attributes: attributes, content: content, channel: channel, at: now))
    tell(.started(id, type: type, by: push), index, &effects)
    tell(.shows(id, content), index, &effects)
    if isNews, let channel { tell(.address(.channel(channel), isValid: true), index, &effects) }
    return id
  }

  /// The activities of an app that a channel updates.
  private func listeners(to channel: String, _ index: Int) -> [ActivityID] {
    apps[index].live.activities.filter { $0.channel == channel && $0.state != .ended }.map(\.id)
  }

  // MARK: Pushed

  private mutating func received(
    _ push: ActivityPush, rides: Bool, _ effects: inout [PhoneEffect]
  ) {
    let wasAsleep = wakefulness == .asleep
    if push.isUrgent || rides { wake(&effects) }
    if !push.isBroadcast {
      switch recentPushes[push.id] {
      case .open?: return ignore(.duplicatePush, &effects)
      case .reported(let outcome)?: return emit(.report(push.id, outcome), &effects)
      case nil: recentPushes.add(push.id, atMost: limits.recentPushes)
      }
    }
    guard apps.indices.contains(push.app.number), apps[push.app.number].state != .uninstalled
    else { return settle(push, .notLaunched(.notInstalled), &effects) }
    guard let deed = push.deed else { return refuse(push, .lacks("event"), &effects) }
    guard push.timestamp != nil else { return refuse(push, .lacks("timestamp"), &effects) }
    switch (push.address, deed) {
    case (.start(let type), .start): start(push, type, &effects)
    case (.update(let id), .update), (.update(let id), .end):
      // Priority 5 wakes neither screen nor processor.
      if wasAsleep, !push.isUrgent, !rides { return hold(push, id, &effects) }
      update(push, id, &effects)
    case (.channel(let channel), .update), (.channel(let channel), .end):
      let listeners = listeners(to: channel, push.app.number)
      for id in listeners {
        if wasAsleep, !push.isUrgent {
          hold(push, id, &effects)
        } else {
          update(push, id, &effects)
        }
      }
      guard listeners.isEmpty else { return }
      refuse(push, .unknownActivity, &effects)
      // The relay has not heard yet that the last one is over.
      tell(.address(push.address, isValid: false), push.app.number, &effects)
    case (.start, .update), (.start, .end), (.update, .start), (.channel, .start):
      refuse(push, .wrongToken, &effects)
    }
  }

  /// Reports to the relay, which waits for no answer to a broadcast.
  private mutating func settle(
    _ push: ActivityPush, _ outcome: PushOutcome, _ effects: inout [PhoneEffect]
  ) {
    if !push.isBroadcast { report(push.id, outcome, &effects) }
  }

  private mutating func refuse(
    _ push: ActivityPush, _ refusal: ActivityRefusal, _ effects: inout [PhoneEffect]
  ) {
    tell(.notShown(push.id, refusal), push.app.number, &effects)
    settle(push, .notShown(refusal), &effects)
  }

  private mutating func start(
    _ push: ActivityPush, _ type: String, _ effects: inout [PhoneEffect]
  ) {
    let index = push.app.number
    guard push.type == type else {
      return refuse(
        push, push.type.map { .unknownType(String($0.prefix(64))) } ?? .lacks("attributes-type"),
        &effects)
    }
    guard let attributes = push.attributes else {
      return refuse(push, .lacks("attributes"), &effects)
    }
    guard let content = push.content else {
      return refuse(push, .lacks("content-state"), &effects)
    }
    guard push.channel != "" else { return refuse(push, .lacks("input-push-channel"), &effects) }
    if let refusal = obstacle(type, index) { return refuse(push, refusal, &effects) }
    let limit = startLimit
    guard limit.allows(apps[index].live.starts, at: now) else {
      let until = limit.nextAllowed(apps[index].live.starts)
      return refuse(push, .startBudget(until: until), &effects)
    }
    limit.consume(&apps[index].live.starts, at: now)
    let id = add(type, attributes, content, push.channel, by: push.id, index, &effects)
    note(push, id, &effects)
    alert(push, &effects)
    report(push.id, .shown, &effects)
    runForToken(of: id, index, &effects)
  }

  /// The app is run for the new token; one that was swiped away reads it when it is next opened
  /// (Apple says it may be run all the same; testers saw that only sometimes).
  private mutating func runForToken(
    of id: ActivityID, _ index: Int, _ effects: inout [PhoneEffect]
  ) {
    guard let activity = apps[index].live[id], activity.channel == nil else { return }
    if apps[index].state == .foreground { return handToken(of: id, index, &effects) }
    guard apps[index].state.mayBeLaunched, lock != .beforeFirstUnlock,
      apps[index].callbackCount < limits.callbacksPerApp
    else {
      let refusal: LaunchRefusal =
        lock == .beforeFirstUnlock
        ? .beforeFirstUnlock : apps[index].state == .forceQuit ? .forceQuit : .tooManyCallbacks
      return emit(.app(AppID(index), .notRun(.activity, refusal)), &effects)
    }
    startCallback(index, .activity, &effects)
  }

  private mutating func update(
    _ push: ActivityPush, _ id: ActivityID, _ effects: inout [PhoneEffect]
  ) {
    let index = push.app.number
    guard areActivitiesOn else { return refuse(push, .offForAll, &effects) }
    guard apps[index].live.isAllowed else { return refuse(push, .off, &effects) }
    guard let place = place(of: id, index) else {
      return refuse(push, .unknownActivity, &effects)
    }
    let activity = apps[index].live.activities[place]
    guard activity.state != .ended else { return refuse(push, .hasEnded, &effects) }
    guard push.timestamp ?? 0 >= activity.timestamp ?? 0 else {
      return refuse(push, .outdated, &effects)
    }
    let isEnd = push.deed == .end
    guard push.content != nil || isEnd else {
      return refuse(push, .lacks("content-state"), &effects)
    }
    // An end is not held back (ours).
    if push.isUrgent, !isEnd {
      let limit = updateLimit(index)
      guard limit.allows(apps[index].live.updates, at: now) else {
        let until = limit.nextAllowed(apps[index].live.updates)
        return refuse(push, .updateBudget(until: until), &effects)
      }
      limit.consume(&apps[index].live.updates, at: now)
    }
    if let waiting = activity.waiting, waiting.id != push.id {
      apps[index].live.activities[place].waiting = nil
      refuse(waiting, .replaced(by: push.id), &effects)
    }
    note(push, id, &effects)
    if let content = push.content { show(content, id, index, &effects) }
    alert(push, &effects)
    settle(push, .shown, &effects)
    if isEnd { end(id, index, leavesAt: push.leavesAt, &effects) }
  }

  private mutating func note(
    _ push: ActivityPush, _ id: ActivityID, _ effects: inout [PhoneEffect]
  ) {
    let index = push.app.number
    guard let place = place(of: id, index) else { return }
    apps[index].live.activities[place].timestamp = push.timestamp
    apps[index].live.activities[place].staleAt = push.staleAt
    if let relevance = push.relevance {
      apps[index].live.activities[place].relevance = relevance
    }
  }

  private mutating func alert(_ push: ActivityPush, _ effects: inout [PhoneEffect]) {
    var shown = RemotePush(id: push.id, app: push.app, alert: push.alert)
    shown.hasSound = push.hasSound
    present(shown, isContentReady: false, &effects)
  }

  // MARK: Priority 5

  /// Merged to the newest; shown with what next wakes the phone.
  private mutating func hold(
    _ push: ActivityPush, _ id: ActivityID, _ effects: inout [PhoneEffect]
  ) {
    let index = push.app.number
    guard let place = place(of: id, index) else {
      return refuse(push, .unknownActivity, &effects)
    }
    // It would be forgotten with the activity.
    guard apps[index].live.activities[place].state != .ended else {
      return refuse(push, .hasEnded, &effects)
    }
    if let waiting = apps[index].live.activities[place].waiting {
      guard push.timestamp ?? 0 >= waiting.timestamp ?? 0 else {
        return refuse(push, .replaced(by: waiting.id), &effects)
      }
      refuse(waiting, .replaced(by: push.id), &effects)
    }
    apps[index].live.activities[place].waiting = push
    emit(.decision(push.app, push.id, .waits(.nextWake, until: nil)), &effects)
  }

  /// The phone is awake.
  mutating func showWaiting(_ effects: inout [PhoneEffect]) {
    mustShowActivities = false
    releaseQuiet(&effects)
    for index in apps.indices where apps[index].book != nil {
      for activity in apps[index].live.activities {
        guard let push = activity.waiting, let place = place(of: activity.id, index) else {
          continue
        }
        apps[index].live.activities[place].waiting = nil
        update(push, activity.id, &effects)
      }
    }
  }

  // MARK: Shown, stale, ended

  func place(of id: ActivityID, _ index: Int) -> Int? {
    apps[index].live.activities.firstIndex { $0.id == id }
  }

  private mutating func show(
    _ content: [UInt8], _ id: ActivityID, _ index: Int, _ effects: inout [PhoneEffect]
  ) {
    guard let place = place(of: id, index) else { return }
    apps[index].live.activities[place].content = content
    apps[index].live.activities[place].state = .active
    tell(.shows(id, content), index, &effects)
    reviewActivities(index, &effects)
  }

  /// - Parameter leavesAt: at most `activityStay` from now; nil for the latest.
  private mutating func end(
    _ id: ActivityID, _ index: Int, leavesAt: Instant?, _ effects: inout [PhoneEffect]
  ) {
    guard let place = place(of: id, index) else { return }
    if apps[index].live.activities[place].state != .ended {
      let latest = now + limits.activityStay
      let leaves = max(now, min(leavesAt ?? latest, latest))
      let activity = apps[index].live.activities[place]
      apps[index].live.activities[place].state = .ended
      apps[index].live.activities[place].leavesAt = leaves
      apps[index].live.activities[place].waiting = nil
      tell(.ended(id, leaves: leaves), index, &effects)
      if let push = activity.waiting { refuse(push, .hasEnded, &effects) }
      if activity.hasToken { tell(.address(.update(id), isValid: false), index, &effects) }
      if let channel = activity.channel, listeners(to: channel, index).isEmpty {
        tell(.address(.channel(channel), isValid: false), index, &effects)
      }
    }
    guard let leaves = apps[index].live[id]?.leavesAt, leaves > now, leavesAt != now else {
      return leaveScreen(id, index, &effects)
    }
  }

  private mutating func leaveScreen(
    _ id: ActivityID, _ index: Int, _ effects: inout [PhoneEffect]
  ) {
    apps[index].live.activities.removeAll { $0.id == id }
    tell(.left(id), index, &effects)
  }

  /// Does what is due: stale dates, the end after `activityTime`, and leaving the screen.
  mutating func reviewActivities(_ index: Int, _ effects: inout [PhoneEffect]) {
    for activity in apps[index].live.activities {
      guard let place = place(of: activity.id, index) else { continue }
      if activity.state == .active, let stale = activity.staleAt, stale <= now {
        apps[index].live.activities[place].state = .stale
        tell(.stale(activity.id), index, &effects)
      }
      if activity.state != .ended, activity.startedAt + limits.activityTime <= now {
        end(activity.id, index, leavesAt: nil, &effects)
      } else if activity.state != .ended, activity.tokenEnd(limits) <= now {
        renewToken(of: activity.id, index, &effects)
      }
      if let leaves = activity.leavesAt, leaves <= now {
        leaveScreen(activity.id, index, &effects)
      }
    }
  }

  mutating func activitiesDue(_ effects: inout [PhoneEffect]) {
    activityTimer = .never
    for index in apps.indices { reviewActivities(index, &effects) }
  }

  mutating func setActivityTimer() {
    var next = Instant.never
    for index in apps.indices where apps[index].book != nil {
      for activity in apps[index].live.activities {
        next = min(next, activity.nextMoment(limits))
      }
    }
    guard next < activityTimer else { return }
    activityTimer = next
    timers.set(.activitiesDue, at: max(next, now))
  }
}

extension ActivityPush {
  var isBroadcast: Bool { if case .channel = address { true } else { false } }
}

extension LiveActivity {
  /// When time changes it next.
  fileprivate func nextMoment(_ limits: PhoneLimits) -> Instant {
    guard state != .ended else { return leavesAt ?? .never }
    let end = min(startedAt + limits.activityTime, tokenEnd(limits))
    return min(end, state == .active ? staleAt ?? .never : .never)
  }

  fileprivate func tokenEnd(_ limits: PhoneLimits) -> Instant {
    tokenSince.map { $0 + limits.activityTokenTime } ?? .never
  }
}
