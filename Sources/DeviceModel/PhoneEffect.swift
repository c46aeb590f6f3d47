package import Primitives

/// Something the phone did or asks for, and when. Values with ids: comparable, replayable.
package struct PhoneEffect: Hashable, Sendable {
  package let at: Instant
  package let action: PhoneAction
}

/// What it did or asks for.
package enum PhoneAction: Hashable, Sendable {
  /// Requests: to the relay, in answer to each push exactly once. Nil says "delivered" and no more.
  case report(PushID, PushOutcome?)
  /// To the relay: why a silent push waits, until when, and that its app runs at last.
  case decision(AppID, PushID, PushDecision)
  /// To the relay: the phone's condition has changed.
  case condition(DeviceCondition)
  /// To the network, for `TransferMode.performed`; in virtual time it tells what goes on.
  case transfer(TransferID, AppID, TransferStep)
  /// To the storage: keep it sealed, or delete it.
  case archive(AppID, ArchiveStep)

  /// What the user perceives.
  case banner(Banner)
  case badge(AppID, Int)
  case sound(AppID)
  case snapshot(AppID, AppSnapshot)

  /// What went on.
  case app(AppID, AppStep)
  case callback(CallbackID, AppID, CallbackStep)
  case fetch(FetchPlan)
  case document(DocumentID, DocumentStep)
  case phone(PhoneStep)
  /// The event did not apply, and why; nothing changed.
  case ignored(IgnoreReason)
}

/// What became of a push that was to wake its app, in the relay's terms.
package enum PushOutcome: Hashable, Codable, Sendable {
  case newData
  case noData
  case failed
  case notLaunched(LaunchRefusal)
  /// A newer silent push took its place while it waited.
  case replaced(by: PushID)

  init(_ outcome: CallbackOutcome) {
    switch outcome {
    case .newData: self = .newData
    case .noData: self = .noData
    case .failed: self = .failed
    }
  }
}

/// Why the system did not run an app. The raw value is the text in the notification's log.
package enum LaunchRefusal: String, CaseIterable, Hashable, Codable, Sendable {
  case forceQuit = "force-quit"
  case refreshOff = "refresh off"
  case refreshOffForAll = "refresh off for all"
  case lowPower = "low power"
  case energyBudget = "energy budget"
  case dataBudget = "data budget"
  case modeMissing = "remote-notification mode missing"
  case notInstalled = "not installed"
  case tooManyCallbacks = "too many callbacks"
  case locationModeMissing = "location mode missing"
  case fetchModeMissing = "fetch mode missing"
  case noModes = "no background modes"
  case beforeFirstUnlock = "before the first unlock"
  case newsstandNeedsWiFi = "newsstand: on Wi-Fi only"
  case newsstandOncePerDay = "newsstand: once a day"
}

/// Steps in the life of an app.
package enum AppStep: Hashable, Sendable {
  /// For the first time, or another version of it.
  case installed
  case uninstalled
  case launched(RunCause)
  case resumed(RunCause)
  /// In front of the user; how old its content is, nil if it never had any.
  case opened(contentAge: Interval?)
  case launchImage(LaunchImage)
  case enteredBackground
  case suspended
  case terminated(TerminationReason)
  case taskBegan(Interval)
  case taskEnded
  /// Its time was over before its work.
  case taskExpired
  /// Content was put into its database, or into a file beside it while locked.
  case wrote([String], isBeside: Bool)
  /// What it wrote while locked is in its database now.
  case merged([ContentFile])
  /// A file or key could not be had while locked.
  case dataUnavailable(DataProtection)
  /// It made do with a credential that is good for its work in the background only.
  case limitedCredential
  /// Opened from a banner: the content is on the screen, at once or after the wait.
  case contentShown(waited: Interval)
  case restored(StateArchive, objects: Int)
  case startedFresh(FreshReason)
  /// It was to run in the background, and may not.
  case notRun(RunCause, LaunchRefusal)
  case audio(isOn: Bool)
  /// It asked whether it will run; what is against it.
  case asked(LaunchRefusal?)
  /// What its work has cost, and how that has changed what it will get.
  case spent(Cost)
  case judged(Standing)
  /// A fetch that joins an awake period, and when it would have been.
  case fetchedEarly(planned: Instant)
  /// The phone sleeps, and so does its task; and goes on when the phone is awake.
  case taskPaused(left: Interval)
  case taskResumed(left: Interval)
}

/// What an opportunity has cost.
package struct Cost: Hashable, Sendable {
  /// Millijoules, with the radio's.
  package let energy: Int64
  package let bytes: Int64
  /// For how much longer the radio was on because of it.
  package let radio: Interval
}

/// How an app has used its time, from 0 to 1000, before and after an opportunity, and how long
/// silent pushes to it have to be apart for that.
package struct Standing: Hashable, Sendable {
  package let before: Int64
  package let after: Int64
  package let silentInterval: Interval
}

/// Why an app was run.
public enum RunCause: Hashable, Sendable {
  case user
  case push(PushID)
  case fetch
  case transfers
  case authentication
  case region
  /// Of those that it provides, one is wanted or was written.
  case document
}

/// What is shown while an app starts (WWDC 2013 session 222).
package enum LaunchImage: Hashable, Sendable {
  case snapshot(ScreenContent)
  case plain
}

/// Why an app's process ended.
package enum TerminationReason: String, CaseIterable, Hashable, Sendable {
  case swipedAway
  case handlerNotCalled
  case taskOverran
  case memory
  case reboot
  case crash
  case crashWhileRestoring
  /// Another version of the app was installed.
  case updated
  case uninstalled
  case switchedOff
  /// Launched while locked, its work is done, and it must not stay with an interface that never was
  /// restored.
  case notRestored
}

/// Why an app begins without its archive.
package enum FreshReason: String, CaseIterable, Hashable, Sendable {
  case noArchive
  case locked
  case declined
  /// It is another version's, and nothing makes it one of this.
  case otherVersion
}

/// Steps of a callback. Exactly one of `completed` and `abandoned` ends it.
package enum CallbackStep: Hashable, Sendable {
  case began(RunCause)
  case completed(CallbackOutcome)
  case abandoned(TerminationReason)
}

/// Steps of an archive.
package enum ArchiveStep: Hashable, Sendable {
  /// The selected row of a table was found by its identifier, where it is now; nil when it is gone.
  case row(StatePath, key: String, place: Int?)
  case saved(StateArchive)
  /// Locked: neither read nor overwritten; or the process never had the state it would replace.
  case kept
  case deleted
  case transformed(from: String, to: String)
  /// Told in developer mode only: what is saved, and each step of restoring.
  case encoded(StatePath)
  case step(RestorationStep)
}

/// Steps of the phone itself.
package enum PhoneStep: Hashable, Sendable {
  case woke
  case slept
  case locked
  case unlocked
  case booted
  case switchedOff
}

/// Why an event did not apply.
package enum IgnoreReason: String, CaseIterable, Hashable, Sendable {
  case unknownApp
  case locked
  case notRunning
  case unknownBanner
  case unknownTransfer
  case duplicatePush
  case limitReached
  case notAllowed
  case unknownDocument
  case staleBookmark
  /// The picker does not offer that container, or the app does not ask for that type.
  case notOffered
  /// Its user has not moved to iCloud Drive.
  case notMigrated
  case wrongType
  case unknownLine
  case unknownVersion
  case nothingToUndo
  case alreadySo
  case switchedOff
}
