import Primitives

/// What a phone did, in words: one line an effect, the same bytes for the same run.
extension Phone {
  /// The line of a timeline: time, who, what. Names the app as it is installed.
  package func line(for effect: PhoneEffect) -> String {
    "\(effect.at.iso8601) \(text(of: effect.action))"
  }

  private func name(_ app: AppID) -> String {
    self[app]?.definition.name ?? "app \(app.number)"
  }

  private func text(of action: PhoneAction) -> String {
    switch action {
    case .report(let push, let outcome):
      "relay: push \(push.number) \(outcome.map { "\($0)" } ?? "delivered")"
    case .decision(let app, let push, let decision):
      "\(name(app)): push \(push.number) \(decision)"
    case .condition(let condition): "relay: \(condition)"
    case .transfer(let id, let app, let step): "\(name(app)): transfer \(id.number) \(step)"
    case .archive(let app, let step): "\(name(app)): state \(step)"
    case .banner(let banner):
      "\(name(banner.app)): banner \"\(banner.text)\""
        + (banner.isContentReady ? ", content ready" : "")
    case .badge(let app, let number): "\(name(app)): badge \(number)"
    case .sound(let app): "\(name(app)): sound"
    case .snapshot(let app, let snapshot): "\(name(app)): snapshot of \(snapshot.shows)"
    case .app(let app, let step): "\(name(app)): \(step)"
    case .callback(let id, let app, let step): "\(name(app)): callback \(id.number) \(step)"
    case .fetch(let plan): "\(name(plan.app)): fetch \(plan.phrase)"
    case .document(let id, let step): "document \(id.number): \(step.text(name))"
    case .phone(let step): "phone: \(step)"
    case .ignored(let reason): "ignored: \(reason)"
    }
  }

}

extension DocumentStep {
  /// What it says; apps are called by their names.
  package func text(_ name: (AppID) -> String) -> String {
    func text(of party: Coordination.Party) -> String {
      switch party {
      case .app(let app): name(app)
      case .syncService: "the sync service"
      }
    }
    return switch self {
    case .appeared(.placeholder): "appeared as a placeholder"
    case .appeared: "appeared"
    case .renamed(let name): "renamed to \"\(name)\""
    case .deleted: "deleted"
    case .granted(let access): "\(access.kind) granted to \(text(of: access.party))"
    case .waits(let access): "\(access.kind) of \(text(of: access.party)) waits"
    case .changed(let revision, let bytes): "changed, revision \(revision), \(bytes) bytes"
    case .uploadNeeded(let revision): "revision \(revision) to be uploaded"
    case .contentComing(let transfer): "content coming by transfer \(transfer.number)"
    case .conflict(let kept):
      "changed here and elsewhere, the later write stands, and revision \(kept.revision) from "
        + "\(kept.isFromHere ? "here" : "elsewhere"), \(kept.body.bytes) bytes, is kept"
    case .referenced(let app, _): "\(name(app)) has a reference"
    case .edited(let app, let difference): "edited by \(name(app)): \(difference.words)"
    case .chosen(.revision(let revision)): "revision \(revision) chosen"
    case .chosen(.all): "all versions chosen"
    case .copied(let copy, let app): "copied to \(name(app)) as document \(copy.number)"
    case .moved(let app): "moved to \(name(app))"
    case .uploading(let transfer, let revision):
      "revision \(revision) going up by transfer \(transfer.number)"
    case .uploaded(let revision): "revision \(revision) is with its provider"
    case .listed(let app, let entry):
      "listed by \(name(app)): \(entry.words(of: entry.modifiedAt.iso8601))"
    case .deadlock(let waits):
      "deadlock: "
        + waits.map { "\(name($0.app)) waits for document \($0.document.number)" }
        .joined(separator: ", ")
    case .givenUp(let app): "given up by \(name(app))"
    }
  }
}

extension DocumentListing {
  /// What it says; the moment of its last change is given in words.
  package func words(of moment: String) -> String {
    "\(name), \(body.bytes) bytes, of \(moment), "
      + (isLocal ? "here" : "a placeholder")
      + (thumbnail.map { ", thumbnail of \($0.count) bytes" } ?? "")
  }
}

extension PushOutcome: CustomStringConvertible {
  /// As it stands in the notification's log.
  package var description: String {
    switch self {
    case .newData: "newData"
    case .noData: "noData"
    case .failed: "failed"
    case .notLaunched(let refusal): "not launched: \(refusal.rawValue)"
    case .replaced: "not launched: replaced by a newer one"
    }
  }
}

extension RunCause: CustomStringConvertible {
  public var description: String {
    switch self {
    case .user: "the user"
    case .push(let push): "push \(push.number)"
    case .fetch: "fetch"
    case .transfers: "transfers"
    case .authentication: "a server's question"
    case .region: "a place"
    case .document: "a document"
    }
  }
}

extension ScreenContent: CustomStringConvertible {
  package var description: String {
    switch self {
    case .content(let revision, let top):
      "revision \(revision)" + (top.map { ", \($0) on top" } ?? "")
    case .hidden: "hidden content"
    }
  }
}

extension AppStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .installed: "installed"
    case .uninstalled: "uninstalled"
    case .launched(let cause): "launched for \(cause)"
    case .resumed(let cause): "resumed for \(cause)"
    case .opened(let age):
      "opened, " + (age.map { "content \($0.milliseconds / 1000) s old" } ?? "no content yet")
    case .launchImage(.snapshot(let content)): "launch image: \(content)"
    case .launchImage(.plain): "launch image: plain"
    case .enteredBackground: "entered the background"
    case .suspended: "suspended"
    case .terminated(let reason): "terminated: \(reason.text)"
    case .taskBegan(let work): "background task of \(work.milliseconds / 1000) s begun"
    case .taskEnded: "background task ended"
    case .taskExpired: "background task expired"
    case .wrote(let items, let isBeside):
      "wrote \(items.joined(separator: ", "))" + (isBeside ? " beside its database" : "")
    case .merged(let files): "merged \(ContentFile.words(files)) downloads made while locked"
    case .dataUnavailable(let protection): "data unavailable while locked: \(protection)"
    case .limitedCredential: "made do with a limited credential"
    case .contentShown(let waited): "content shown after \(waited.milliseconds) ms"
    case .restored(let archive): "restored \(archive.objects.count) objects"
    case .startedFresh(.noArchive): "started fresh"
    case .startedFresh(.locked): "started without its state: locked"
    case .startedFresh(.declined): "started fresh, its archive is too old"
    case .startedFresh(.otherVersion): "started fresh, its archive is another version's"
    case .notRun(let cause, let refusal): "not run for \(cause): \(refusal.rawValue)"
    case .audio(let isOn): isOn ? "plays" : "plays no more"
    case .asked(let refusal): "will it run? \(refusal?.rawValue ?? "yes")"
    case .spent(let cost): "spent \(cost)"
    case .judged(let standing): "standing \(standing)"
    case .fetchedEarly(let planned): "fetch of \(planned.iso8601) joins"
    case .taskPaused(let left): "background task pauses, \(left.milliseconds / 1000) s left"
    case .taskResumed(let left): "background task goes on, \(left.milliseconds / 1000) s left"
    }
  }
}

extension Cost: CustomStringConvertible {
  package var description: String {
    "\(energy) mJ, \(bytes) bytes, radio on for \(radio.milliseconds) ms"
  }
}

extension Standing: CustomStringConvertible {
  package var description: String {
    "\(before) to \(after), silent pushes \(silentInterval.milliseconds / 1000) s apart"
  }
}

extension TerminationReason {
  /// The end of a sentence.
  package var text: String {
    switch self {
    case .swipedAway: "swiped away"
    case .handlerNotCalled: "handler not called in time"
    case .taskOverran: "background task overran"
    case .memory: "memory needed"
    case .reboot: "reboot"
    case .crash: "crash"
    case .crashWhileRestoring: "crash while restoring"
    case .updated: "updated"
    case .uninstalled: "uninstalled"
    case .switchedOff: "switched off"
    case .notRestored: "done, launched without its state"
    }
  }
}

extension ContentFile {
  /// How many, and what is in them.
  package static func words(_ files: [ContentFile]) -> String {
    let items = files.flatMap(\.items)
    return items.isEmpty ? "\(files.count)" : "\(files.count): \(items.joined(separator: ", "))"
  }
}

extension CallbackStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .began(let cause): "began: \(cause)"
    case .completed(let outcome): "completed: \(outcome)"
    case .abandoned(let reason): "abandoned: \(reason.text)"
    }
  }
}

extension ArchiveStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .saved(let archive): "saved, \(archive.objects.count) objects"
    case .kept: "kept as it was"
    case .deleted: "deleted"
    case .transformed(let old, let new): "of version \(old), made one of \(new)"
    case .encoded(let path): "\(path): encoded"
    case .step(let step): "\(step)"
    }
  }
}

extension TransferStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .queued(let request, let isDiscretionary):
      "queued: \(request.direction) of \(request.name), \(request.bytes) bytes"
        + (isDiscretionary ? ", discretionary" : "")
    case .started(let offset): "started at byte \(offset)"
    case .brokeOff(let offset): "broke off at byte \(offset)"
    case .held(let hold): "held: \(hold)"
    case .credentialsDemanded: "credentials demanded"
    case .ended(let result): "ended: \(result)"
    }
  }
}
