import DequeModule
import Primitives

/// Tokens brought along by devices.
///
/// The last eight bytes of a token select the shard that alone decides who owns it. A minted token
/// is an app there. A token brought along is an *alias* there, and its app is at its device's
/// shard:
///
/// ```
///   device's shard                        token's shard
///   PUT, secret checked ── claimed ─────▶ free? ─ persist(granted)
///                       ◀── decided ───── journal has it, or refused
///   persist(registered), app, 200
///   push                ◀── forwarded ─── push to the alias
///   DELETE, persist(unregistered)
///   journal has it      ── left ────────▶ alias removed, 410 from now on
///   204                 ◀── released ────
/// ```
///
/// Invariants:
/// 1. An app with its own token exists only while its token's shard holds the alias for it, so a
///    token has one app over all shards. The registration is authoritative: after a restart, a
///    grant that no registration confirms is released when all shards have confirmed; before that
///    the same app may claim it again.
/// 2. A refused request changes nothing: nothing is asked before the secret is checked, an unused
///    grant is returned before the refusal is sent, and an app changes only when the journal has
///    the change.
/// 3. Pushes accepted for an app are forgotten when the app is removed (`removeApp`), in the
///    journal before the token's next registration. So a restart gives none to the next owner; the
///    journal's order decides ownership, not times.
/// 4. Questions lost between nodes are repeated for some seconds. Repeating is idempotent: the same
///    app gets the same grant, and answers to finished changes are ignored. So every request is
///    answered, and `tokenChanges` becomes empty.
/// 5. A grant unknown to the device's shard is returned when the shard learns of it: by a late
///    `decided`, a push, or another claim (`questioned`).
extension Shard {
  mutating func handle(_ event: AliasEvent, into effects: inout [Effect]) {
    switch event {
    case .claimed(let own): claimed(own, into: &effects)
    case .left(let own, let since): left(own, since: since, into: &effects)
    case .confirmed(let own): confirmed(own, into: &effects)
    case .allConfirmed: allConfirmed(into: &effects)
    case .decided(let own, let decision): decided(own, decision, into: &effects)
    case .released(let own): released(own, into: &effects)
    case .denied(let own): denied(own, into: &effects)
    case .questioned(let own): giveBackUnused(own, into: &effects)
    case .forwarded(let notification, let device, let request):
      forwarded(notification, to: device, from: request, into: &effects)
    case .restored(let notification, let device, let sequence, let acceptedAt):
      restoreForwarded(notification, to: device, sequence, acceptedAt, into: &effects)
    }
  }

  // MARK: The token's shard

  /// Granted or about to be.
  func aliasNumber(_ token: DeviceToken) -> AliasNumber? {
    guard aliases.count > 0 else { return nil }
    return aliasIndex.find(KeyedHash.hash(token)) { aliases[.init($0)].own.token == token }
      .map { .init($0) }
  }

  /// The alias for pushes to this token: only one that the journal has.
  func grantedAlias(_ token: DeviceToken) -> AliasNumber? {
    guard let alias = aliasNumber(token), !isPending(aliases[alias].grant) else { return nil }
    return alias
  }

  private mutating func claimed(_ own: OwnToken, into effects: inout [Effect]) {
    if let alias = aliasNumber(own.token) {
      guard aliases[alias].own == own else {
        tell(aliases[alias].own.device, .questioned(aliases[alias].own), into: &effects)
        return tell(own.device, .decided(own, .refused(.tokenTaken)), into: &effects)
      }
      // A repeated claim: the answer, or the app, was lost. A pending grant is answered later.
      aliases[alias].isConfirmed = true
      guard !isPending(aliases[alias].grant) else { return }
      return tell(own.device, .decided(own, .granted), into: &effects)
    }
    if let refusal = refusal(of: own) {
      return tell(own.device, .decided(own, .refused(refusal)), into: &effects)
    }
    let sequence = nextSequence
    insert(Alias(own: own, grant: sequence, goneBefore: goneTokens[own.token]))
    pending.append(.alias(key: own.token.routingKey))
    aliasSteps.append(.grant(own))
    effects.append(.persist(JournalRecord(sequence: sequence, content: .granted(own))))
  }

  /// Why a token without an alias cannot be granted.
  private func refusal(of own: OwnToken) -> DeviceRefusal? {
    // For an app with its own token, the alias decides.
    if let app = appNumber(own.token), !apps[app].isOwn { return .tokenTaken }
    guard aliases.count < Limits.aliasesPerShard else { return .tooManyTokens }
    guard hasRoomForPersist else { return .unavailable }
    return nil
  }

  private mutating func left(_ own: OwnToken, since: Instant?, into effects: inout [Effect]) {
    if let alias = aliasNumber(own.token), aliases[alias].own == own {
      if let moment = since ?? aliases[alias].goneBefore { retire(own.token, since: moment) }
      remove(alias)
      // If this record is lost, the next start finds an unconfirmed alias.
      record(.released(own), key: own.token.routingKey, into: &effects)
    }
    tell(own.device, .released(own), into: &effects)
  }

  private mutating func insert(_ alias: Alias) {
    let hash = KeyedHash.hash(alias.own.token)
    aliasIndex.insert(aliases.insert(alias).number, hash)
    counters.aliases += 1
  }

  mutating func remove(_ alias: AliasNumber) {
    aliasIndex.remove(alias.number, KeyedHash.hash(aliases[alias].own.token))
    aliases.remove(at: alias)
    counters.aliases -= 1
  }

  // MARK: The device's shard

  /// An authenticated device wants this token for an app.
  mutating func claim(_ own: OwnToken, from request: RequestID, into effects: inout [Effect]) {
    guard hasRoomForPersist, tokenChanges.hasRoom(for: own.device) else {
      return effects.append(.answer(request, .refused(.unavailable)))
    }
    tokenChanges.begin(own, .claiming(request))
    ask(own, into: &effects)
  }

  /// Asks the token's shard, and again while no answer comes.
  private mutating func ask(_ own: OwnToken, into effects: inout [Effect]) {
    guard let step = tokenChanges.ask(own, at: now) else { return }
    let event: AliasEvent
    switch step {
    case .claiming: event = .claimed(own)
    case .leaving(let since, _): event = .left(own, since: since)
    case .writing: return
    }
    effects.append(.tell(routingKey: own.token.routingKey, .alias(event)))
  }

  /// Repeats unanswered questions; finally gives up and answers the request.
  mutating func askAgain(into effects: inout [Effect]) {
    for own in tokenChanges.due(at: now) {
      guard tokenChanges.isGivenUp(own), let step = tokenChanges.end(own) else {
        ask(own, into: &effects)
        continue
      }
      switch step {
      case .claiming(let request): effects.append(.answer(request, .refused(.unavailable)))
      case .writing: break
      case .leaving(_, let reply):
        // The journal has it; the token's shard learns of it at the next claim.
        if let reply { effects.append(.answer(reply.request, reply.answer)) }
      }
    }
  }

  private mutating func decided(
    _ own: OwnToken, _ decision: ClaimDecision, into effects: inout [Effect]
  ) {
    guard case .claiming(let request)? = tokenChanges[own] else {
      if case .granted = decision { giveBackUnused(own, into: &effects) }
      return
    }
    _ = tokenChanges.end(own)
    switch decision {
    case .refused(let refusal): effects.append(.answer(request, .refused(refusal)))
    case .granted: registerGranted(own, from: request, into: &effects)
    }
  }

  /// The device's current app stays until the journal has the new one.
  private mutating func registerGranted(
    _ own: OwnToken, from request: RequestID, into effects: inout [Effect]
  ) {
    func refuse(_ refusal: DeviceRefusal) {
      let reply = TokenChanges.Reply(request: request, answer: .refused(refusal))
      giveBack(own, since: nil, then: reply, into: &effects)
    }
    guard let device = deviceNumber(own.device) else { return refuse(.unknownDevice) }
    guard appNumber(of: device, own.topic) != nil || hasRoomForApp(device) else {
      return refuse(.tooManyApps)
    }
    guard hasRoomForPersist else { return refuse(.unavailable) }
    change(
      own, .registration(own), from: request,
      .registered(own.device, own.topic, own.token, isOwn: true), into: &effects)
  }

  /// Writes a token change, which takes effect once the journal has it.
  mutating func change(
    _ own: OwnToken, _ step: AliasStep, from request: RequestID, _ content: JournalRecord.Content,
    into effects: inout [Effect]
  ) {
    tokenChanges.begin(own, .writing(request))
    let sequence = nextSequence
    pending.append(.alias(key: own.device.routingKey))
    aliasSteps.append(step)
    effects.append(.persist(JournalRecord(sequence: sequence, content: content)))
  }

  /// Removes an app. A token of the device's own is returned before the answer.
  private mutating func remove(
    _ app: AppNumber, since moment: Instant, then reply: TokenChanges.Reply,
    into effects: inout [Effect]
  ) {
    let (own, isOwn) = (ownToken(of: app), apps[app].isOwn)
    appIndex.remove(app.number, KeyedHash.hash(own.token))
    removeApp(app, into: &effects)
    guard !isOwn else { return giveBack(own, since: moment, then: reply, into: &effects) }
    retire(own.token, since: moment)
    effects.append(.answer(reply.request, reply.answer))
  }

  func ownToken(of app: AppNumber) -> OwnToken {
    OwnToken(token: apps[app].token, device: devices[apps[app].device].id, topic: apps[app].topic)
  }

  /// Returns a token that no app got, or no longer has.
  private mutating func giveBack(
    _ own: OwnToken, since: Instant?, then reply: TokenChanges.Reply?, into effects: inout [Effect]
  ) {
    tokenChanges.begin(own, .leaving(since: since, then: reply))
    ask(own, into: &effects)
  }

  /// Returns a token granted to an app that neither has it nor is about to.
  private mutating func giveBackUnused(_ own: OwnToken, into effects: inout [Effect]) {
    if let app = ownApp(own.token, of: own.device), apps[app].topic == own.topic { return }
    guard tokenChanges[own] == nil, tokenChanges.hasRoom(for: own.device) else { return }
    giveBack(own, since: nil, then: nil, into: &effects)
  }

  private mutating func released(_ own: OwnToken, into effects: inout [Effect]) {
    guard case .leaving(_, let reply)? = tokenChanges[own] else { return }
    _ = tokenChanges.end(own)
    if let reply { effects.append(.answer(reply.request, reply.answer)) }
  }

  private mutating func forwarded(
    _ notification: Notification, to device: DeviceID, from request: RequestID,
    into effects: inout [Effect]
  ) {
    if let app = ownApp(notification.token, of: device) {
      return accept(notification, app, from: request, into: &effects)
    }
    switch tokenChanges.step(of: notification.token, device) {
    case .leaving(let since?, _): refuse(gone: since, request, into: &effects)
    case .claiming, .writing: refuse(.serviceUnavailable, request, into: &effects)
    case .leaving(nil, _), nil:
      // Granted, but never registered.
      refuse(.badDeviceToken, request, into: &effects)
      let topic = notification.topic
      giveBackUnused(
        OwnToken(token: notification.token, device: device, topic: topic), into: &effects)
    }
  }

  func ownApp(_ token: DeviceToken, of device: DeviceID) -> AppNumber? {
    guard let app = appNumber(token), devices[apps[app].device].id == device else { return nil }
    return app
  }

  // MARK: The journal's answers

  mutating func aliasPersisted(into effects: inout [Effect]) {
    switch aliasSteps.removeFirst() {
    case .grant(let own):
      guard aliasNumber(own.token) != nil else { return }
      // The alias replaces the 410, and makes room in that table.
      goneTokens.remove(own.token)
      tell(own.device, .decided(own, .granted), into: &effects)
    case .registration(let own):
      guard case .writing(let request)? = tokenChanges.end(own),
        let device = deviceNumber(own.device)
      else { return }
      let reply = TokenChanges.Reply(request: request, answer: .registered(own.token))
      if let replaced = appNumber(of: device, own.topic) {
        remove(replaced, since: now, then: reply, into: &effects)
      } else {
        effects.append(.answer(request, reply.answer))
      }
      // One of the relay's making ends as the device's id, so its alias would be here.
      let isOwn = own.token.routingKey != own.device.routingKey || aliasNumber(own.token) != nil
      attach(
        App(token: own.token, topic: own.topic, device: device, registration: 0, isOwn: isOwn),
        to: device)
    case .removal(let own, let moment):
      guard case .writing(let request)? = tokenChanges.end(own) else { return }
      guard let app = ownApp(own.token, of: own.device) else {
        return effects.append(.answer(request, .unregistered))
      }
      remove(
        app, since: moment, then: .init(request: request, answer: .unregistered), into: &effects)
    }
  }

  /// Nothing changes. A failed record may still be on disk, so the current state is recorded.
  mutating func aliasFailed(into effects: inout [Effect]) {
    let step = aliasSteps.removeFirst()
    switch step {
    case .grant(let own):
      if let alias = aliasNumber(own.token) { remove(alias) }
      tell(own.device, .decided(own, .refused(.unavailable)), into: &effects)
    case .registration(let own), .removal(let own, _):
      guard case .writing(let request)? = tokenChanges.end(own) else { return }
      let app = deviceNumber(own.device).flatMap { appNumber(of: $0, own.topic) }
      // A crash may come in between. A removal that is on disk has ended subscriptions; a
      // registration ends those of the token before it, and they have to follow.
      if let app, case .removal = step { recordSubscriptions(of: app, into: &effects) }
      record(
        app.map { .registered(own.device, own.topic, apps[$0].token, isOwn: apps[$0].isOwn) }
          ?? .unregistered(own.device, own.topic, own.token, at: now),
        key: own.device.routingKey, into: &effects)
      if let app, case .registration = step { recordSubscriptions(of: app, into: &effects) }
      let reply = TokenChanges.Reply(request: request, answer: .refused(.unavailable))
      guard case .registration = step else { return effects.append(.answer(request, reply.answer)) }
      giveBack(own, since: nil, then: reply, into: &effects)
    }
  }

  // MARK: After a restart

  mutating func restoreAlias(_ own: OwnToken) {
    // Confirmed already, or a later grant of this run, which takes precedence.
    guard aliasNumber(own.token) == nil else { return }
    insert(Alias(own: own, grant: 0, isConfirmed: false))
  }

  /// A restored registration decides, whatever the journal says of the grant.
  private mutating func confirmed(_ own: OwnToken, into effects: inout [Effect]) {
    guard let alias = aliasNumber(own.token) else {
      insert(Alias(own: own, grant: 0))
      return record(.granted(own), key: own.token.routingKey, into: &effects)
    }
    if aliases[alias].own == own {
      aliases[alias].isConfirmed = true
    } else if aliases[alias].isConfirmed {
      tell(own.device, .denied(own), into: &effects)
    } else {
      aliases[alias] = Alias(own: own, grant: 0)
      record(.granted(own), key: own.token.routingKey, into: &effects)
    }
  }

  private mutating func allConfirmed(into effects: inout [Effect]) {
    for alias in aliases.indices where !aliases[alias].isConfirmed {
      let own = aliases[alias].own
      record(.released(own), key: own.token.routingKey, into: &effects)
      remove(alias)
    }
  }

  private mutating func denied(_ own: OwnToken, into effects: inout [Effect]) {
    guard let app = ownApp(own.token, of: own.device) else { return }
    record(
      .unregistered(own.device, own.topic, own.token, at: now), key: own.device.routingKey,
      into: &effects)
    appIndex.remove(app.number, KeyedHash.hash(own.token))
    removeApp(app, into: &effects)
  }

  private func tell(_ device: DeviceID, _ event: AliasEvent, into effects: inout [Effect]) {
    effects.append(.tell(routingKey: device.routingKey, .alias(event)))
  }
}
