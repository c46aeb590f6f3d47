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
    case fetchBegan(CallbackID, FetchReason?)
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

/// What happened: the words of timelines, traces and scenarios.
public enum TraceKind: String, CaseIterable, Hashable, Sendable {
  // At the relay.
  case received
  case refused
  case sent
  case stored
  case discarded
  case delivered
  case outcome
  case fault
  case connected
  case disconnected
  // On a phone: what its user perceives.
  case arrived
  case banner
  case badge
  case sound
  case snapshot
  // What apps do.
  case installed
  case launched
  case resumed
  case opened
  case launchImage = "launch-image"
  case left
  case suspended
  case terminated
  case began
  case completed
  case abandoned
  case taskBegan = "task-began"
  case taskEnded = "task-ended"
  case taskExpired = "task-expired"
  case merged
  case dataUnavailable = "data-unavailable"
  case contentShown = "content-shown"
  case restored
  case startedFresh = "started-fresh"
  case state
  // What the system does.
  case transferQueued = "transfer-queued"
  case transferStarted = "transfer-started"
  case transferHeld = "transfer-held"
  case transferEnded = "transfer-ended"
  case credentialsDemanded = "credentials-demanded"
  case fetchPlanned = "fetch-planned"
  case document
  case woke
  case slept
  case locked
  case unlocked
  case booted
  case changed
  case condition
  case reported
  case waits
  case ignored

  /// What a reader can do without: `timeline` leaves it out.
  var isDetail: Bool { Self.details.contains(self) }
  private static let details: Set<TraceKind> = [
    .snapshot, .state, .fetchPlanned, .woke, .slept, .condition, .reported, .installed,
    .launchImage, .restored, .startedFresh, .arrived, .suspended,
  ]
  /// Of these, those that people at a live run want to see.
  static let toldLive: Set<TraceKind> = [.arrived, .reported, .restored, .startedFresh]
  /// What a phone beside a real relay does not hear of.
  static let seenByRelay: Set<TraceKind> = [
    .received, .refused, .sent, .stored, .discarded, .delivered, .outcome, .fault,
  ]
  static let transfers: Set<TraceKind> = [
    .transferQueued, .transferStarted, .transferHeld, .transferEnded,
  ]

  /// What it says, for the table in docs/SCENARIOS.md.
  public var explanation: String {
    switch self {
    case .received: "the relay accepted a push; why: `visible` or `silent`"
    case .refused: "the relay refused a push; why: status and reason"
    case .sent:
      "the relay sent it; why: `direct`, `piggyback`, `connect`, `refill`, `hold`, `resend`"
    case .stored: "the relay keeps it; why: `device offline`, or until when by which limit"
    case .discarded: "it will never be delivered; why: `expired`, `replaced by push N`, …"
    case .delivered: "the phone acknowledged it"
    case .outcome: "what the app made of it; why: `newData`, `not launched: force-quit`, …"
    case .fault: "a fault has acted on it; why: its name, what it did and where"
    case .connected: "the relay has the phone on the line"
    case .disconnected: "the relay has noticed that it is gone; why"
    case .arrived: "a push reached the phone"
    case .banner: "a banner was shown; why: its text, and `(content ready)`"
    case .badge: "the number on an icon changed; why: the number"
    case .sound: "a sound was played"
    case .snapshot: "the app switcher's picture was taken; why: what it shows"
    case .installed: "an app was installed"
    case .launched: "an app was started; why: `push N`, `fetch`, `transfers`, `the user`"
    case .resumed: "a suspended app went on; why: as for `launched`"
    case .opened: "an app came to the front; why: how old its content is"
    case .launchImage: "what was shown while it started; why: which picture"
    case .left: "an app left the foreground"
    case .suspended: "an app was suspended"
    case .terminated: "an app's process ended; why: `swiped away`, `reboot`, …"
    case .began: "an app was called in the background; why: as for `launched`"
    case .completed: "it called its handler; why: `newData`, `noData`, `failed`"
    case .abandoned: "the call died with the process; why: as for `terminated`"
    case .taskBegan: "a background task was begun; why: how long it takes"
    case .taskEnded: "a background task came to its end"
    case .taskExpired: "a background task ran out of time"
    case .merged: "what was downloaded while locked was taken in; why: how much"
    case .dataUnavailable: "locked, the app could not have its data; why: which protection"
    case .contentShown: "what a banner announced is on the screen; why: after which wait"
    case .restored: "an app came back with its state; why: how many objects"
    case .startedFresh: "an app began without its state; why: `no archive`, `locked`, `declined`"
    case .state: "an app's state was saved, kept or deleted; why: which"
    case .transferQueued: "a transfer was queued; why: what"
    case .transferStarted: "a transfer began or went on; why: from which byte"
    case .transferHeld: "a transfer waits; why: `needsWiFi`, `noNetwork`, `lowPower`, …"
    case .transferEnded: "a transfer ended; why: `finished`, `failed`, `notAuthenticated`"
    case .credentialsDemanded: "a transfer's server asks who the app is"
    case .fetchPlanned: "the system planned an app's next fetch; why: when and why"
    case .document: "a step of a document; why: which"
    case .woke: "the phone woke up"
    case .slept: "the phone fell asleep"
    case .locked: "the phone was locked"
    case .unlocked: "the phone was unlocked"
    case .booted: "the phone started anew"
    case .changed: "somebody changed a setting or the network; why: what"
    case .condition: "the phone told the relay how it is; why: how"
    case .reported: "the phone told the relay what became of a push; why: what"
    case .waits: "the phone lets a silent push wait; why: which limit, and until when"
    case .ignored: "what was done to the phone did not apply; why"
    }
  }
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

extension DeliveryStep {
  fileprivate func why(since start: Int64) -> String {
    switch self {
    case .received(let notificationClass, _, _, _): notificationClass.name
    case .restored, .delivered: ""
    case .sent(let via): via.name
    case .storedOffline: "device offline"
    case .storedPower(.none, let limit): "held by \(limit.name)"
    case .storedPower(let until?, let limit):
      "held until \(TraceEntry.text(until, since: start)) by \(limit.name)"
    case .discarded(.replaced(let id)): "replaced by push \(Simulation.pushNumber(id) + 1)"
    case .discarded(let reason): reason.name
    case .outcome(let outcome): "\(outcome)"
    case .decided(let decision): decision.words(since: start)
    case .faulted(let mark): "\(mark.name): \(mark.action) at \(mark.place)"
    }
  }
}

extension TraceEntry {
  static func text(_ instant: Instant, since start: Int64) -> String {
    TimeText.text(time: max(0, instant.milliseconds - start))
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
    case .decision: .waits
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
    case .decision(_, _, let decision): decision.words(since: start)
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

extension PushDecision {
  fileprivate func words(since start: Int64) -> String {
    switch self {
    case .waits(let limit, nil): limit.rawValue
    case .waits(let limit, let until?):
      "\(limit.rawValue) until \(TraceEntry.text(until, since: start))"
    case .runs: "no longer"
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
      pushNumber: push == nil ? nil : Int(entry.push) + 1, pushName: push?.name,
      pushID: push?.id, kind: entry.kind, why: entry.why(since: start))
  }
}

/// One thing that happened.
public struct TraceLine: Hashable, Sendable {
  let milliseconds: Int64
  let isRelays: Bool
  /// The phone, the app and the push that it is about.
  public let phone: String?
  public let app: String?
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
