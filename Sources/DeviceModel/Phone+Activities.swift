import Primitives

/// Live Activities (ActivityKit, "Starting and updating Live Activities with ActivityKit push
/// notifications" and "Displaying live data with Live Activities"). Numbers that Apple does not
/// publish are the policy `live-activities`, in `PhoneLimits`, and ours.
extension Phone {
  mutating func perform(_ event: ActivityEvent) {
    switch event {
    case .pushed(let push, let rides): received(push, rides: rides)
    case .allowed(nil, let isOn): allowActivitiesForAll(isOn)
    case .started(let app, _, _, _, _), .updated(let app, _, _), .ended(let app, _, _),
      .renewed(let app, _), .swipedAway(let app, _), .allowed(let app?, _),
      .frequentAllowed(let app, _):
      guard apps.indices.contains(app.number), apps[app.number].state != .uninstalled else {
        return ignore(.unknownApp)
      }
      perform(event, of: app.number)
    }
  }

  private mutating func perform(_ event: ActivityEvent, of index: Int) {
    switch event {
    case .pushed, .allowed(nil, _): break
    case .started(_, let type, let attributes, let content, let channel):
      start(type, attributes, content, channel, index)
    case .updated(_, let id, let content):
      guard mayChange(id, index, mustRun: true) else { return }
      apps[index].live[id]?.staleAt = nil
      show(content, id, index)
    case .ended(_, let id, let content):
      guard mayChange(id, index, mustRun: true) else { return }
      if let content { show(content, id, index) }
      end(id, index, leavesAt: nil)
    case .renewed(_, let id):
      guard mayChange(id, index, mustRun: false) else { return }
      guard apps[index].live[id]?.hasToken == true else { return ignore(.notAllowed) }
      renewToken(of: id, index)
    case .swipedAway(_, let id):
      guard apps[index].live[id] != nil else { return ignore(.unknownActivity) }
      end(id, index, leavesAt: now)
    case .allowed(_, let isOn):
      guard apps[index].live.isAllowed != isOn else { return ignore(.alreadySo) }
      let before = addresses(of: AppID(index))
      apps[index].live.isAllowed = isOn
      followTokens(index, before)
      tell(.allowed(isOn), index)
    case .frequentAllowed(_, let isOn):
      guard apps[index].live.allowsFrequent != isOn else { return ignore(.alreadySo) }
      let before = updateLimit(index)
      apps[index].live.allowsFrequent = isOn
      keepUsed(before, index)
      tell(.frequentAllowed(isOn), index)
    }
  }

  mutating func tell(_ step: ActivityStep, _ index: Int) {
    emit(.activity(AppID(index), step))
  }

  private mutating func mayChange(_ id: ActivityID, _ index: Int, mustRun: Bool) -> Bool {
    let isAlive = apps[index].live.alive.contains { $0.id == id }
    let refusal: IgnoreReason? =
      mustRun && !isRunning(index) ? .notRunning : isAlive ? nil : .unknownActivity
    if let refusal { ignore(refusal) }
    return refusal == nil
  }

  // MARK: What is allowed

  /// Switched on for all, unless its user did otherwise.
  package var areActivitiesOn: Bool { hasActivitiesOff != true }

  package func mayShowActivities(_ app: AppID) -> Bool {
    areActivitiesOn && apps[app.number].live.isAllowed && apps[app.number].state != .uninstalled
  }

  private mutating func allowActivitiesForAll(_ isOn: Bool) {
    guard areActivitiesOn != isOn else { return ignore(.alreadySo) }
    let before = apps.indices.map { addresses(of: AppID($0)) }
    hasActivitiesOff = isOn ? nil : true
    for index in apps.indices { followTokens(index, before[index]) }
  }

  /// Ends what may not be shown any more, and tells which tokens came and went.
  mutating func followTokens(_ index: Int, _ before: [ActivityAddress]) {
    if !mayShowActivities(AppID(index)) {
      for activity in apps[index].live.activities { end(activity.id, index, leavesAt: now) }
    }
    let after = addresses(of: AppID(index))
    for case .start(let type) in before where !after.contains(.start(type)) {
      tell(.address(.start(type), isValid: false), index)
    }
    for case .start(let type) in after where !before.contains(.start(type)) {
      tell(.address(.start(type), isValid: true), index)
    }
  }

  /// The tokens that the app's server has now, and the channels that the app subscribes to.
  package func addresses(of app: AppID) -> [ActivityAddress] {
    guard let found = self[app], mayShowActivities(app) else { return [] }
    let types = found.definition.activities?.types ?? []
    let alive = found.live.alive
    return types.map { .start($0) } + alive.filter(\.hasToken).map { .update($0.id) }
      + Set(alive.compactMap(\.channel)).sorted().map { .channel($0) }
  }

  // MARK: Started

  /// By the app, which must be in the foreground; its token is there at once.
  private mutating func start(
    _ type: String, _ attributes: [UInt8], _ content: [UInt8], _ channel: String?, _ index: Int
  ) {
    guard apps[index].state == .foreground else { return ignore(.notInForeground) }
    if let refusal = obstacle(type, index) {
      if case .tooMany = refusal { return ignore(.limitReached) }
      return ignore(.notAllowed)
    }
    let id = add(type, attributes, content, channel, by: nil, index)
    handToken(of: id, index)
  }

  private func obstacle(_ type: String, _ index: Int) -> ActivityRefusal? {
    guard areActivitiesOn else { return .offForAll }
    guard apps[index].live.isAllowed else { return .off }
    guard apps[index].definition.activities?.types.contains(type) == true else {
      return .unknownType(String(type.prefix(64)))
    }
    // The room of one that has ended is free, once it has left the screen or not.
    let count = apps[index].live.alive.count
    return count < limits.activities ? nil : .tooMany(count)
  }

  private mutating func add(
    _ type: String, _ attributes: [UInt8], _ content: [UInt8], _ channel: String?,
    by push: PushID?, _ index: Int
  ) -> ActivityID {
    // Of those that have ended the oldest makes room, so that the list has a bound.
    if apps[index].live.activities.count >= 2 * limits.activities,
      let oldest = apps[index].live.activities.first(where: { $0.state == .ended })
    {
      leaveScreen(oldest.id, index)
    }
    apps[index].live.lastNumber += 1
    let id = ActivityID(apps[index].live.lastNumber)
    let isNews = channel.map { listeners(to: $0, index).isEmpty } ?? false
    apps[index].live.activities.append(
      LiveActivity(
        id, type: type, attributes: attributes, content: content, channel: channel, at: now))
    tell(.started(id, type: type, by: push), index)
    tell(.shows(id, content), index)
    if isNews, let channel { tell(.address(.channel(channel), isValid: true), index) }
    return id
  }

  /// The activities of an app that a channel updates.
  private func listeners(to channel: String, _ index: Int) -> [ActivityID] {
    apps[index].live.alive.filter { $0.channel == channel }.map(\.id)
  }

  // MARK: Pushed

  private mutating func received(_ push: ActivityPush, rides: Bool) {
    let wasAsleep = wakefulness == .asleep
    if push.isUrgent || rides { wake() }
    if !push.isBroadcast {
      switch recentPushes[push.id] {
      case .open?: return ignore(.duplicatePush)
      case .reported(let outcome)?: return emit(.report(push.id, outcome))
      case nil: recentPushes.add(push.id, atMost: limits.recentPushes)
      }
    }
    guard apps.indices.contains(push.app.number), apps[push.app.number].state != .uninstalled
    else { return settle(push, .notLaunched(.notInstalled)) }
    if let type = push.otherType { return refuse(push, .otherType(type)) }
    guard let deed = push.deed else { return refuse(push, .lacks("event")) }
    guard push.timestamp != nil else { return refuse(push, .lacks("timestamp")) }
    // Priority 5 wakes neither screen nor processor.
    let waits = wasAsleep && !push.isUrgent
    switch (push.address, deed) {
    case (.start(let type), .start): start(push, type)
    case (.update(let id), .update), (.update(let id), .end):
      update(push, id, waits: waits && !rides)
    case (.channel(let channel), .update), (.channel(let channel), .end):
      let listeners = listeners(to: channel, push.app.number)
      for id in listeners { update(push, id, waits: waits) }
      guard listeners.isEmpty else { return }
      refuse(push, .unknownActivity)
      // The relay has not heard yet that the last one is over.
      tell(.address(push.address, isValid: false), push.app.number)
    case (.start, .update), (.start, .end), (.update, .start), (.channel, .start):
      refuse(push, .wrongToken)
    }
  }

  /// Reports to the relay, which waits for no answer to a broadcast.
  private mutating func settle(_ push: ActivityPush, _ outcome: PushOutcome) {
    if !push.isBroadcast { report(push.id, outcome) }
  }

  private mutating func refuse(_ push: ActivityPush, _ refusal: ActivityRefusal) {
    tell(.notShown(push.id, refusal), push.app.number)
    settle(push, .notShown(refusal))
  }

  private mutating func start(_ push: ActivityPush, _ type: String) {
    let index = push.app.number
    guard let named = push.type else { return refuse(push, .lacks("attributes-type")) }
    guard named == type else {
      let isKnown = apps[index].definition.activities?.types.contains(named) == true
      return refuse(push, isKnown ? .wrongToken : .unknownType(String(named.prefix(64))))
    }
    guard let attributes = push.attributes else { return refuse(push, .lacks("attributes")) }
    guard let content = push.content else { return refuse(push, .lacks("content-state")) }
    // Apple has it among what a start needs.
    guard push.alert != nil else { return refuse(push, .lacks("alert")) }
    guard push.channel != "" else { return refuse(push, .lacks("input-push-channel")) }
    if let refusal = obstacle(type, index) { return refuse(push, refusal) }
    let limit = startLimit
    guard limit.allows(apps[index].live.starts, at: now) else {
      let until = limit.nextAllowed(apps[index].live.starts)
      return refuse(push, .startBudget(until: until))
    }
    limit.consume(&apps[index].live.starts, at: now)
    let id = add(type, attributes, content, push.channel, by: push.id, index)
    note(push, id)
    alert(push)
    report(push.id, .shown)
    runForToken(of: id, index)
  }

  /// The app is run for the new token; one that was swiped away reads it when it is next opened
  /// (Apple says it may be run all the same; testers saw that only sometimes).
  mutating func runForToken(of id: ActivityID, _ index: Int) {
    guard let activity = apps[index].live[id], activity.channel == nil else { return }
    if apps[index].state == .foreground { return handToken(of: id, index) }
    let refusal = lock == .beforeFirstUnlock ? .beforeFirstUnlock : launchRefusal(AppID(index))
    if let refusal { return emit(.app(AppID(index), .notRun(.activity, refusal))) }
    startCallback(index, .activity)
  }

  /// At the first unlock, for those that were started before it: one run reads all tokens.
  mutating func runForTokens(_ index: Int) {
    guard let activity = apps[index].live.alive.first(where: { !$0.hasToken && $0.channel == nil })
    else { return }
    runForToken(of: activity.id, index)
  }

  private mutating func update(_ push: ActivityPush, _ id: ActivityID, waits: Bool = false) {
    let index = push.app.number
    // The phone is awake: an end that came first goes first.
    if !waits, let end = apps[index].live[id]?.waiting, end.deed == .end, !end.isNewer(than: push) {
      apps[index].live[id]?.waiting = nil
      update(end, id)
    }
    if let refusal = obstacle(push, id) { return refuse(push, refusal) }
    if waits { return hold(push, id) }
    let isEnd = push.deed == .end
    // An end costs nothing (ours).
    if push.isUrgent, !isEnd {
      let limit = updateLimit(index)
      guard limit.allows(apps[index].live.updates, at: now) else {
        let until = limit.nextAllowed(apps[index].live.updates)
        return refuse(push, .updateBudget(until: until))
      }
      limit.consume(&apps[index].live.updates, at: now)
    }
    if let waiting = apps[index].live[id]?.waiting, !waiting.isNewer(than: push) {
      apps[index].live[id]?.waiting = nil
      refuse(waiting, .replaced(by: push.id))
    }
    note(push, id)
    if let content = push.content { show(content, id, index) }
    alert(push)
    settle(push, .shown)
    if isEnd { end(id, index, leavesAt: push.leavesAt) }
  }

  private func obstacle(_ push: ActivityPush, _ id: ActivityID) -> ActivityRefusal? {
    guard areActivitiesOn else { return .offForAll }
    guard apps[push.app.number].live.isAllowed else { return .off }
    guard let activity = apps[push.app.number].live[id] else { return .unknownActivity }
    guard activity.state != .ended else { return .hasEnded }
    guard push.timestamp ?? 0 >= activity.timestamp ?? 0 else { return .outdated }
    return push.content == nil && push.deed != .end ? .lacks("content-state") : nil
  }

  private mutating func note(_ push: ActivityPush, _ id: ActivityID) {
    guard var activity = self[push.app]?.live[id] else { return }
    (activity.timestamp, activity.staleAt) = (push.timestamp, push.staleAt)
    activity.relevance = push.relevance ?? activity.relevance
    apps[push.app.number].live[id] = activity
  }

  private mutating func alert(_ push: ActivityPush) {
    var shown = RemotePush(id: push.id, app: push.app, alert: push.alert)
    shown.hasSound = push.hasSound
    present(shown, isContentReady: false)
  }

  // MARK: Priority 5

  /// Merged to the newest, but nothing comes behind an end; shown with what next wakes the phone.
  private mutating func hold(_ push: ActivityPush, _ id: ActivityID) {
    if let waiting = apps[push.app.number].live[id]?.waiting {
      if waiting.isNewer(than: push) { return refuse(push, .replaced(by: waiting.id)) }
      if waiting.deed == .end, push.deed != .end { return refuse(push, .hasEnded) }
      refuse(waiting, .replaced(by: push.id))
    }
    apps[push.app.number].live[id]?.waiting = push
    emit(.decision(push.app, push.id, .waits(.nextWake, until: nil)))
  }

  /// The phone is awake.
  mutating func showWaiting() {
    mustShowActivities = false
    releaseQuiet()
    for index in apps.indices where apps[index].book != nil {
      for activity in apps[index].live.activities {
        guard let push = activity.waiting, apps[index].live[activity.id] != nil else { continue }
        apps[index].live[activity.id]?.waiting = nil
        update(push, activity.id)
      }
    }
  }

  // MARK: Shown, stale, ended

  private mutating func show(_ content: [UInt8], _ id: ActivityID, _ index: Int) {
    guard apps[index].live[id] != nil else { return }
    apps[index].live[id]?.content = content
    apps[index].live[id]?.state = .active
    tell(.shows(id, content), index)
    reviewActivities(index)
  }

  /// - Parameter leavesAt: at most `activityStay` from now; nil for the latest.
  private mutating func end(_ id: ActivityID, _ index: Int, leavesAt: Instant?) {
    guard let activity = apps[index].live[id] else { return }
    if activity.state != .ended {
      // By itself it ends when its time is over, though the phone may learn of that later.
      let latest = min(now, activity.startedAt + limits.activityTime) + limits.activityStay
      let leaves = max(now, min(leavesAt ?? latest, latest))
      apps[index].live[id]?.state = .ended
      apps[index].live[id]?.leavesAt = leaves
      apps[index].live[id]?.waiting = nil
      tell(.ended(id, leaves: leaves), index)
      if let push = activity.waiting { refuse(push, .hasEnded) }
      if activity.hasToken { tell(.address(.update(id), isValid: false), index) }
      if let channel = activity.channel, listeners(to: channel, index).isEmpty {
        tell(.address(.channel(channel), isValid: false), index)
      }
    }
    guard let leaves = apps[index].live[id]?.leavesAt, leaves > now, leavesAt != now else {
      return leaveScreen(id, index)
    }
  }

  private mutating func leaveScreen(_ id: ActivityID, _ index: Int) {
    apps[index].live[id] = nil
    tell(.left(id), index)
  }

  /// Does what is due: stale dates, the end after `activityTime`, and leaving the screen.
  mutating func reviewActivities(_ index: Int) {
    for activity in apps[index].live.activities {
      guard apps[index].live[activity.id] != nil else { continue }
      if activity.state == .active, let stale = activity.staleAt, stale <= now {
        apps[index].live[activity.id]?.state = .stale
        tell(.stale(activity.id), index)
      }
      if activity.state != .ended, activity.startedAt + limits.activityTime <= now {
        end(activity.id, index, leavesAt: nil)
      } else if activity.state != .ended, activity.tokenEnd(limits) <= now {
        renewToken(of: activity.id, index)
      }
      if let leaves = activity.leavesAt, leaves <= now { leaveScreen(activity.id, index) }
    }
  }

  mutating func setActivityTimer() {
    var next = Instant.never
    for index in apps.indices where apps[index].book != nil {
      for activity in apps[index].live.activities {
        next = min(next, activity.nextMoment(limits))
      }
    }
    timers.set(.activities, at: max(next, now))
  }
}

extension ActivityPush {
  var isBroadcast: Bool { address.isChannel }

  fileprivate func isNewer(than other: ActivityPush) -> Bool {
    timestamp ?? 0 > other.timestamp ?? 0
  }
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
