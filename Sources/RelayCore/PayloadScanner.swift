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
  scan.noteLints()
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
          if hasMDM { scan.lints.insert(.duplicateKey) }
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
        if seen.contains(known) { scan.lints.insert(.duplicateKey) }
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
    lints = CaseSet(.duplicateKey)
  }

  /// Derives the notes from what counted in the end, so that a value that was replaced by a
  /// duplicate leaves none but `duplicateKey`.
  fileprivate mutating func noteLints() {
    if aps == .other { lints.insert(.apsNotObject) }
    if contentAvailable == .unusual { lints.insert(.contentAvailableUnusual) }
    if !unexpected.isEmpty { lints.insert(.unexpectedType) }
    if hasUnknownApsKey { lints.insert(.unknownApsKey) }
    if hasEmptyAlert { lints.insert(.emptyAlert) }
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
