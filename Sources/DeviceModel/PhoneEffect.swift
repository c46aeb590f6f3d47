package import Primitives

/// An action of the phone, with its time. Plain values with ids: comparable, replayable.
package struct PhoneEffect: Hashable, Sendable {
  package let at: Instant
  package let action: PhoneAction
}

/// A request of the phone, or information about it.
package enum PhoneAction: Hashable, Sendable {
  /// Requests. To the relay, exactly once per push; nil just means delivered.
  case report(PushID, PushOutcome?)
  /// To the relay: why and until when a silent push waits, and when its app runs.
  case decision(AppID, PushID, PushDecision)
  case condition(DeviceCondition)
  /// To the network for `TransferMode.performed`; information for modelled transfers.
  case transfer(TransferID, AppID, TransferStep)
  /// To the storage: seal and keep, or delete.
  case archive(AppID, ArchiveStep)

  /// Visible to the user.
  case banner(Banner)
  case badge(AppID, Int)
  case sound(AppID)
  case snapshot(AppID, AppSnapshot)

  /// Information.
  case app(AppID, AppStep)
  case callback(CallbackID, AppID, CallbackStep)
  case fetch(FetchPlan)
  case document(DocumentID, DocumentStep)
  case activity(AppID, ActivityStep)
  case phone(PhoneStep)
  /// The event did not apply; nothing changed.
  case ignored(IgnoreReason)
}

/// The result of a push that should wake its app, in the relay's terms.
package enum PushOutcome: Hashable, Codable, Sendable {
  case newData
  case noData
  case failed
  case notLaunched(LaunchRefusal)
  /// Replaced by a newer silent push while it waited.
  case replaced(by: PushID)
  /// Of a push for a Live Activity.
  case shown
  case notShown(ActivityRefusal)

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
  /// `apns-expiration` has passed while it waited.
  case expired
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
  case nothingChanged = "content-changed is not true"
  case nothingNamed = "no container-identifier"
  case pushBudget = "the day's pushes of its type are used up"
}

/// A step in the life of an app.
package enum AppStep: Hashable, Sendable {
  /// Also for another version.
  case installed
  case uninstalled
  case launched(RunCause)
  case resumed(RunCause)
  /// Nil if the app never had content.
  case opened(contentAge: Interval?)
  /// Shown while the app starts; nil is the plain image (WWDC 2013 session 222).
  case launchImage(ScreenContent?)
  case enteredBackground
  case suspended
  case terminated(TerminationReason)
  case taskBegan(Interval)
  case taskEnded
  case taskExpired
  /// To its database, or to a file beside it while locked.
  case wrote([String], isBeside: Bool)
  /// Content written while locked is now in the database.
  case merged([ContentFile])
  case dataUnavailable(DataProtection)
  /// It used a credential that is valid for background work only.
  case limitedCredential
  case contentShown(waited: Interval)
  case restored(StateArchive, objects: Int)
  case startedFresh(FreshReason)
  case notRun(RunCause, LaunchRefusal)
  case audio(isOn: Bool)
  /// The app asked whether it will run; the reason against it.
  case asked(LaunchRefusal?)
  /// The cost of an opportunity: millijoules with the radio's, and the time it was on for that.
  case spent(energy: Int64, bytes: Int64, radio: Interval)
  /// The app's score (0 to 1000), and the resulting spacing of silent pushes.
  case judged(before: Int64, after: Int64, silentInterval: Interval)
  case fetchedEarly(planned: Instant)
  /// A push for somebody other than the app, and what its payload names.
  case handled(PushID, PushHandler, String?)
  case taskPaused(left: Interval)
  case taskResumed(left: Interval)
}

/// Why an app was run.
public enum RunCause: Hashable, Sendable {
  case user
  case push(PushID)
  case fetch
  case transfers
  case authentication
  case region
  /// A document it provides is wanted or was written.
  case document
  /// A push has started a Live Activity.
  case activity
}

/// Why an app's process ended. The raw value is the end of a sentence.
package enum TerminationReason: String, CaseIterable, Hashable, Sendable {
  case swipedAway = "swiped away"
  case handlerNotCalled = "handler not called in time"
  case taskOverran = "background task overran"
  case memory = "memory needed"
  case reboot
  case crash
  case crashWhileRestoring = "crash while restoring"
  case updated
  case uninstalled
  case switchedOff = "switched off"
  /// Launched while locked, its work is done; it must not stay with an unrestored interface.
  case notRestored = "done, launched without its state"
}

/// Why an app starts without its archive.
package enum FreshReason: String, CaseIterable, Hashable, Sendable {
  case noArchive = "no archive"
  case locked
  case declined
  /// Of another app version, without a transform to this one.
  case otherVersion = "declined, another version"
}

/// Exactly one of `completed` and `abandoned` ends a callback.
package enum CallbackStep: Hashable, Sendable {
  case began(RunCause)
  case completed(CallbackOutcome)
  case abandoned(TerminationReason)
}

/// A step in the life of an archive.
package enum ArchiveStep: Hashable, Sendable {
  /// The selected row, found by identifier; nil place if it is gone.
  case row(StatePath, key: String, place: Int?)
  case saved(StateArchive)
  /// Not read or overwritten: locked, or the process never had that state.
  case kept
  case deleted
  case transformed(from: String, to: String)
  /// In developer mode only: saved objects, and steps of restoring.
  case encoded(StatePath)
  case step(RestorationStep)
}

/// A change of the phone itself.
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
  case notOffered
  /// The user has not moved to iCloud Drive.
  case notMigrated
  case wrongType
  case unknownLine
  case unknownVersion
  case nothingToUndo
  case notInForeground
  case notInSwitcher
  case unknownActivity
  case alreadySo
  case switchedOff
}
