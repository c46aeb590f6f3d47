import Foundation
import Primitives
import RelayCore
import Synchronization

/// What phones see.
extension CrashLedger {
  /// A notification has come.
  func received(_ delivery: Delivery, device: Int) {
    state.withLock { $0.received(delivery, device: device) }
  }

  /// The relay has surely taken these acknowledgements: they must not come again while it lives.
  func confirmed(_ uniqueIDs: Set<UniqueID>) {
    state.withLock { state in
      for uniqueID in uniqueIDs {
        guard let number = state.uniqueIDs[uniqueID] else { continue }
        state.pushes[number].confirmedLife = state.life
      }
    }
  }

  /// At some moment after `since` the relay has said that it holds nothing more for this device:
  /// whatever it had answered 200 by then has been delivered, was replaced, or has expired.
  func checkpoint(device: Int, since: Int) {
    state.withLock { state in
      state.counts.checkpoints += 1
      for app in state.live
      where state.apps[app].device == device && state.apps[app].phase == .registered {
        for className in ["visible", "silent"] {
          state.settle(app, className, since: since)
        }
      }
    }
  }
}

extension CrashLedger.State {
  fileprivate mutating func received(_ delivery: Delivery, device: Int) {
    let notification = delivery.notification
    let text = String(decoding: notification.payload, as: UTF8.self)
    let sentAt = delivery.sentAt.milliseconds
    guard let number = CrashPush.number(in: text), pushes.indices.contains(number)
    else { return violated("device \(device) gets what nobody sent: \(text)") }
    bind(number, id: notification.apnsID, uniqueID: notification.uniqueID, "the delivery")
    let push = pushes[number]
    let app = apps[push.app]
    let payload = CrashPush.payload(number, isSilent: push.isSilent)
    if text != payload || notification.notificationClass.name != push.className
      || notification.topic.description != app.topic || device != app.device
    {
      violated("device \(device) gets \(text) for \(describe(number))")
    }
    if !push.isStorable, push.deliveries > 0 { violated("stored after all: \(describe(number))") }
    // What had expired before it was accepted is tried once (D12).
    if push.isStorable, push.hasExpired(at: sentAt),
      !push.hasExpired(at: delivery.acceptedAt.milliseconds)
    {
      violated("sent \(sentAt), expired: \(describe(number))")
    }
    if case .refused(let status) = push.answer, status != 503 {
      violated("refused and delivered: \(describe(number))")
    }
    if case .gone(_, let moment) = app.phase, sentAt > moment {
      violated("sent to a removed app: \(describe(number))")
    }
    pushes[number].deliveries += 1
    if push.deliveries == 0 { deliveredFirst(number) } else { deliveredAgain(number) }
  }

  private mutating func deliveredFirst(_ number: Int) {
    let push = pushes[number]
    counts.delivered += 1
    if push.answer == .lost { counts.deliveredWithoutAnswer += 1 }
    guard push.isStorable else { return }
    let newest = apps[push.app].newestDelivered[push.className] ?? 0
    // Per app and class the order is that of acceptance.
    if push.ended < newest { violated("overtaken by a newer one: \(describe(number))") }
    apps[push.app].newestDelivered[push.className] = max(newest, push.begun)
  }

  private mutating func deliveredAgain(_ number: Int) {
    switch pushes[number].confirmedLife {
    case life?: violated("acknowledged and delivered again: \(describe(number))")
    case .some: counts.againAfterAnswer += 1
    case nil: counts.again += 1
    }
  }

  /// Looks at what was answered before `since`. One that was not delivered must have expired, or a
  /// newer one took its place: which then was delivered, or has expired.
  fileprivate mutating func settle(_ app: Int, _ className: String, since: Int) {
    let open = apps[app].open[className] ?? []
    let now = CrashLedger.now()
    // The latest end of those that may have taken another's place.
    var replacedUntil = 0
    for number in open {
      let push = pushes[number]
      // One that came directly has taken the place of an older one, though it was then refused
      // because nobody knows whether the journal has it.
      let isRefused =
        if case .refused(let status) = push.answer { !isOfCluster || status != 503 } else { false }
      guard push.isStorable, push.deliveries > 0 || !isRefused && push.hasExpired(at: now) else {
        continue
      }
      replacedUntil = max(replacedUntil, push.ended)
    }
    var earliestOpen = Int.max
    for number in open {
      let push = pushes[number]
      guard push.ended < since else {
        earliestOpen = min(earliestOpen, push.begun)
        continue
      }
      guard push.answer == .accepted, push.isStorable, push.deliveries == 0, !push.isSettled
      else { continue }
      pushes[number].isSettled = true
      if push.hasExpired(at: now) {
        counts.expired += 1
      } else if replacedUntil > push.begun {
        counts.replaced += 1
      } else {
        let others = open.filter { $0 != number }.map { describe($0) }
        violated(
          "LOST: \(describe(number)), missed at moment \(since); others of its kind: \(others)")
      }
    }
    // What ended before all that is open began has nothing to do with it.
    let begin = min(earliestOpen, since)
    apps[app].open[className] = open.filter { pushes[$0].ended >= begin }
  }
}
