package import Primitives

/// What a shard's devices have under way with the tokens of their apps: claims that are not decided
/// yet, what the journal has not answered, and tokens that are being given back. While one is under
/// way for an app, no other begins.
///
/// What is asked of another node may get lost: then it is asked again.
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
    /// The token's shard has been asked; who waits for it.
    case claiming(RequestID)
    /// The journal has been asked what the app is to be, and nothing is changed yet; who waits.
    case writing(RequestID)
    /// The app has it no longer since that moment, or never had it. Once the token's shard has
    /// taken it back, somebody may be waiting to hear of it.
    case leaving(since: Instant?, then: Reply?)
  }

  package struct Change: Hashable, Sendable {
    package var own: OwnToken
    package var step: Step
    /// How often the token's shard was asked, and when it is asked again.
    package var questions: UInt8
    package var nextAt: Instant

    package init(own: OwnToken, step: Step, questions: UInt8 = 0, nextAt: Instant = .never) {
      self.own = own
      self.step = step
      self.questions = questions
      self.nextAt = nextAt
    }
  }

  private var changes: [DeviceID: [Change]] = [:]
  private(set) var count = 0
  /// When something is due to be asked again, or a moment before that.
  private(set) var nextQuestion: Instant?

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

  mutating func begin(_ own: OwnToken, _ step: Step) { add(Change(own: own, step: step)) }

  /// Takes in one that may be under way already.
  mutating func add(_ change: Change) {
    changes[change.own.device, default: []].append(change)
    count += 1
    wake(at: change.nextAt)
  }

  private mutating func wake(at moment: Instant) {
    if moment < nextQuestion ?? .never { nextQuestion = moment }
  }

  /// What is under way with this token for this app.
  subscript(own: OwnToken) -> Step? { change(of: own)?.step }

  private func change(of own: OwnToken) -> Change? {
    index(of: own).flatMap { changes[own.device]?[$0] }
  }

  /// The token's shard is asked now; what about.
  mutating func ask(_ own: OwnToken, at now: Instant) -> Step? {
    guard let index = index(of: own), var change = changes[own.device]?[index] else { return nil }
    change.questions += 1
    change.nextAt = now + Limits.tokenQuestionInterval
    changes[own.device]?[index] = change
    wake(at: change.nextAt)
    return change.step
  }

  /// The machine's clock was set: an answer may take as long as before.
  mutating func stepClock(by interval: Interval) {
    nextQuestion = nextQuestion.map { $0 + interval }
    changes = changes.mapValues { changes in
      changes.map { change in
        var change = change
        if change.nextAt != .never { change.nextAt = change.nextAt + interval }
        return change
      }
    }
  }

  func isGivenUp(_ own: OwnToken) -> Bool {
    (change(of: own)?.questions ?? 0) >= Limits.tokenQuestions
  }

  /// What has waited for its answer long enough, in an order that depends on nothing else.
  mutating func due(at now: Instant) -> [OwnToken] {
    guard let nextQuestion, nextQuestion <= now else { return [] }
    let all = state
    let rest = all.map(\.nextAt).filter { $0 > now }.min() ?? .never
    self.nextQuestion = rest == .never ? nil : rest
    return all.filter { $0.nextAt <= now }.map(\.own)
  }

  /// Takes out what is under way with this token for this app.
  mutating func end(_ own: OwnToken) -> Step? {
    guard let index = index(of: own) else { return nil }
    count -= 1
    if count == 0 { nextQuestion = nil }
    let change = changes[own.device]?.remove(at: index)
    if changes[own.device]?.isEmpty == true { changes[own.device] = nil }
    return change?.step
  }

  /// Takes out all changes of these devices: by device, of each in the order in which they began.
  mutating func take(_ isIt: (DeviceID) -> Bool) -> [Change] {
    let devices = changes.keys.filter(isIt).sorted { $0.precedes($1) }
    let taken = devices.flatMap { changes.removeValue(forKey: $0) ?? [] }
    count -= taken.count
    if count == 0 { nextQuestion = nil }
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
