package import Primitives

/// Pending changes to the tokens of a shard's apps: undecided claims, unanswered records, and
/// tokens being returned. At most one per app. Questions to another node may be lost and are
/// repeated.
///
/// Bounded: a change needs the device's secret, a device has few at a time
/// (`Limits.tokenChangesPerDevice`), and each ends with the journal's or the token's shard's
/// answer.
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
    /// The token's shard was asked, on behalf of this request.
    case claiming(RequestID)
    /// The journal was asked, on behalf of this request; nothing has changed yet.
    case writing(RequestID)
    /// Not the app's since then, or never. Reply when the token's shard has released it.
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
  /// The next repetition, or a moment before.
  private(set) var nextQuestion: Instant?

  func changes(of device: DeviceID) -> [Change] { changes[device] ?? [] }

  /// Whether this device may begin one more change.
  func hasRoom(for device: DeviceID) -> Bool {
    count < Limits.tokenChangesPerShard
      && changes(of: device).count < Limits.tokenChangesPerDevice
  }

  /// Whether an app of the device is about to get or lose a token.
  func contains(_ device: DeviceID, _ topic: Topic) -> Bool {
    count > 0 && changes(of: device).contains { $0.own.topic == topic }
  }

  func step(of token: DeviceToken, _ device: DeviceID) -> Step? {
    changes(of: device).first { $0.own.token == token }?.step
  }

  mutating func begin(_ own: OwnToken, _ step: Step) { add(Change(own: own, step: step)) }

  /// The change may have begun already.
  private mutating func add(_ change: Change) {
    changes[change.own.device, default: []].append(change)
    count += 1
    wake(at: change.nextAt)
  }

  private mutating func wake(at moment: Instant) {
    if moment < nextQuestion ?? .never { nextQuestion = moment }
  }

  subscript(own: OwnToken) -> Step? { change(of: own)?.step }

  private func change(of own: OwnToken) -> Change? {
    index(of: own).flatMap { changes[own.device]?[$0] }
  }

  /// Counts a question to the token's shard and returns what it is about.
  mutating func ask(_ own: OwnToken, at now: Instant) -> Step? {
    guard let index = index(of: own), var change = changes[own.device]?[index] else { return nil }
    change.questions += 1
    change.nextAt = now + Limits.tokenQuestionInterval
    changes[own.device]?[index] = change
    wake(at: change.nextAt)
    return change.step
  }

  /// Moves the deadlines with the machine's clock.
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

  /// Overdue questions, in a deterministic order.
  mutating func due(at now: Instant) -> [OwnToken] {
    guard let nextQuestion, nextQuestion <= now else { return [] }
    let all = state
    let rest = all.map(\.nextAt).filter { $0 > now }.min() ?? .never
    self.nextQuestion = rest == .never ? nil : rest
    return all.filter { $0.nextAt <= now }.map(\.own)
  }

  mutating func end(_ own: OwnToken) -> Step? {
    guard let index = index(of: own) else { return nil }
    count -= 1
    if count == 0 { nextQuestion = nil }
    let change = changes[own.device]?.remove(at: index)
    if changes[own.device]?.isEmpty == true { changes[own.device] = nil }
    return change?.step
  }

  /// Removes and returns all changes of these devices, by device, in the order they began.
  mutating func removeAll(where isIt: (DeviceID) -> Bool) -> [Change] {
    let devices = changes.keys.filter(isIt).sorted()
    let taken = devices.flatMap { changes.removeValue(forKey: $0) ?? [] }
    count -= taken.count
    if count == 0 { nextQuestion = nil }
    return taken
  }

  /// By device, in the order they began.
  package var state: [Change] {
    get { changes.keys.sorted().flatMap { changes[$0] ?? [] } }
    set {
      self = Self()
      for change in newValue { add(change) }
    }
  }

  private func index(of own: OwnToken) -> Int? {
    changes[own.device]?.firstIndex { $0.own == own }
  }
}
