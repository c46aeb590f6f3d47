/// Reads a payload in one strict pass: no copy, no allocation, no recursion.
///
/// The text must be JSON by RFC 8259 in UTF-8 and nothing else: no byte order mark, no trailing
/// bytes, no control characters in strings. A lone surrogate escape (`"\ud800"`) is also refused,
/// as phones do. Keys are compared after unescaping.
///
/// Only the keys that the relay reads (`aps`, `mdm` and the documented keys of `aps`) are checked
/// for duplicates: all would need memory by the payload's size. The caller has checked the length
/// (Apple, "Generating a remote notification").
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
  scan.addWarnings()
  return scan
}

/// The parts of `scanPayload`, each from a start position to the position after what it read.
enum PayloadScanner {
  /// Open objects and arrays, the root included. The grammar keeps one bit of a word for each.
  static var depthLimit: Int { min(Limits.payloadDepth, UInt64.bitWidth) }

  /// The root's members, from after its brace.
  static func scanRoot(
    _ bytes: Span<UInt8>, from start: Int, _ names: PayloadNames, into scan: inout PayloadScan
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

  private static func scanAps(
    _ bytes: Span<UInt8>, from start: Int, _ names: PayloadNames, into scan: inout PayloadScan
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
        scan.record(known, bytes, value: key.end..<end)
      } else {
        scan.hasUnknownApsKey = true
      }
      let next = try JSONGrammar.memberEnd(bytes, from: end)
      position = next.end
      if next.isLast { return position }
    }
  }
}

/// Fetched once per scan: each access to a lazy static costs a call.
final class PayloadNames: Sendable {
  static let shared = PayloadNames()

  let aps = PackedName("aps")
  let mdm = PackedName("mdm")
  let apsKeys = NameTable<ApsKey>(name: \.name)
  let events = NameTable<PayloadScan.Event>(name: \.name)
  let levels = NameTable<PayloadScan.InterruptionLevel>(name: \.rawValue)
}

extension PayloadScan {
  /// Records a documented key of `aps` with its valid value `bytes[value]`.
  @inline(__always)
  fileprivate mutating func record(_ key: ApsKey, _ bytes: Span<UInt8>, value: Range<Int>) {
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
    case .staleDate, .timestamp, .dismissalDate:
      // Twelve digits of seconds are beyond the year 5000.
      let digits = value.prefix(12)
      let isLong =
        digits.count == 12
        && digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[$0]) }
      if kind == .number, isLong { hasDateInMilliseconds = true }
    case .badge:
      unusual.set(key, to: kind == .number && bytes[value.lowerBound] == UInt8(ascii: "-"))
    case .interruptionLevel:
      let levels = PayloadNames.shared.levels
      let isUnknown = kind == .string && levels.find(JSONGrammar.name(bytes, in: value)) == nil
      unusual.set(key, to: isUnknown)
    case .sound, .threadID, .category, .targetContentID, .relevanceScore, .filterCriteria,
      .contentState,
      .attributesType, .attributes, .inputPushToken, .inputPushChannel, .contentChanged,
      .encryptedData, .sessionIdentifier, .keyID, .messageIndex, .urlArguments:
      break
    }
  }

  /// Resets to before the first `aps`, which the second one replaces.
  fileprivate mutating func forgetAps() {
    let kept = self
    self = PayloadScan()
    hasMDM = kept.hasMDM
    warnings = CaseSet(.duplicateKey)
  }

  /// Derives warnings last: a value replaced by a duplicate leaves only `duplicateKey`.
  fileprivate mutating func addWarnings() {
    if aps == .other { warnings.insert(.apsNotObject) }
    if contentAvailable == .unusual { warnings.insert(.contentAvailableUnusual) }
    if !unexpected.isEmpty { warnings.insert(.unexpectedType) }
    if !unusual.isEmpty { warnings.insert(.unusualValue) }
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

/// Everything the relay needs to know about a payload's content.
///
/// A `null` value counts as absent: clients in the field send `null` for keys they did not set
/// (docs/PROTOCOL.md, "What clients in the field send"). Of duplicate keys the last one counts, as
/// for the JSON readers on the phone.
package struct PayloadScan: Equatable, Sendable {
  /// How a visible push interrupts its user (Apple, "Generating a remote notification").
  package enum InterruptionLevel: String, CaseIterable, Sendable {
    case passive, active, critical
    case timeSensitive = "time-sensitive"
  }

  package enum Aps: UInt8, CaseIterable, Sendable {
    /// No such key, or `null`.
    case absent
    case object
    /// A string, number, boolean or array: ignored, see `PayloadWarning.apsNotObject`.
    case other
  }

  package enum ContentAvailable: UInt8, CaseIterable, Sendable {
    case absent
    /// A number equal to 1 in any spelling: `1`, `1.0`, `10e-1`.
    case one
    case zero
    /// Anything else (`true`, `"1"`, `2`). Undocumented, so not counted as 1; see
    /// `PayloadWarning.contentAvailableUnusual` (Apple, "Pushing background updates to your App").
    case unusual
  }

  /// `aps.event` of a Live Activity (ActivityKit push article).
  package enum Event: UInt8, CaseIterable, Sendable {
    case absent, start, update, end
    /// Another string or another type.
    case other

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
  /// Documented keys of `aps` that are not `null`.
  package internal(set) var keys = CaseSet<ApsKey>()
  /// Those of `keys` whose value has an undocumented type.
  package internal(set) var unexpected = CaseSet<ApsKey>()
  /// Keys whose value is of the documented type, and none of the documented ones.
  package internal(set) var unusual = CaseSet<ApsKey>()
  /// A date of a Live Activity is not in seconds.
  package internal(set) var hasDateInMilliseconds = false
  package internal(set) var contentAvailable = ContentAvailable.absent
  package internal(set) var event = Event.absent
  package internal(set) var isMutable = false
  /// The PushMagic string of device management.
  package internal(set) var hasMDM = false
  package internal(set) var hasUnknownApsKey = false
  /// `""` or `{}`.
  package internal(set) var hasEmptyAlert = false
  /// Notes on the payload alone.
  package internal(set) var warnings = CaseSet<PayloadWarning>()

  /// One of alert, sound, badge, by presence: an empty alert counts too
  /// (`PayloadWarning.emptyAlert`), and badge 0 clears the badge.
  package var hasVisibleKeys: Bool { keys.intersects(Self.visibleKeys) }

  /// As `hasVisibleKeys`, but an empty alert does not count.
  package var isNoticed: Bool {
    hasEmptyAlert ? keys.contains(.badge) || keys.contains(.sound) : hasVisibleKeys
  }

  static var visibleKeys: CaseSet<ApsKey> {
    CaseSet(.alert).union(CaseSet(.sound)).union(CaseSet(.badge))
  }
}

/// Why a body is not a payload; always the provider's mistake.
package enum PayloadError: Error, Equatable, Sendable {
  /// Answered `PayloadEmpty`.
  case empty
  /// Not JSON by RFC 8259; `offset` is the first wrong byte, or the length if it is cut off.
  case notJSON(offset: Int)
  case notObject
  /// More nested objects and arrays than `PayloadScanner.depthLimit`.
  case tooDeep

  /// Where the text stops being JSON, from 1, the column in characters; nil for the whole text.
  package func place(in bytes: [UInt8]) -> (line: Int, column: Int)? {
    guard case .notJSON(let offset) = self else { return nil }
    let before = bytes.prefix(offset).split(
      separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    // UTF-8 continuation bytes are 10xxxxxx (RFC 3629 section 3).
    return (before.count, 1 + (before.last ?? []).count { $0 & 0xC0 != 0x80 })
  }
}
