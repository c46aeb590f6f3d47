import Primitives

/// Why a phone's memory cannot be restored.
package enum PhoneMemoryError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Another version of this program wrote it.
  case unknownFormat(Int)
  /// It was edited, or damaged: what about it cannot be.
  case impossible(String)

  package var description: String {
    switch self {
    case .unknownFormat(let format): "its format is \(format), not \(PhoneMemory.format)"
    case .impossible(let what): "\(what) cannot be as it says"
    }
  }
}

/// Everything that the phone relies on without looking: places of apps, counters that must not
/// overflow, parents that must not go in circles. Moments may be anything: their arithmetic
/// saturates.
extension PhoneMemory.Contents {
  func check() throws(PhoneMemoryError) {
    try demand("the time", savedAt >= Instant(milliseconds: 0) && savedAt <= .endOfCalendar)
    for (index, app) in apps.enumerated() {
      try demand("app \(index)", app.id.number == index && app.isSound)
    }
    try demand("an app's name", Set(apps.map(\.definition.name)).count == apps.count)
    try demand("the app switcher", isKnown(switcher.apps) && isDistinct(switcher.apps))
    try checkBanners()
    try demand(
      "a transfer",
      service.isSound && isKnown(service.transfers.map(\.app))
        && service.transfers.allSatisfy(\.isSound))
    try checkDocuments()
    try checkCallbacks()
    try demand("a budget", energy.isSound && data.isSound)
    try demand("the usage", usage.isSound)
    try checkPushes()
  }

  private func demand(_ what: String, _ isSound: Bool) throws(PhoneMemoryError) {
    guard isSound else { throw .impossible(what) }
  }

  private func isKnown(_ ids: some Sequence<AppID>) -> Bool {
    ids.allSatisfy { apps.indices.contains($0.number) }
  }

  private func isDistinct(_ ids: [some Hashable]) -> Bool { Set(ids).count == ids.count }

  private func checkBanners() throws(PhoneMemoryError) {
    try demand(
      "a banner",
      isKnown(banners.map(\.app)) && isDistinct(banners.map(\.id))
        && bannerNumbering.isSound(after: banners.map(\.id.number)))
  }

  private func checkDocuments() throws(PhoneMemoryError) {
    try demand("the documents", documents.isSound)
    try demand("a bookmark", isKnown(documents.grants.values.map(\.app)))
    for (id, document) in documents.documents {
      let parties = document.coordination.accesses.map(\.party)
      // Only a process can hold an access, and its end ends it.
      let areAlive = parties.allSatisfy { party in
        guard case .app(let app) = party else { return true }
        return isKnown([app]) && apps[app.number].state.hasProcess
      }
      try demand(
        "document \(id.number)",
        document.id == id && isKnown([document.container]) && document.isSound && areAlive)
    }
  }

  private func checkCallbacks() throws(PhoneMemoryError) {
    let numbers = callbacks.map(\.id.number)
    try demand(
      "the callbacks", isDistinct(numbers) && callbackNumbering.isSound(after: numbers))
    for callback in callbacks {
      // A callback ends with its process; one without would never end.
      var isPossible = isKnown([callback.app]) && apps[callback.app.number].state.hasProcess
      if case .push(let push) = callback.kind, push.app != callback.app { isPossible = false }
      try demand("callback \(callback.id.number)", isPossible)
    }
  }

  /// A push that is not reported yet waits for something that will happen, else it would wait
  /// forever.
  private func checkPushes() throws(PhoneMemoryError) {
    var expected = Set(apps.compactMap { $0.heldPush?.id })
    for case .push(let push) in callbacks.map(\.kind) { expected.insert(push.id) }
    try demand(
      "a push",
      isDistinct(recentPushes.map(\.id))
        && recentPushes.allSatisfy { $0.entry != .open || expected.contains($0.id) })
  }
}

extension App {
  fileprivate var isSound: Bool {
    definition.isSound && behaviour.isSound && energy.isSound && data.isSound && usage.isSound
      && Numbering.range.contains(Int64(content.revision))
      && Numbering.range.contains(Int64(content.unmerged)) && plan.app == id
      && heldPush.map { $0.app == id } ?? true
  }
}

extension AppDefinition {
  fileprivate var isSound: Bool {
    let callbacks = [script.onPush, script.onFetch, script.onTransfers]
    let transfers = callbacks.flatMap(\.transfers) + script.onLeave.transfers
    return script.interface.isSound && transfers.allSatisfy { $0.bytes >= 0 }
  }
}

extension Transfer {
  /// Of a performed one the size is a guess.
  fileprivate var isSound: Bool {
    request.bytes >= 0 && done >= 0 && (isPerformed || done <= request.bytes)
  }
}

extension Document {
  fileprivate var isSound: Bool {
    coordination.isSound && bytes >= 0 && arrivedBytes >= 0
      && Numbering.range.contains(Int64(revision))
      && Numbering.range.contains(Int64(remoteRevision))
  }
}
