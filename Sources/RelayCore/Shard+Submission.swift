import DequeModule
import Primitives

/// From a provider's submission to the journal and back.
extension Shard {
  mutating func submit(
    _ notification: Notification, from request: RequestID, into effects: inout [Effect]
  ) {
    guard let app = appNumber(notification.token), leaving == nil || !isLeaving(app) else {
      return submitWithoutApp(notification, from: request, into: &effects)
    }
    accept(notification, app, from: request, into: &effects)
  }

  /// The token is an alias for an app elsewhere, gone, or unknown.
  private mutating func submitWithoutApp(
    _ notification: Notification, from request: RequestID, into effects: inout [Effect]
  ) {
    let token = notification.token
    if let alias = grantedAlias(token) {
      let device = aliases[alias].own.device
      effects.append(
        .tell(
          routingKey: device.routingKey,
          .alias(.forwarded(notification, to: device, from: request))))
    } else if let moment = goneTokens[token] {
      refuse(gone: moment, request, into: &effects)
    } else {
      refuse(.badDeviceToken, request, into: &effects)
    }
  }

  /// The app is here: persists the push, and perhaps sends it at once.
  @inline(__always)
  mutating func accept(
    _ notification: Notification, _ app: AppNumber, from request: RequestID,
    into effects: inout [Effect]
  ) {
    guard apps[app].topic == notification.topic else {
      return acceptForAnyTopic(notification, app, from: request, into: &effects)
    }
    if let limit = configuration.requestsPerToken {
      guard limit.allows(apps[app].requests, at: now) else {
        return refuse(.tooManyRequests, request, into: &effects)
      }
      limit.consume(&apps[app].requests, at: now)
    }
    guard hasRoomForPersist else { return refuse(.serviceUnavailable, request, into: &effects) }
    var mayGo = true
    if notification.isNamed {
      switch first(of: notification, app, acceptedAt: now) {
      case .unknown: break
      case .promised(let id):
        return recognize(notification, app, asRepetitionOf: id, request, into: &effects)
      // Once the journal has both, the second is recognized (`place`).
      case .unpromised: mayGo = false
      }
    }
    counters.received += 1
    lastOrder += 1
    apps[app].entryCount += 1
    logReceived(notification, for: app, at: now, into: &effects)
    switch notification.expiration {
    case .at(let moment) where moment > now:
      attemptAndPersist(notification, app, request, expiresAt: moment, mayGo: mayGo, into: &effects)
    case .once, .at: attemptOnce(notification, app, request, into: &effects)
    }
  }

  /// Takes the token's topic for a binary API push without one, whose loop may not know the app,
  /// and for a push to one of several tokens of a topic, so that the device sees to which.
  @inline(never)
  private mutating func acceptForAnyTopic(
    _ notification: Notification, _ app: AppNumber, from request: RequestID,
    into effects: inout [Effect]
  ) {
    let topic = apps[app].topic
    guard notification.topic == .vacant || topic.isPart(of: notification.topic) else {
      return refuse(.deviceTokenNotForTopic, request, into: &effects)
    }
    accept(notification.with(topic: topic), app, from: request, into: &effects)
  }

  /// One attempt at most, nothing stored. Does not queue behind those waiting for the journal.
  private mutating func attemptOnce(
    _ notification: Notification, _ app: AppNumber, _ request: RequestID,
    into effects: inout [Effect]
  ) {
    let entry = entries.insert(
      AcceptedNotification(
        notification: notification, order: lastOrder, sequence: 0, acceptedAt: now, app: app,
        phase: .waiting))
    counters.waiting += 1
    effects.append(.respond(request, .accepted(uniqueID: notification.uniqueID)))
    if entries[entry].isExpired(at: now) {
      discard(entry, .expired, into: &effects)
    } else if case .allowed = verdict(on: entry) {
      sendDirectly(entry, into: &effects)
    } else {
      discard(entry, .notStored, into: &effects)
    }
  }

  @inline(__always)
  private mutating func attemptAndPersist(
    _ notification: Notification, _ app: AppNumber, _ request: RequestID, expiresAt: Instant,
    mayGo: Bool, into effects: inout [Effect]
  ) {
    let sequence = nextSequence
    let entry = entries.insert(
      AcceptedNotification(
        notification: notification, order: lastOrder, sequence: sequence, acceptedAt: now, app: app,
        phase: .waiting))
    entries[entry].expirationTimer = timers.set(expiresAt, .expiration(entry: entry))
    pending.append(.submission(request, uniqueID: notification.uniqueID, entry: entry))
    // Others of its app and class that wait for the journal were accepted first, and go first.
    let isFirst = apps[app].waiting[notification.notificationClass] == 0
    let goesDirectly = if mayGo, isFirst, case .allowed = verdict(on: entry) { true } else { false }
    // Constructed in place: a variable would be copied.
    if apps[app].isOwn {
      let content = contentOfOwn(notification, app)
      effects.append(
        .persist(JournalRecord(sequence: sequence, content: content, mayLinger: goesDirectly)))
    } else {
      effects.append(
        .persist(
          JournalRecord(
            sequence: sequence, content: .accepted(notification, at: now), mayLinger: goesDirectly)
        ))
    }
    counters.waiting += 1
    apps[app].waiting[notification.notificationClass] += 1
    if goesDirectly { sendDirectly(entry, into: &effects) }
  }

  /// The record of a push to a device's own token: stored with the device, whose partition may
  /// differ from the token's. `mutating` as `verdict` is.
  @inline(never)
  private mutating func contentOfOwn(
    _ notification: Notification, _ app: AppNumber
  ) -> JournalRecord.Content {
    let device = devices[apps[app].device].id
    guard device.routingKey != notification.token.routingKey else {
      return .accepted(notification, at: now)
    }
    return .forwarded(notification, to: device, at: now)
  }

  mutating func handle(_ event: JournalEvent, into effects: inout [Effect]) {
    switch event {
    case .persisted(let sequence): persisted(through: sequence, into: &effects)
    case .persistFailed(let sequence): persistFailed(through: sequence, into: &effects)
    case .restored(let record): return restore(record, into: &effects)
    case .partitionDropped(let partition): leaving = partition
    }
    if leaving != nil { dropWhenSettled(into: &effects) }
  }

  private mutating func persisted(through sequence: UInt64, into effects: inout [Effect]) {
    while firstPendingSequence <= sequence, let first = popPending() {
      switch first {
      case .submission(let request, let uniqueID, let entry):
        effects.append(.respond(request, .accepted(uniqueID: uniqueID)))
        if entry.exists { place(entry, into: &effects) }
      case .device:
        let reply = pendingAnswers.removeFirst()
        effects.append(.answer(reply.request, reply.answer))
      case .alias: aliasPersisted(into: &effects)
      case .note, .nothing: break
      }
    }
  }

  private mutating func persistFailed(through sequence: UInt64, into effects: inout [Effect]) {
    while firstPendingSequence <= sequence {
      let failed = firstPendingSequence
      guard let first = popPending() else { return }
      switch first {
      case .submission(let request, _, let entry):
        if entry.exists {
          lose(entry, request, into: &effects)
        } else {
          refuse(.serviceUnavailable, request, into: &effects)
        }
      case .device:
        let reply = pendingAnswers.removeFirst()
        rollBack(reply.answer, failed, into: &effects)
        effects.append(.answer(reply.request, .refused(.unavailable)))
      case .alias: aliasFailed(into: &effects)
      case .note, .nothing: break
      }
    }
  }

  /// The journal has the entry: unless it was sent already, sends or stores it.
  mutating func place(_ entry: EntryNumber, into effects: inout [Effect]) {
    guard case .waiting = entries[entry].phase else { return }
    let app = entries[entry].app
    guard apps[app].isRegistered else { return discard(entry, .unregistered, into: &effects) }
    guard !entries[entry].isExpired(at: now) else {
      return discard(entry, .expired, into: &effects)
    }
    let notification = entries[entry].notification
    if notification.isNamed {
      switch first(of: notification, app, acceptedAt: entries[entry].acceptedAt) {
      case .unknown: break
      case .promised(let id): return discard(entry, .repeated(of: id), into: &effects)
      case .unpromised(let first): return adopt(entry, by: first, into: &effects)
      }
    }
    switch verdict(on: entry) {
    case .allowed: sendDirectly(entry, into: &effects)
    case let verdict: store(entry, verdict, into: &effects)
    }
  }

  /// The journal could not write the entry. In flight it stays, and its acknowledgement decides.
  private mutating func lose(
    _ entry: EntryNumber, _ request: RequestID, into effects: inout [Effect]
  ) {
    switch entries[entry].phase {
    case .waiting:
      refuse(.serviceUnavailable, request, into: &effects)
      apps[entries[entry].app].waiting[entries[entry].notification.notificationClass] -= 1
      entries[entry].sequence = 0
      discard(entry, .journalFailed, into: &effects)
    case .inFlight:
      entries[entry].sequence = 0
      unanswered[entry] = request
    case .stored:
      preconditionFailure("an entry takes a slot only after the journal has it (invariant 2)")
    }
  }

  /// Writes a record that nobody waits for. Omitted when too much is pending: then a crash loses a
  /// part of a budget, or the time a token was replaced. `key` is of the device or token concerned.
  mutating func record(
    _ content: JournalRecord.Content, key: UInt64, into effects: inout [Effect]
  ) {
    guard hasRoomForPersist else { return }
    let record = JournalRecord(sequence: nextSequence, content: content, mayLinger: true)
    pending.append(.note(key: key))
    effects.append(.persist(record))
  }

  var nextSequence: UInt64 { sequences.sequence(firstPendingOrdinal + UInt64(pending.count)) }

  /// The index in `pending` of this shard's unanswered record.
  @inline(__always)
  func pendingIndex(of sequence: UInt64) -> Int {
    Int(sequences.ordinal(of: sequence) - firstPendingOrdinal)
  }

  private mutating func popPending() -> Pending? {
    guard let first = pending.popFirst() else { return nil }
    firstPendingOrdinal += 1
    firstPendingSequence = sequences.sequence(firstPendingOrdinal)
    return first
  }

  var hasRoomForPersist: Bool { pending.count < configuration.pendingPersists }

  /// Whether the record waits for the journal; never one of another shard or run.
  @inline(__always)
  func isPending(_ sequence: UInt64) -> Bool {
    sequence >= firstPendingSequence && sequences.contains(sequence)
      && pendingIndex(of: sequence) < pending.count
  }

  /// Whether the entry's own record waits for the journal. A file may repeat its number.
  @inline(__always)
  func isPending(entry: EntryNumber) -> Bool {
    let sequence = entries[entry].sequence
    guard isPending(sequence) else { return false }
    guard case .submission(_, _, entry) = pending[pendingIndex(of: sequence)] else { return false }
    return true
  }

  mutating func refuse(gone moment: Instant, _ request: RequestID, into effects: inout [Effect]) {
    counters.rejected[Int(Rejection.unregistered.rawValue)] += 1
    effects.append(.respond(request, .gone(since: moment)))
  }

  mutating func refuse(_ rejection: Rejection, _ request: RequestID, into effects: inout [Effect]) {
    counters.rejected[Int(rejection.rawValue)] += 1
    effects.append(.respond(request, .rejected(rejection)))
  }
}
