import DeviceModel
import Primitives
import RelayCore

/// One thing that happened, as it is kept: words are made of it when somebody reads it.
struct TraceEntry: Sendable {
  enum Fact: Sendable {
    case life(DeliveryStep)
    case refused(status: UInt16, reason: String)
    case connected
    case disconnected(String)
    /// What it was, if there is no relay in this simulation that tells.
    case arrived(String)
    case changed(String)
    case relay(RelayStep)
    /// A step of the transfer with that name.
    case transfer(String, PhoneAction)
    case fetchBegan(CallbackID, FetchReason?)
    /// A step of a document, in words that name apps.
    case document(String)
    case phone(PhoneAction)
  }

  /// Milliseconds since the start.
  let at: Int64
  /// The phone, the app and the push that it is about; -1 for none.
  let phone: Int32
  let app: Int32
  let push: Int32
  let fact: Fact
}

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
      case .faulted: .fault
      case .decided: .waits
      }
    case .refused: .refused
    case .connected: .connected
    case .disconnected: .disconnected
    case .arrived: .arrived
    case .changed: .changed
    case .relay(let step): step.kind
    case .fetchBegan: .began
    case .document: .document
    case .phone(let action), .transfer(_, let action): action.kind
    }
  }

  /// The name of the transfer that it is a step of.
  var transfer: String? {
    if case .transfer(let name, _) = fact { name } else { nil }
  }

  /// Whether the relay did it.
  var isRelays: Bool {
    switch fact {
    case .life, .refused, .connected, .disconnected, .relay: true
    case .arrived, .changed, .fetchBegan, .document, .phone, .transfer: false
    }
  }

  /// Why; empty when there is nothing to say.
  func why(by clock: TraceClock) -> String {
    switch fact {
    case .life(let step): step.why(by: clock)
    case .document(let words): words
    case .refused(0, let reason): reason
    case .refused(let status, let reason): "\(status) \(reason)"
    case .relay(let step): step.why
    case .disconnected(let reason): reason
    case .changed(let what): what
    case .fetchBegan(_, let reason): "fetch" + (reason.map { ", \($0)" } ?? "")
    case .arrived(let what): what
    case .phone(let action), .transfer(_, let action): action.why(by: clock, push: push)
    case .connected: ""
    }
  }
}

/// How moments are told in a trace.
enum TraceClock: Sendable {
  /// As counted from the start of a simulation.
  case since(Int64)
  /// As the calendar has them: beside a real relay.
  case calendar

  func text(_ instant: Instant) -> String {
    switch self {
    case .since(let start): TimeText.text(time: max(0, instant.milliseconds - start))
    case .calendar: instant.iso8601
    }
  }
}

extension DeliveryStep {
  fileprivate func why(by clock: TraceClock) -> String {
    switch self {
    case .received(let notificationClass, _, _, _): notificationClass.name
    case .restored: "from the journal"
    case .delivered: ""
    case .sent(let via, _): via.name
    case .storedOffline: "device offline"
    case .storedPower(.none, let limit): "held by \(limit.name)"
    case .storedPower(let until?, let limit):
      "held until \(clock.text(until)) by \(limit.name)"
    case .discarded(.replaced(let id)): "replaced by push \(Simulation.pushNumber(id) + 1)"
    case .discarded(let reason): reason.name
    case .outcome(let outcome): "\(outcome)"
    case .decided(let decision): decision.words(by: clock)
    case .faulted(let mark): "\(mark.name): \(mark.action) at \(mark.place)"
    }
  }
}

extension FetchPlan {
  fileprivate func words(by clock: TraceClock) -> String {
    switch when {
    case .fetch(let moment): "\(clock.text(moment)), \(reason)"
    case .reconsider(let moment): "not before \(clock.text(moment)), \(reason)"
    case .onChange: "none, \(reason)"
    }
  }
}

extension PhoneAction {
  fileprivate var kind: TraceKind {
    switch self {
    case .report: .reported
    case .decision: .waits
    case .condition: .condition
    case .transfer(_, _, .queued): .transferQueued
    case .transfer(_, _, .started): .transferStarted
    case .transfer(_, _, .brokeOff): .transferBroke
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
    case .phone(.switchedOff): .switchedOff
    case .ignored: .ignored
    }
  }

  fileprivate func why(by clock: TraceClock, push: Int32) -> String {
    switch self {
    case .report(_, let outcome): outcome.map { "\($0)" } ?? "delivered"
    case .decision(_, _, let decision): decision.words(by: clock)
    case .condition(let condition): "\(condition)"
    case .transfer(_, _, .queued(let request, let isDiscretionary)):
      "\(request.direction) of \(request.name), \(request.bytes) bytes"
        + (isDiscretionary ? ", discretionary" : "")
    case .transfer(_, _, .started(let offset)): "from byte \(offset)"
    case .transfer(_, _, .brokeOff(let offset)): "at byte \(offset)"
    case .transfer(_, _, .held(let hold)): hold.rawValue
    case .transfer(_, _, .ended(let result)): result.rawValue
    case .transfer(_, _, .credentialsDemanded), .sound, .phone: ""
    case .archive(_, let step): "\(step)"
    case .banner(let banner): banner.text + (banner.isContentReady ? " (content ready)" : "")
    case .badge(_, let number): "\(number)"
    case .snapshot(_, let snapshot): "\(snapshot.shows)"
    case .app(_, let step): step.why(by: clock, push: push)
    case .callback(_, _, .began(let cause)): cause.words(push: push)
    case .callback(_, _, .completed(let outcome)): outcome.rawValue
    case .callback(_, _, .abandoned(let reason)): reason.text
    case .fetch(let plan): plan.words(by: clock)
    case .document(let id, let step):
      "document \(id.number) \(step.words(by: clock) { "app \($0.number)" })"
    case .ignored(let reason): reason.rawValue
    }
  }
}

extension PushDecision {
  fileprivate func words(by clock: TraceClock) -> String {
    switch self {
    case .waits(let limit, nil): limit.rawValue
    case .waits(let limit, let until?):
      "\(limit.rawValue) until \(clock.text(until))"
    case .runs: "no longer"
    }
  }
}

extension AppStep {
  fileprivate var kind: TraceKind {
    switch self {
    case .installed: .installed
    case .uninstalled: .uninstalled
    case .notRun: .notRun
    case .audio: .audio
    case .asked: .asked
    case .spent: .spent
    case .judged: .standing
    case .fetchedEarly: .coalesced
    case .taskPaused: .taskPaused
    case .taskResumed: .taskResumed
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
    case .wrote: .wrote
    case .merged: .merged
    case .dataUnavailable: .dataUnavailable
    case .limitedCredential: .limitedCredential
    case .contentShown: .contentShown
    case .restored: .restored
    case .startedFresh: .startedFresh
    }
  }

  fileprivate func why(by clock: TraceClock, push: Int32) -> String {
    switch self {
    case .launched(let cause), .resumed(let cause): cause.words(push: push)
    case .opened(let age?):
      "content \(TimeText.text(duration: age.milliseconds / 1000 * 1000)) old"
    case .opened: "no content yet"
    case .launchImage(.snapshot(let content)): "\(content)"
    case .launchImage(.plain): "plain"
    case .terminated(let reason): reason.text
    case .taskBegan(let work): TimeText.text(duration: work.milliseconds)
    case .wrote(let items, let isBeside):
      items.joined(separator: ", ") + (isBeside ? " (beside its database)" : "")
    case .merged(let files): ContentFile.words(files)
    case .dataUnavailable(let protection): protection.rawValue
    case .contentShown(let waited): "waited \(TimeText.text(duration: waited.milliseconds))"
    case .restored(_, let count): "\(count) objects"
    case .startedFresh(.noArchive): "no archive"
    case .startedFresh(.locked): "locked"
    case .startedFresh(.declined): "declined"
    case .startedFresh(.otherVersion): "declined, another version"
    case .notRun(let cause, let refusal): "\(cause), \(refusal.rawValue)"
    case .audio(let isOn): isOn ? "plays" : "plays no more"
    case .asked(let refusal): refusal.map { "no, \($0.rawValue)" } ?? "yes"
    case .spent(let cost): "\(cost)"
    case .judged(let standing): "\(standing)"
    case .fetchedEarly(let planned): "planned for \(clock.text(planned))"
    case .taskPaused(let left), .taskResumed(let left):
      "\(TimeText.text(duration: left.milliseconds)) left"
    case .installed, .uninstalled, .limitedCredential, .enteredBackground, .suspended, .taskEnded,
      .taskExpired:
      ""
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
  func words(by clock: TraceClock, _ name: (AppID) -> String) -> String {
    switch self {
    case .appeared(.placeholder): "appeared as a placeholder"
    case .appeared: "appeared"
    case .renamed(let name): "renamed to \(name)"
    case .deleted: "deleted"
    case .granted(let party, let isWriting):
      "\(isWriting ? "write" : "read") granted\(party.words(" to", name))"
    case .waits(let party, let isWriting):
      "\(isWriting ? "write" : "read")\(party.words(" of", name)) waits"
    case .changed(let revision, let bytes): "changed, revision \(revision), \(bytes) bytes"
    case .uploadNeeded(let revision): "revision \(revision) to be uploaded"
    case .contentComing: "content coming by transfer"
    case .uploading(_, let revision): "revision \(revision) going up by transfer"
    case .referenced(let app, _): "referenced by \(name(app))"
    case .listed(let app, let entry):
      "listed by \(name(app)): \(entry.words(of: clock.text(entry.modifiedAt)))"
    case .conflict(let kept):
      "changed here and elsewhere, the later write stands, and revision \(kept.revision) from "
        + "\(kept.isFromHere ? "here" : "elsewhere"), \(kept.body.bytes) bytes, is kept"
    case .edited(let app, let difference): "edited by \(name(app)): \(difference.words)"
    case .chosen(.revision(let revision)): "revision \(revision) chosen"
    case .chosen(.all): "all versions chosen"
    case .copied(let copy, let app): "copied to \(name(app)) as document \(copy.number)"
    case .imported(let copy, let app):
      "imported by \(name(app)) as document \(copy.number), for as long as it runs"
    case .corrupted(let app): "corrupt, \(name(app)) wrote without coordination"
    case .moved(let app): "moved to \(name(app))"
    case .uploaded(let revision): "revision \(revision) is with its provider"
    case .givenUp(let app): "given up by \(name(app))"
    }
  }
}

extension Coordination.Party {
  fileprivate func words(_ before: String, _ name: (AppID) -> String) -> String {
    switch self {
    case .app(let app): "\(before) \(name(app))"
    case .syncService: ""
    }
  }
}

/// What happened, for people and programs: lines of time, who, what, why.
extension Simulation {
  /// What happened so far, a line each, without details such as snapshots and sleep.
  public var timeline: String { text(of: timelineLines) }

  /// The lines of `timeline`.
  public var timelineLines: [TraceLine] { trace().filter { !$0.kind.isDetail } }

  /// All that happened so far, in order.
  public func trace() -> [TraceLine] { entries.indices.map { line($0) } }

  /// Lines in columns.
  ///
  /// - Parameter styled: what to make of a line's text, such as a colour.
  public func text(
    of lines: [TraceLine], styled: (TraceLine, String) -> String = { $1 }
  ) -> String {
    let width = lines.map(\.who.count).max() ?? 0
    let timeWidth = lines.last.map { TimeText.text(time: $0.milliseconds).count } ?? 0
    return lines.map { line in
      styled(line, line.text(timeWidth: timeWidth, whoWidth: width)) + "\n"
    }.joined()
  }

  func line(_ index: Int) -> TraceLine {
    let entry = entries[index]
    let push = self.entry(of: entry.push)
    let phone = entry.phone >= 0 ? phones[Int(entry.phone)].name : nil
    return TraceLine(
      milliseconds: entry.at, isRelays: entry.isRelays, phone: phone,
      app: entry.app >= 0 ? apps[Int(entry.app)].name : nil,
      transfer: entry.transfer, pushNumber: push == nil ? nil : Int(entry.push) + 1,
      pushName: push?.name,
      pushID: push?.id, kind: entry.kind, why: entry.why(by: clock))
  }

  /// How moments are told.
  var clock: TraceClock { relay == nil ? .calendar : .since(start) }
}

/// One thing that happened.
public struct TraceLine: Hashable, Sendable {
  let milliseconds: Int64
  let isRelays: Bool
  /// The phone, the app and the push that it is about.
  public let phone: String?
  public let app: String?
  /// The name of the transfer that it is a step of.
  public let transfer: String?
  public let pushNumber: Int?
  public let pushName: String?
  /// The id that a real relay gave it.
  let pushID: UniqueID?
  /// What happened.
  public let kind: TraceKind
  /// Why, or what exactly; empty when there is nothing to say.
  public let why: String

  /// Since the start.
  public var time: Duration { .milliseconds(milliseconds) }

  /// Where it happened: `relay`, `anna`, `anna/messenger`.
  var who: String {
    isRelays ? "relay" : [phone, app].compactMap(\.self).joined(separator: "/")
  }

  func text(timeWidth: Int, whoWidth: Int) -> String {
    let time = TimeText.text(time: milliseconds)
    return padded(time, timeWidth) + "  " + padded(who, whoWidth) + "  " + what
  }

  /// Without time and place.
  var what: String {
    var text = kind.rawValue
    if let pushNumber,
      kind == .banner || isRelays || kind == .arrived || kind == .reported
        || kind == .waits
    {
      text = "push \(pushNumber)" + (pushName.map { " (\($0))" } ?? "") + " " + text
    }
    if let transfer, kind != .transferQueued { text += " (\(transfer))" }
    if isRelays, let phone {
      let place = [phone, app].compactMap(\.self).joined(separator: "/")
      if kind == .received || kind == .refused { text += " for \(place)" }
      if kind == .connected || kind == .disconnected { text = "\(place) " + text }
    }
    return why.isEmpty ? text : "\(text): \(why)"
  }

  private func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  /// One JSON object, its keys always in the same order; the time in milliseconds.
  public var json: String {
    let clock = TimeText.text(time: milliseconds)
    var members = ["\"at\":\(milliseconds)", "\"time\":\(quoted(clock))"]
    members.append("\"who\":\(quoted(isRelays ? "relay" : "phone"))")
    if let phone { members.append("\"phone\":\(quoted(phone))") }
    if let app { members.append("\"app\":\(quoted(app))") }
    if let transfer { members.append("\"transfer\":\(quoted(transfer))") }
    if let pushNumber { members.append("\"push\":\(pushNumber)") }
    if let pushName { members.append("\"name\":\(quoted(pushName))") }
    if let pushID { members.append("\"uniqueId\":\"\(pushID)\"") }
    members.append("\"what\":\(quoted(kind.rawValue))")
    if !why.isEmpty { members.append("\"why\":\(quoted(why))") }
    return "{\(members.joined(separator: ","))}"
  }

  /// The line of a run in real time: the time of day, who, what. Nil for details, unless they are
  /// wanted.
  package func liveText(isVerbose: Bool) -> String? {
    guard isVerbose || !kind.isDetail || TraceKind.toldLive.contains(kind) else { return nil }
    let clock = TimeText.text(time: milliseconds).suffix(12)
    return "\(clock) \(who)  \(what)"
  }
}
