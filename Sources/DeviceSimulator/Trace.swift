import DeviceModel
import Primitives
import RelayCore

/// An event as stored; formatted only when read.
struct TraceEntry: Sendable {
  enum Fact: Sendable {
    case life(DeliveryStep)
    case refused(status: UInt16, reason: String)
    case connected
    case disconnected(String)
    /// The text is empty unless a real relay sent the push.
    case arrived(String)
    case changed(String)
    case relay(RelayStep)
    /// The transfer's name, and its step.
    case transfer(String, PhoneAction)
    case fetchBegan(CallbackID, FetchReason?)
    /// A formatted step that names apps.
    case document(String)
    case activity(TraceKind, String)
    case phone(PhoneAction)
  }

  let at: Int64
  /// -1 for none.
  let phone: Int32
  let app: Int32
  let push: Int32
  let fact: Fact
}

/// The formatted kind and reason of an entry.
struct Told {
  let kind: TraceKind
  /// May return an empty text.
  let why: (TraceClock) -> String

  init(_ kind: TraceKind, _ why: @escaping (TraceClock) -> String) {
    (self.kind, self.why) = (kind, why)
  }

  init(_ kind: TraceKind, _ why: @escaping @autoclosure () -> String = "") {
    self.init(kind) { _ in why() }
  }
}

extension TraceEntry {
  var kind: TraceKind { told.kind }

  func why(by clock: TraceClock) -> String { told.why(clock) }

  private var told: Told {
    switch fact {
    case .life(let step): step.told
    case .document(let words): Told(.document, words)
    case .activity(let kind, let words): Told(kind, words)
    case .refused(0, let reason): Told(.refused, reason)
    case .refused(let status, let reason): Told(.refused, "\(status) \(reason)")
    case .relay(let step): step.told
    case .connected: Told(.connected)
    case .disconnected(let reason): Told(.disconnected, reason)
    case .changed(let what): Told(.changed, what)
    case .fetchBegan(_, let reason): Told(.began, "fetch" + (reason.map { ", \($0)" } ?? ""))
    case .arrived(let what): Told(.arrived, what)
    case .phone(let action), .transfer(_, let action): action.told(push: push)
    }
  }

  var transfer: String? {
    if case .transfer(let name, _) = fact { name } else { nil }
  }

  var isRelays: Bool {
    switch fact {
    case .life, .refused, .connected, .disconnected, .relay: true
    case .arrived, .changed, .fetchBegan, .document, .activity, .phone, .transfer: false
    }
  }
}

/// How traces show times.
enum TraceClock: Sendable {
  case since(Int64)
  case calendar

  func text(_ instant: Instant) -> String {
    switch self {
    case .since(let start): TimeText.text(time: max(0, instant.milliseconds - start))
    case .calendar: instant.iso8601
    }
  }
}

extension DeliveryStep {
  fileprivate var told: Told {
    switch self {
    case .received(let notificationClass, _, _, _): Told(.received, notificationClass.name)
    case .restored: Told(.received, "from the journal")
    case .delivered: Told(.delivered)
    case .sent(let via, _): Told(.sent, via.name)
    case .storedOffline: Told(.stored, "device offline")
    case .storedPower(.none, let limit): Told(.stored, "held by \(limit.name)")
    case .storedPower(let until?, let limit):
      Told(.stored) { "held until \($0.text(until)) by \(limit.name)" }
    case .discarded(.replaced(let id)):
      Told(.discarded, "replaced by push \(Simulation.pushNumber(id) + 1)")
    case .discarded(let reason): Told(.discarded, reason.name)
    case .outcome(let outcome): Told(.outcome, "\(outcome)")
    case .decided(let decision): decision.told
    case .faulted(let mark): Told(.fault, "\(mark.name): \(mark.action) at \(mark.place)")
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
  fileprivate func told(push: Int32) -> Told {
    switch self {
    case .report(_, let outcome): Told(.reported, outcome.map { "\($0)" } ?? "delivered")
    case .decision(_, _, let decision): decision.told
    case .condition(let condition): Told(.condition, "\(condition)")
    case .transfer(_, _, .queued(let request, let isDiscretionary)):
      Told(
        .transferQueued,
        "\(request.direction) of \(request.name), \(request.bytes) bytes"
          + (isDiscretionary ? ", discretionary" : ""))
    case .transfer(_, _, .started(let offset)): Told(.transferStarted, "from byte \(offset)")
    case .transfer(_, _, .brokeOff(let offset)): Told(.transferBroke, "at byte \(offset)")
    case .transfer(_, _, .held(let hold)): Told(.transferHeld, hold.rawValue)
    case .transfer(_, _, .ended(let result)): Told(.transferEnded, result.rawValue)
    case .transfer(_, _, .credentialsDemanded): Told(.credentialsDemanded)
    case .archive(_, let step): Told(.state, "\(step)")
    case .banner(let banner):
      Told(
        .banner,
        banner.text + (banner.isContentReady ? " (content ready)" : "")
          + (banner.isQuiet == true ? " (no light)" : ""))
    case .badge(_, let number): Told(.badge, "\(number)")
    case .sound: Told(.sound)
    case .snapshot(_, let snapshot): Told(.snapshot, "\(snapshot.shows)")
    case .app(_, let step): step.told(push: push)
    case .callback(_, _, .began(let cause)): Told(.began, cause.words(push: push))
    case .callback(_, _, .completed(let outcome)): Told(.completed, outcome.rawValue)
    case .callback(_, _, .abandoned(let reason)): Told(.abandoned, reason.rawValue)
    case .fetch(let plan): Told(.fetchPlanned) { plan.words(by: $0) }
    case .document(let id, let step):
      Told(.document) { clock in
        "document \(id.number) \(step.words(by: clock) { "app \($0.number)" })"
      }
    case .activity(_, let step): Told(.activity, "\(step)")
    case .phone(.woke): Told(.woke)
    case .phone(.slept): Told(.slept)
    case .phone(.locked): Told(.locked)
    case .phone(.unlocked): Told(.unlocked)
    case .phone(.booted): Told(.booted)
    case .phone(.switchedOff): Told(.switchedOff)
    case .ignored(let reason): Told(.ignored, reason.rawValue)
    }
  }
}

extension PushDecision {
  fileprivate var told: Told {
    switch self {
    case .waits(let limit, nil): Told(.waits, limit.rawValue)
    case .waits(let limit, let until?): Told(.waits) { "\(limit.rawValue) until \($0.text(until))" }
    case .runs: Told(.waits, "no longer")
    }
  }
}

extension AppStep {
  fileprivate func told(push: Int32) -> Told {
    switch self {
    case .installed: Told(.installed)
    case .uninstalled: Told(.uninstalled)
    case .notRun(let cause, let refusal): Told(.notRun, "\(cause), \(refusal.rawValue)")
    case .handled(_, let handler, let subject): Told(.handled, handler.words(subject))
    case .audio(let isOn): Told(.audio, isOn ? "plays" : "plays no more")
    case .asked(let refusal): Told(.asked, refusal.map { "no, \($0.rawValue)" } ?? "yes")
    case .spent(let energy, let bytes, let radio):
      Told(.spent, "\(energy) mJ, \(bytes) bytes, radio on for \(radio.milliseconds) ms")
    case .judged(let before, let after, let interval):
      Told(
        .standing, "\(before) to \(after), silent pushes \(interval.milliseconds / 1000) s apart")
    case .fetchedEarly(let planned): Told(.coalesced) { "planned for \($0.text(planned))" }
    case .taskPaused(let left): Told(.taskPaused, "\(left.text) left")
    case .taskResumed(let left): Told(.taskResumed, "\(left.text) left")
    case .launched(let cause): Told(.launched, cause.words(push: push))
    case .resumed(let cause): Told(.resumed, cause.words(push: push))
    case .opened(let age?):
      Told(.opened, "content \(TimeText.text(duration: age.milliseconds / 1000 * 1000)) old")
    case .opened: Told(.opened, "no content yet")
    case .launchImage(let content): Told(.launchImage, content.map { "\($0)" } ?? "plain")
    case .enteredBackground: Told(.left)
    case .suspended: Told(.suspended)
    case .terminated(let reason): Told(.terminated, reason.rawValue)
    case .taskBegan(let work): Told(.taskBegan, work.text)
    case .taskEnded: Told(.taskEnded)
    case .taskExpired: Told(.taskExpired)
    case .wrote(let items, let isBeside):
      Told(.wrote, items.joined(separator: ", ") + (isBeside ? " (beside its database)" : ""))
    case .merged(let files): Told(.merged, ContentFile.words(files))
    case .dataUnavailable(let protection): Told(.dataUnavailable, protection.rawValue)
    case .limitedCredential: Told(.limitedCredential)
    case .contentShown(let waited): Told(.contentShown, "waited \(waited.text)")
    case .restored(_, let count): Told(.restored, "\(count) objects")
    case .startedFresh(let reason): Told(.startedFresh, reason.rawValue)
    }
  }
}

extension RunCause {
  /// Pushes by their numbers in this simulation.
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
    case .listed(let app, let document, let folder):
      "listed by \(name(app)): "
        + document.words(by: clock, external: folder.map { (name(document.container), $0) })
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

extension Document {
  /// - Parameter external: the name of another container, and the app's folder for the reference.
  fileprivate func words(by clock: TraceClock, external: (String, String)?) -> String {
    var words = "\(name), \(body.bytes) bytes, of \(clock.text(modifiedAt)), "
    words += content == .local ? "here" : "a placeholder"
    words += ", thumbnail of \(thumbnail.count) bytes"
    if let type { words += ", type \(type)" }
    if let (container, folder) = external {
      words += ", external in \(container)" + (folder.isEmpty ? "" : ", filed in \(folder)")
    }
    if let versions, !versions.isEmpty { words += ", in conflict: \(versions.count) more" }
    return words + (body.isCorrupt == true ? ", corrupt" : "")
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

/// The trace, for people and programs.
extension Simulation {
  /// The trace so far without details such as snapshots and sleep, one line per entry.
  public var timeline: String { text(of: timelineLines) }

  public var timelineLines: [TraceLine] { trace().filter { !$0.kind.isDetail } }

  /// Everything so far, in order.
  public func trace() -> [TraceLine] { entries.indices.map { line($0) } }

  /// Lines in columns.
  ///
  /// - Parameter styled: decorates a line's text, for instance with a colour.
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

  var clock: TraceClock { relay == nil ? .calendar : .since(start) }
}

/// A formatted entry of the trace.
public struct TraceLine: Hashable, Sendable {
  let milliseconds: Int64
  let isRelays: Bool
  public let phone: String?
  public let app: String?
  public let transfer: String?
  public let pushNumber: Int?
  public let pushName: String?
  let pushID: UniqueID?
  public let kind: TraceKind
  /// Empty if there is nothing to say.
  public let why: String

  public var time: Duration { .milliseconds(milliseconds) }

  /// `relay`, `anna` or `anna/messenger`.
  var who: String {
    isRelays ? "relay" : [phone, app].compactMap(\.self).joined(separator: "/")
  }

  func text(timeWidth: Int, whoWidth: Int) -> String {
    let time = TimeText.text(time: milliseconds)
    return time.padded(to: timeWidth) + "  " + who.padded(to: whoWidth) + "  " + what
  }

  var what: String {
    var text = kind.rawValue
    if let pushNumber,
      kind == .banner || isRelays || kind == .arrived || kind == .reported
        || kind == .waits || kind == .notShown || kind == .handled
    {
      text = "push \(pushNumber)" + (pushName.map { " (\($0))" } ?? "") + " " + text
    }
    if let transfer, kind != .transferQueued { text += " (\(transfer))" }
    if isRelays, let phone {
      let place = [phone, app].compactMap(\.self).joined(separator: "/")
      if kind == .received || kind == .refused { text += " for \(place)" }
      if kind == .connected || kind == .disconnected { text = "\(place) " + text }
    }
    // A banner has what somebody else wrote.
    return why.isEmpty ? text : "\(text): \(why.inOneLine)"
  }

  /// One JSON object with a fixed key order; the time in milliseconds.
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

  /// A line of a live run: time of day, who, what. Nil for details unless verbose.
  package func liveText(isVerbose: Bool) -> String? {
    guard isVerbose || !kind.isDetail || TraceKind.toldLive.contains(kind) else { return nil }
    let clock = TimeText.text(time: milliseconds).suffix(12)
    return "\(clock) \(who)  \(what)"
  }
}
