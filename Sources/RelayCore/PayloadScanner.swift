/// Reads a payload in one strict pass: no copy, no allocation, no recursion.
///
/// The text must be JSON by RFC 8259 in UTF-8 and nothing else: no byte order mark, no trailing
/// bytes, no control characters in strings. Beyond the grammar a lone surrogate escape (`"\ud800"`)
/// is refused, because it names no character and the readers on phones refuse it too. Keys are
/// compared after unescaping.
///
/// Only the keys that the relay reads (`aps`, `mdm` and the documented keys of `aps`) are checked
/// for duplicates: to know all would need memory by the size of the payload.
///
/// - Parameter bytes: the whole body; the caller has checked its length (Apple, "Generating a
///   remote notification").
/// - Returns: what the payload holds.
/// - Throws: `PayloadError` for anything that is not one JSON object.
package func scanPayload(_ bytes: Span<UInt8>) throws(PayloadError) -> PayloadScan {
  guard !bytes.isEmpty else { throw .empty }
  let start = JSONGrammar.skipSpace(bytes, from: 0)
  guard JSONGrammar.byte(bytes, at: start) == UInt8(ascii: "{") else {
    try JSONGrammar.expectEnd(bytes, from: JSONGrammar.skipValue(bytes, from: start, depth: 0))
    throw .notObject
  }
  var scan = PayloadScan()
  let names = PayloadNames.shared
  let end = try PayloadScanner.scanRoot(bytes, from: start &+ 1, names, into: &scan)
  try JSONGrammar.expectEnd(bytes, from: end)
  scan.noteWarnings()
  return scan
}

/// The parts of `scanPayload`. Each takes the position where it starts and returns the position
/// behind what it read.
enum PayloadScanner {
  /// How many objects and arrays may be open at once, the root included. The grammar remembers each
  /// as one bit of a word, so that it can never be more than 64.
  static var depthLimit: Int { min(Limits.payloadDepth, UInt64.bitWidth) }

  /// The members of the root object; `position` is behind its brace.
  static func scanRoot(
    _ bytes: Span<UInt8>, from start: Int, _ names: PayloadNames,
    into scan: inout PayloadScan
  ) throws(PayloadError) -> Int {
    var position = JSONGrammar.skipSpace(bytes, from: start)
    if JSONGrammar.byte(bytes, at: position) == UInt8(ascii: "}") { return position &+ 1 }
    var hasAps = false
    var hasMDM = false
    while true {
      let key = try JSONGrammar.memberKey(bytes, from: position)
      if key.name == names.aps {
        if hasAps { scan.forgetAps() }
        hasAps = true
        position = try scanAps(bytes, from: key.end, names, into: &scan)
      } else {
        if key.name == names.mdm {
          if hasMDM { scan.warnings.insert(.duplicateKey) }
          hasMDM = true
          scan.hasMDM = JSONGrammar.kind(bytes, at: key.end) != .null
        }
        position = try JSONGrammar.skipValue(bytes, from: key.end, depth: 1)
      }
      let next = try JSONGrammar.memberEnd(bytes, from: position)
      position = next.end
      if next.isLast { return position }
    }
  }

  /// The value of `aps`.
  private static func scanAps(
    _ bytes: Span<UInt8>, from start: Int, _ names: PayloadNames,
    into scan: inout PayloadScan
  ) throws(PayloadError) -> Int {
    guard JSONGrammar.byte(bytes, at: start) == UInt8(ascii: "{") else {
      scan.aps = JSONGrammar.kind(bytes, at: start) == .null ? .absent : .other
      return try JSONGrammar.skipValue(bytes, from: start, depth: 1)
    }
    scan.aps = .object
    var position = JSONGrammar.skipSpace(bytes, from: start &+ 1)
    if JSONGrammar.byte(bytes, at: position) == UInt8(ascii: "}") { return position &+ 1 }
    var seen = CaseSet<ApsKey>()
    while true {
      let key = try JSONGrammar.memberKey(bytes, from: position)
      let end = try JSONGrammar.skipValue(bytes, from: key.end, depth: 2)
      if let known = names.apsKeys.find(key.name) {
        if seen.contains(known) { scan.warnings.insert(.duplicateKey) }
        seen.insert(known)
        scan.note(known, bytes, value: key.end..<end)
      } else {
        scan.hasUnknownApsKey = true
      }
      let next = try JSONGrammar.memberEnd(bytes, from: end)
      position = next.end
      if next.isLast { return position }
    }
  }
}

/// The names that a scan looks for. Fetched once per scan: a lazily built static costs a call each
/// time it is touched.
final class PayloadNames: Sendable {
  static let shared = PayloadNames()

  let aps = PackedName("aps")
  let mdm = PackedName("mdm")
  let apsKeys = NameTable<ApsKey>(name: \.name)
  let events = NameTable<PayloadScan.Event>(name: \.name)
}

extension PayloadScan {
  /// Notes a documented key of `aps`, whose value is the valid JSON text `bytes[value]`.
  @inline(__always)
  fileprivate mutating func note(_ key: ApsKey, _ bytes: Span<UInt8>, value: Range<Int>) {
    let kind = JSONGrammar.kind(bytes, at: value.lowerBound)
    keys.set(key, to: kind != .null)
    unexpected.set(key, to: kind != .null && !key.accepts(kind))
    switch key {
    case .alert: hasEmptyAlert = JSONGrammar.isEmpty(bytes, in: value)
    case .contentAvailable:
      contentAvailable =
        switch kind {
        case .null: .absent
        case .number: ContentAvailable(JSONGrammar.smallNumber(bytes, in: value))
        case .object, .array, .string, .boolean: .unusual
        }
    case .mutableContent:
      isMutable = kind == .number && JSONGrammar.smallNumber(bytes, in: value) == .one
    case .event:
      event =
        switch kind {
        case .null: .absent
        case .string: PayloadNames.shared.events.find(JSONGrammar.name(bytes, in: value)) ?? .other
        case .object, .array, .number, .boolean: .other
        }
    case .badge, .sound, .threadID, .category, .targetContentID, .interruptionLevel,
      .relevanceScore, .filterCriteria, .staleDate, .contentState, .timestamp, .dismissalDate,
      .attributesType, .attributes, .inputPushToken, .inputPushChannel, .contentChanged,
      .encryptedData, .sessionIdentifier, .keyID, .messageIndex, .urlArguments:
      break
    }
  }

  /// Back to the state before the first `aps`, which the second one replaces as a whole.
  fileprivate mutating func forgetAps() {
    let kept = self
    self = PayloadScan()
    hasMDM = kept.hasMDM
    warnings = CaseSet(.duplicateKey)
  }

  /// Derives the notes from what counted in the end, so that a value that was replaced by a
  /// duplicate leaves none but `duplicateKey`.
  fileprivate mutating func noteWarnings() {
    if aps == .other { warnings.insert(.apsNotObject) }
    if contentAvailable == .unusual { warnings.insert(.contentAvailableUnusual) }
    if !unexpected.isEmpty { warnings.insert(.unexpectedType) }
    if hasUnknownApsKey { warnings.insert(.unknownApsKey) }
    if hasEmptyAlert { warnings.insert(.emptyAlert) }
  }
}

extension PayloadScan.ContentAvailable {
  fileprivate init(_ number: JSONGrammar.SmallNumber) {
    switch number {
    case .zero: self = .zero
    case .one: self = .one
    case .other: self = .unusual
    }
  }
}

/// What one pass over a payload found: all that the relay ever needs to know about its content.
///
/// A key whose value is `null` counts as not there: clients in the field send `null` for keys they
/// did not set (docs/PROTOCOL.md, "What clients in the field send"). When a key occurs twice the
/// last one counts, as it does for the JSON readers on the phone.
package struct PayloadScan: Equatable, Sendable {
  /// What stands under `aps`.
  package enum Aps: UInt8, CaseIterable, Sendable {
    /// No such key, or `null`.
    case absent
    case object
    /// A string, number, boolean or array: ignored, noted as `PayloadWarning.apsNotObject`.
    case other
  }

  /// The value of `aps.content-available`.
  package enum ContentAvailable: UInt8, CaseIterable, Sendable {
    case absent
    /// A number equal to 1, however it is written: `1`, `1.0`, `10e-1`.
    case one
    /// A number equal to 0.
    case zero
    /// Anything else (`true`, `"1"`, `2`). It is not documented whether these wake an app, so they
    /// do not count as 1 and are noted as `PayloadWarning.contentAvailableUnusual` (Apple, "Pushing
    /// background updates to your App").
    case unusual
  }

  /// The value of `aps.event` of a Live Activity (ActivityKit push article).
  package enum Event: UInt8, CaseIterable, Sendable {
    case absent, start, update, end
    /// Another string or another type.
    case other

    /// The string in JSON; empty for the cases that have none.
    package var name: String {
      switch self {
      case .absent, .other: ""
      case .start: "start"
      case .update: "update"
      case .end: "end"
      }
    }
  }

  package internal(set) var aps = Aps.absent
  /// The documented keys of `aps` that are there and not `null`.
  package internal(set) var keys = CaseSet<ApsKey>()
  /// Those among `keys` whose value is of a kind that is not documented for them.
  package internal(set) var unexpected = CaseSet<ApsKey>()
  package internal(set) var contentAvailable = ContentAvailable.absent
  package internal(set) var event = Event.absent
  /// Whether `aps.mutable-content` is 1.
  package internal(set) var isMutable = false
  /// Whether the root holds `mdm` (the PushMagic string of device management).
  package internal(set) var hasMDM = false
  /// Whether `aps` holds a key that is not documented.
  package internal(set) var hasUnknownApsKey = false
  /// Whether `aps.alert` is `""` or `{}`.
  package internal(set) var hasEmptyAlert = false
  /// Notes on the payload alone.
  package internal(set) var warnings = CaseSet<PayloadWarning>()

  /// Whether the payload has something to show or sound: one of alert, sound, badge. Their mere
  /// presence counts: an empty alert is a visible key too (noted as `PayloadWarning.emptyAlert`),
  /// and badge 0 is one that clears the badge.
  package var hasVisibleKeys: Bool { keys.intersects(Self.visibleKeys) }

  /// Whether anything of it shows, sounds or badges: an alert that says nothing does not.
  package var isNoticed: Bool {
    hasEmptyAlert ? keys.contains(.badge) || keys.contains(.sound) : hasVisibleKeys
  }

  static var visibleKeys: CaseSet<ApsKey> {
    CaseSet(.alert).union(CaseSet(.sound)).union(CaseSet(.badge))
  }
}

/// Why a body is not a payload. All are the provider's mistakes, and answers, never traps.
package enum PayloadError: Error, Equatable, Sendable {
  /// No bytes at all (`PayloadEmpty`).
  case empty
  /// Not JSON by RFC 8259; the text stops making sense at this byte, its length if it is cut off.
  case notJSON(offset: Int)
  /// JSON, but not an object.
  case notObject
  /// More nested objects and arrays than `PayloadScanner.depthLimit`.
  case tooDeep

  /// Where a text stops being JSON, both from 1, the column in characters; nil when all of it is
  /// meant.
  package func place(in bytes: [UInt8]) -> (line: Int, column: Int)? {
    guard case .notJSON(let offset) = self else { return nil }
    let before = bytes.prefix(offset).split(
      separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    // Bytes that continue a character of UTF-8 are 10xxxxxx (RFC 3629 section 3).
    return (before.count, 1 + (before.last ?? []).count { $0 & 0xC0 != 0x80 })
  }
}
