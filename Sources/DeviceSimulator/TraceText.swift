import DeviceModel
import RelayCore

/// What happened, in words.
extension TraceEntry {
  var kind: TraceKind {
    switch fact {
    case .life(let step):
      switch step {
      case .received, .restored: .received
      case .sent: .sent
      case .storedOffline, .storedPower: .stored
      case .discarded: .discarded
      case .delivered: .delivered
      case .outcome: .outcome
      }
    case .refused: .refused
    case .connected: .connected
    case .disconnected: .disconnected
    case .arrived: .arrived
    case .changed: .changed
    case .fetchBegan: .began
    case .phone(let action): action.kind
    }
  }

  /// Whether the relay did it.
  var isRelays: Bool {
    switch fact {
    case .life, .refused, .connected, .disconnected: true
    case .arrived, .changed, .fetchBegan, .phone: false
    }
  }

  /// Why; empty when there is nothing to say. Times are told as counted from that start.
  func why(since start: Int64) -> String {
    switch fact {
    case .life(let step): step.why(since: start)
    case .refused(let status, let reason): "\(status) \(reason)"
    case .disconnected(let reason): reason
    case .changed(let what): what
    case .fetchBegan(_, let reason): "fetch" + (reason.map { ", \($0)" } ?? "")
    case .arrived(let what): what
    case .phone(let action): action.why(since: start, push: push)
    case .connected: ""
    }
  }
}

extension LifeStep {
  fileprivate func why(since start: Int64) -> String {
    switch self {
    case .received(let notificationClass, _, _): notificationClass.name
    case .restored, .delivered: ""
    case .sent(let via): via.name
    case .storedOffline: "device offline"
    case .storedPower(.none, let limit): "held by \(limit.name)"
    case .storedPower(let until?, let limit):
      "held until \(TraceEntry.text(until, since: start)) by \(limit.name)"
    case .discarded(.replaced(let id)): "replaced by push \(Simulation.pushNumber(id) + 1)"
    case .discarded(let reason): reason.name
    case .outcome(let outcome): "\(outcome)"
    }
  }
}

extension TraceEntry {
  static func text(_ instant: Instant, since start: Int64) -> String {
    TimeText.text(time: max(0, instant.milliseconds - start))
  }

  static func text(_ moment: Moment, since start: Int64) -> String {
    TimeText.text(time: max(0, moment.milliseconds - start))
  }

  static func text(_ plan: FetchPlan, since start: Int64) -> String {
    switch plan.when {
    case .fetch(let moment): "\(text(moment, since: start)), \(plan.reason)"
    case .reconsider(let moment):
      "not before \(text(moment, since: start)), \(plan.reason)"
    case .onChange: "none, \(plan.reason)"
    }
  }
}

extension PhoneAction {
  fileprivate var kind: TraceKind {
    switch self {
    case .report: .reported
    case .condition: .condition
    case .transfer(_, _, .queued): .transferQueued
    case .transfer(_, _, .started): .transferStarted
    case .transfer(_, _, .held): .transferHeld
    case .transfer(_, _, .credentialsDemanded): .credentialsDemanded
    case .transfer(_, _, .ended): .transferEnded
    case .archive: .state
    case .banner: .banner
    case .badge: .badge
    case .sound: .sound
    case .snapshot: .snapshot
    case .app(_, let step): step.kind
    case .callback(_, _, .began): .began
    case .callback(_, _, .completed): .completed
    case .callback(_, _, .abandoned): .abandoned
    case .fetch: .fetchPlanned
    case .document: .document
    case .phone(.woke): .woke
    case .phone(.slept): .slept
    case .phone(.locked): .locked
    case .phone(.unlocked): .unlocked
    case .phone(.booted): .booted
    case .ignored: .ignored
    }
  }

  fileprivate func why(since start: Int64, push: Int32) -> String {
    switch self {
    case .report(_, let outcome): outcome.map { "\($0)" } ?? "delivered"
    case .condition(let condition): "\(condition)"
    case .transfer(_, _, .queued(let request, let isDiscretionary)):
      "\(request.direction) of \(request.name), \(request.bytes) bytes"
        + (isDiscretionary ? ", discretionary" : "")
    case .transfer(_, _, .started(let offset)): "from byte \(offset)"
    case .transfer(_, _, .held(let hold)): hold.rawValue
    case .transfer(_, _, .ended(let result)): result.rawValue
    case .transfer(_, _, .credentialsDemanded), .sound, .phone: ""
    case .archive(_, let step): "\(step)"
    case .banner(let banner): banner.text + (banner.isContentReady ? " (content ready)" : "")
    case .badge(_, let number): "\(number)"
    case .snapshot(_, let snapshot): "\(snapshot.shows)"
    case .app(_, let step): step.why(push: push)
    case .callback(_, _, .began(let cause)): cause.words(push: push)
    case .callback(_, _, .completed(let outcome)): outcome.rawValue
    case .callback(_, _, .abandoned(let reason)): reason.text
    case .fetch(let plan): TraceEntry.text(plan, since: start)
    case .document(let id, let step): "document \(id.number) \(step.words)"
    case .ignored(let reason): reason.rawValue
    }
  }
}

extension AppStep {
  fileprivate var kind: TraceKind {
    switch self {
    case .installed: .installed
    case .launched: .launched
    case .resumed: .resumed
    case .opened: .opened
    case .launchImage: .launchImage
    case .enteredBackground: .left
    case .suspended: .suspended
    case .terminated: .terminated
    case .taskBegan: .taskBegan
    case .taskEnded: .taskEnded
    case .taskExpired: .taskExpired
    case .merged: .merged
    case .dataUnavailable: .dataUnavailable
    case .contentShown: .contentShown
    case .restored: .restored
    case .startedFresh: .startedFresh
    }
  }

  fileprivate func why(push: Int32) -> String {
    switch self {
    case .launched(let cause), .resumed(let cause): cause.words(push: push)
    case .opened(let age?):
      "content \(TimeText.text(duration: age.milliseconds / 1000 * 1000)) old"
    case .opened: "no content yet"
    case .launchImage(.snapshot(let content)): "\(content)"
    case .launchImage(.plain): "plain"
    case .terminated(let reason): reason.text
    case .taskBegan(let work): TimeText.text(duration: work.milliseconds)
    case .merged(let count): "\(count)"
    case .dataUnavailable(let protection): protection.rawValue
    case .contentShown(let waited): "waited \(TimeText.text(duration: waited.milliseconds))"
    case .restored(let archive): "\(archive.objects.count) objects"
    case .startedFresh(.noArchive): "no archive"
    case .startedFresh(.locked): "locked"
    case .startedFresh(.declined): "declined"
    case .installed, .enteredBackground, .suspended, .taskEnded, .taskExpired: ""
    }
  }
}

extension RunCause {
  /// A push by its number in this simulation.
  fileprivate func words(push: Int32) -> String {
    if case .push = self { "push \(push + 1)" } else { "\(self)" }
  }
}

extension DocumentStep {
  fileprivate var words: String {
    switch self {
    case .appeared(.placeholder): "appeared as a placeholder"
    case .appeared: "appeared"
    case .renamed(let name): "renamed to \(name)"
    case .deleted: "deleted"
    case .granted(let access): "\(access.kind) granted"
    case .waits(let access): "\(access.kind) waits"
    case .changed(let revision): "changed, revision \(revision)"
    case .uploadNeeded(let revision): "revision \(revision) to be uploaded"
    case .contentComing: "content coming by transfer"
    case .conflict: "changed here and elsewhere, the later write stands"
    case .referenced: "referenced"
    }
  }
}
