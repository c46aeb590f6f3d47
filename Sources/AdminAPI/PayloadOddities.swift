import RelayCore

/// Where a payload is odd: found when a person looks, never while a push is taken (Apple,
/// "Generating a remote notification").
struct PayloadOddities {
  /// Paths such as `aps.alert.titel`, by note. A scan finds some of these notes, too, without a
  /// place; what is odd inside of alerts and sounds is found only here.
  private(set) var places: [PayloadWarning: [String]] = [:]

  init(_ payload: JSONTree) {
    let aps = payload["aps"]
    for (key, value) in Self.members(of: aps) {
      guard let known = ApsKey.allCases.first(where: { $0.name == key }) else {
        add(.unknownApsKey, "aps." + key)
        continue
      }
      if !known.accepts(value.kind) {
        add(.unexpectedType, "aps." + key)
      } else if !Self.isDocumented(value, known, isActivity: aps?["event"]?.text != nil) {
        add(.unusualValue, "aps." + key)
      }
    }
    check(aps?["alert"], "aps.alert.", Self.alertForms)
    check(aps?["sound"], "aps.sound.", Self.soundForms)
  }

  private enum Form {
    /// An alert of a Live Activity names a key of the app's texts by an object.
    case text, textOrKey, texts, number, zeroOrOne, upToOne

    func oddity(of value: JSONTree) -> PayloadWarning? {
      switch self {
      case .text: value.kind == .string ? nil : .unexpectedType
      case .textOrKey: value.kind == .string || value.kind == .object ? nil : .unexpectedType
      case .texts: value.items?.allSatisfy { $0.kind == .string } == true ? nil : .unexpectedType
      case .number: value.kind == .number ? nil : .unexpectedType
      case .zeroOrOne: oddity(of: value.number) { $0 == 0 || $0 == 1 }
      case .upToOne: oddity(of: value.number) { (0...1).contains($0) }
      }
    }

    private func oddity(of number: Double?, _ isUsual: (Double) -> Bool) -> PayloadWarning? {
      number.map(isUsual).map { $0 ? nil : .unusualValue } ?? .unexpectedType
    }
  }

  /// Also the keys of earlier systems, and the sound of a Live Activity's alert (Apple, "Starting
  /// and updating Live Activities with ActivityKit push notifications").
  private static let alertForms: [String: Form] = [
    "title": .textOrKey, "subtitle": .textOrKey, "body": .textOrKey, "launch-image": .text,
    "title-loc-key": .text, "title-loc-args": .texts, "subtitle-loc-key": .text,
    "subtitle-loc-args": .texts, "loc-key": .text, "loc-args": .texts, "action": .text,
    "action-loc-key": .text, "summary-arg": .text, "summary-arg-count": .number, "sound": .text,
  ]
  private static let soundForms: [String: Form] = [
    "critical": .zeroOrOne, "name": .text, "volume": .upToOne,
  ]

  private mutating func check(_ object: JSONTree?, _ path: String, _ forms: [String: Form]) {
    for (key, value) in Self.members(of: object) {
      guard let form = forms[key] else {
        add(.unknownAlertKey, path + key)
        continue
      }
      if let oddity = form.oddity(of: value) { add(oddity, path + key) }
    }
  }

  private mutating func add(_ warning: PayloadWarning, _ path: String) {
    places[warning, default: []].append(path)
  }

  /// Of several with one key the last, as on the phone. `null` counts as absent.
  private static func members(of object: JSONTree?) -> [(key: String, value: JSONTree)] {
    guard case .object(let members)? = object?.value else { return [] }
    let last = Dictionary(members.indices.map { (members[$0].key, $0) }) { $1 }
    return members.indices.filter { last[members[$0].key] == $0 && members[$0].value.kind != .null }
      .map { members[$0] }
  }

  private static func isDocumented(_ value: JSONTree, _ key: ApsKey, isActivity: Bool) -> Bool {
    switch (key, value.number, value.text) {
    case (.badge, let number?, _): number >= 0 && number == number.rounded()
    case (.relevanceScore, let number?, _): isActivity || (0...1).contains(number)
    case (.interruptionLevel, _, let text?): PayloadScan.InterruptionLevel(rawValue: text) != nil
    case _: true
    }
  }
}
