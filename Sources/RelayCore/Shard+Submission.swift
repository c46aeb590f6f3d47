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

  /// The token is an alias for an app elsewhere, or none's.
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

  /// The app is here: into the journal, and perhaps at once to the device.
  @inline(__always)
  mutating func accept(
    _ notification: Notification, _ app: Int32, from request: RequestID,
    into effects: inout [Effect]
  ) {
    guard apps[app].topic == notification.topic else {
      return acceptForAnyTopic(notification, app, from: request, into: &effects)
    }
    if let limit = configuration.requestsPerToken {
      guard limit.allows(apps[app].requests, at: now) else {
        return refuse(.tooManyRequests, request, into: &effects)
      }
      limit.take(&apps[app].requests, at: now)
    }
    guard hasRoomForPersist else {
      return refuse(.serviceUnavailable, request, into: &effects)
    }
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
      attemptAndPersist(
        notification, app, request, expiresAt: moment, mayGo: mayGo, into: &effects)
    case .once, .at:
      attemptOnce(notification, app, request, into: &effects)
    }
  }

  /// Without a topic it is for whichever one the token was registered for: a provider of the binary
  /// API that need not say who it is has none, and the loop that it is connected to may not know
  /// the app.
  @inline(never)
  private mutating func acceptForAnyTopic(
    _ notification: Notification, _ app: Int32, from request: RequestID,
    into effects: inout [Effect]
  ) {
    guard notification.topic == .vacant else {
      return refuse(.deviceTokenNotForTopic, request, into: &effects)
    }
    accept(notification.addressed(to: apps[app].topic), app, from: request, into: &effects)
  }

  /// One look, one attempt, nothing stored; not even the attempt when it expired on its way here.
  /// It does not queue behind those that wait for the journal: its one chance is now.
  private mutating func attemptOnce(
    _ notification: Notification, _ app: Int32, _ request: RequestID, into effects: inout [Effect]
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
    _ notification: Notification, _ app: Int32, _ request: RequestID, expiresAt: Instant,
    mayGo: Bool, into effects: inout [Effect]
  ) {
    let sequence = nextSequence
    let entry = entries.insert(
      AcceptedNotification(
        notification: notification, order: lastOrder, sequence: sequence, acceptedAt: now, app: app,
        phase: .waiting))
    entries[entry].expirationTimer = timers.set(expiresAt, .expiration(entry: entry))
    pending.append(.submission(request, uniqueID: notification.uniqueID, entry: entry))
    // Others of its app and class that wait for the journal go first, as they were accepted.
    let isFirst = apps[app].waiting[notification.notificationClass] == 0
    let goesDirectly =
      if mayGo, isFirst, case .allowed = verdict(on: entry) { true } else { false }
    // Made where it is put: from a variable it would be copied.
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

  /// What the journal is told of a push to a token that the device brought along. Token and device
  /// may be far apart; what waits for a device is remembered with it.
  ///
  /// Changes nothing; `mutating` as `verdict` is.
  @inline(never)
  private mutating func contentOfOwn(
    _ notification: Notification, _ app: Int32
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
    case .restored(let record): restore(record, into: &effects)
    case .partitionDropped(let partition): leaving = partition
    }
    if leaving != nil { dropWhenSettled(into: &effects) }
  }

  private mutating func persisted(through sequence: UInt64, into effects: inout [Effect]) {
    while firstPendingSequence <= sequence, let first = popPending() {
      switch first {
      case .submission(let request, let uniqueID, let entry):
        effects.append(.respond(request, .accepted(uniqueID: uniqueID)))
        if entry >= 0 { place(entry, into: &effects) }
      case .device:
        let reply = pendingAnswers.removeFirst()
        effects.append(.answer(reply.request, reply.answer))
      case .alias:
        aliasPersisted(into: &effects)
      case .note, .nothing:
        break
      }
    }
  }

  private mutating func persistFailed(through sequence: UInt64, into effects: inout [Effect]) {
    while firstPendingSequence <= sequence {
      let failed = firstPendingSequence
      guard let first = popPending() else { return }
      switch first {
      case .submission(let request, _, let entry):
        if entry >= 0 {
          lose(entry, request, into: &effects)
        } else {
          refuse(.serviceUnavailable, request, into: &effects)
        }
      case .device:
        let reply = pendingAnswers.removeFirst()
        takeBack(reply.answer, failed, into: &effects)
        effects.append(.answer(reply.request, .refused(.unavailable)))
      case .alias:
        aliasFailed(into: &effects)
      case .note, .nothing:
        break
      }
    }
  }

  /// The journal has the entry: unless it is on its way already, send it or give it its slot.
  mutating func place(_ entry: Int32, into effects: inout [Effect]) {
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

  /// The journal could not write the entry, so that there is nothing to forget either. In flight it
  /// stays, but will not be stored again; its acknowledgement is as good as a record.
  private mutating func lose(
    _ entry: Int32, _ request: RequestID, into effects: inout [Effect]
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

  /// Writes down what nobody waits for. When too much waits already it is left out: what is lost
  /// by that is a part of a budget, or when a token was replaced, after a crash.
  ///
  /// - Parameter key: of the device or token that it is about.
  mutating func note(
    _ content: JournalRecord.Content, key: UInt64, into effects: inout [Effect]
  ) {
    guard hasRoomForPersist else { return }
    let record = JournalRecord(sequence: nextSequence, content: content, mayLinger: true)
    pending.append(.note(key: key))
    effects.append(.persist(record))
  }

  /// The sequence of the next record.
  var nextSequence: UInt64 { sequences.sequence(firstPendingOrdinal + UInt64(pending.count)) }

  /// Where in `pending` the record with this sequence waits, or would: one of this shard's own that
  /// the journal has not answered.
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

  /// Whether one more record may wait for the journal.
  var hasRoomForPersist: Bool { pending.count < configuration.pendingPersists }

  /// Whether the record with this sequence waits for the journal. One of another shard's does not,
  /// nor one of another run, which may be higher than all of this one.
  @inline(__always)
  func isPending(_ sequence: UInt64) -> Bool {
    sequence >= firstPendingSequence && sequences.contains(sequence)
      && pendingIndex(of: sequence) < pending.count
  }

  /// Whether the entry waits for the journal: its own record does, and not one that bears the same
  /// number, as a file may say.
  @inline(__always)
  func isPending(entry: Int32) -> Bool {
    let sequence = entries[entry].sequence
    guard isPending(sequence) else { return false }
    guard case .submission(_, _, entry) = pending[pendingIndex(of: sequence)] else { return false }
    return true
  }

  mutating func refuse(gone moment: Instant, _ request: RequestID, into effects: inout [Effect]) {
    counters.rejected[Int(Rejection.unregistered.rawValue)] += 1
    effects.append(.respond(request, .gone(since: moment)))
  }

  mutating func refuse(
    _ rejection: Rejection, _ request: RequestID, into effects: inout [Effect]
  ) {
    counters.rejected[Int(rejection.rawValue)] += 1
    effects.append(.respond(request, .rejected(rejection)))
  }
}
