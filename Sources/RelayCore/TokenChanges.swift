package import Primitives

/// What a shard's devices have under way with the tokens of their apps: claims that are not decided
/// yet, what the journal has not answered, and tokens that are being given back. While one is under
/// way for an app, no other begins.
///
/// Only requests with the device's secret get here, a device has few at a time
/// (`Limits.tokenChangesPerDevice`), and each ends when the journal or the token's shard answers.
package struct TokenChanges: Sendable {
  package struct Reply: Hashable, Sendable {
    package var request: RequestID
    package var answer: DeviceAnswer

    package init(request: RequestID, answer: DeviceAnswer) {
      self.request = request
      self.answer = answer
    }
  }

  package enum Step: Hashable, Sendable {
    /// The token's shard or the journal has been asked, nothing is changed yet; who waits for it.
    case pending(RequestID)
    /// The app has it no longer since that moment, or never had it. Once the token's shard has
    /// taken it back, somebody is waiting to hear of it.
    case leaving(since: Instant?, then: Reply)
  }

  package struct Change: Hashable, Sendable {
    package var own: OwnToken
    package var step: Step

    package init(own: OwnToken, step: Step) {
      self.own = own
      self.step = step
    }
  }

  private var changes: [DeviceID: [Change]] = [:]
  private(set) var count = 0

  func changes(of device: DeviceID) -> [Change] { changes[device] ?? [] }

  /// Whether one more change of this device may begin.
  func hasRoom(for device: DeviceID) -> Bool {
    count < Limits.tokenChangesPerShard
      && changes(of: device).count < Limits.tokenChangesPerDevice
  }

  /// Whether an app of the device is about to get a token or to lose one.
  func contains(_ device: DeviceID, _ topic: Topic) -> Bool {
    count > 0 && changes(of: device).contains { $0.own.topic == topic }
  }

  /// What is under way with this token for an app of the device.
  func step(of token: DeviceToken, _ device: DeviceID) -> Step? {
    changes(of: device).first { $0.own.token == token }?.step
  }

  mutating func begin(_ own: OwnToken, _ step: Step) {
    changes[own.device, default: []].append(Change(own: own, step: step))
    count += 1
  }

  /// Takes out what is under way with this token for this app.
  mutating func end(_ own: OwnToken) -> Step? {
    guard let index = index(of: own) else { return nil }
    count -= 1
    let change = changes[own.device]?.remove(at: index)
    if changes[own.device]?.isEmpty == true { changes[own.device] = nil }
    return change?.step
  }

  /// Takes out all changes of these devices: by device, of each in the order in which they began.
  mutating func take(_ isIt: (DeviceID) -> Bool) -> [Change] {
    let devices = changes.keys.filter(isIt).sorted { $0.precedes($1) }
    let taken = devices.flatMap { changes.removeValue(forKey: $0) ?? [] }
    count -= taken.count
    return taken
  }

  /// All, by device; of each in the order in which they began.
  var state: [Change] {
    changes.keys.sorted { $0.precedes($1) }.flatMap { changes[$0] ?? [] }
  }

  private func index(of own: OwnToken) -> Int? {
    changes[own.device]?.firstIndex { $0.own == own }
  }
}
