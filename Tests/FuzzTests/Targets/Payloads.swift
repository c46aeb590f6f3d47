import Foundation

@testable import RelayCore

/// Payloads, by our scanner and by Foundation's reader of JSON: both take them or both refuse, and
/// what we found is there.
enum Payloads {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    let bytes = [UInt8](input)
    let scan: PayloadScan
    do throws(PayloadError) {
      scan = try scanPayload(bytes.span)
    } catch {
      return try check(bytes, refusedFor: error)
    }
    guard let root = read(bytes) as? [String: Any] else {
      // It has no place for 1e999, which is JSON.
      guard hasUnusualNumber(bytes) else {
        throw Finding("we take what JSONSerialization refuses")
      }
      return
    }
    try compare(scan, root, skipsNumbers: hasUnusualNumber(bytes))
  }

  private static func check(_ bytes: [UInt8], refusedFor error: PayloadError) throws(Finding) {
    switch error {
    case .empty:
      guard bytes.isEmpty else { throw Finding("these bytes are not empty") }
    case .notObject:
      if let value = read(bytes) {
        guard !(value is [String: Any]) else { throw Finding("this is an object") }
      } else {
        guard hasUnusualNumber(bytes) else { throw Finding("this is not even JSON") }
      }
    case .notJSON(let offset):
      guard (0...bytes.count).contains(offset) else { throw Finding("offset \(offset)") }
      guard isOtherText(bytes) || isTrailingComma(bytes, offset) || read(bytes) == nil else {
        throw Finding("we refuse at \(offset) what JSONSerialization takes")
      }
    case .tooDeep:
      guard bytes.count(where: { "[{".utf8.contains($0) }) > PayloadScanner.depthLimit else {
        throw Finding("that is not deep")
      }
    }
  }

  private static func compare(
    _ scan: PayloadScan, _ root: [String: Any], skipsNumbers: Bool
  ) throws(Finding) {
    func expect(_ isTrue: Bool, _ what: String) throws(Finding) {
      guard isTrue else { throw Finding("\(what) is wrong: \(scan)") }
    }
    let value = root["aps"].flatMap { $0 is NSNull ? nil : $0 }
    let aps = value as? [String: Any]
    try expect(scan.aps == (value == nil ? .absent : aps == nil ? .other : .object), "aps")
    try expect(scan.hasMDM == (root["mdm"].map { !($0 is NSNull) } ?? false), "mdm")
    let present = (aps ?? [:]).filter { !($0.value is NSNull) }
    for key in ApsKey.allCases {
      let kind = present[key.name].map(jsonKind)
      try expect(scan.keys.contains(key) == (kind != nil), key.name)
      let isUnexpected = kind.map { !key.accepts($0) } ?? false
      try expect(scan.unexpected.contains(key) == isUnexpected, "the kind of \(key.name)")
    }
    let names = Set(ApsKey.allCases.map(\.name))
    try expect(
      scan.hasUnknownApsKey == (aps ?? [:]).keys.contains { !names.contains($0) }, "unknown")
    let alert = present["alert"]
    let isEmpty = (alert as? String)?.isEmpty ?? (alert as? [String: Any])?.isEmpty ?? false
    try expect(scan.hasEmptyAlert == isEmpty, "empty alert")
    let event = present["event"].map { ($0 as? String).flatMap(named) ?? .other } ?? .absent
    try expect(scan.event == event, "event")
    guard !skipsNumbers else { return }
    let available: PayloadScan.ContentAvailable =
      switch present["content-available"] {
      case nil: .absent
      case let value? where jsonKind(value) != .number: .unusual
      case let number as NSNumber where number == 1: .one
      case let number as NSNumber where number == 0: .zero
      default: .unusual
      }
    try expect(scan.contentAvailable == available, "content-available")
    let mutable = present["mutable-content"]
    let isMutable = mutable.map { jsonKind($0) == .number && $0 as? NSNumber == 1 } ?? false
    try expect(scan.isMutable == isMutable, "mutable-content")
  }

  private static func named(_ name: String) -> PayloadScan.Event? {
    PayloadScan.Event.allCases.first { !$0.name.isEmpty && $0.name == name }
  }

  private static func jsonKind(_ value: Any) -> JSONKind {
    switch value {
    case is [String: Any]: .object
    case is [Any]: .array
    case is String: .string
    case let number as NSNumber where String(cString: number.objCType) == "c": .boolean
    case is NSNull: .null
    default: .number
    }
  }

  private static func read(_ bytes: [UInt8]) -> Any? {
    try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
  }

  /// What JSONSerialization reads although it is not UTF-8, or has a mark in front: it tells the
  /// encoding by zeros and marks (RFC 8259 section 8.1 forbids to send these).
  private static func isOtherText(_ bytes: [UInt8]) -> Bool {
    bytes.prefix(4).contains(0) || bytes.starts(with: [0xEF, 0xBB, 0xBF])
      || bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE])
  }

  /// A comma with nothing behind it, which JSONSerialization takes.
  private static func isTrailingComma(_ bytes: [UInt8], _ offset: Int) -> Bool {
    guard offset < bytes.count, "]}".utf8.contains(bytes[offset]) else { return false }
    return bytes[..<offset].last { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: ",")
  }

  /// Whether there is anything that may be a number with an exponent or more digits than a Double
  /// holds.
  private static func hasUnusualNumber(_ bytes: [UInt8]) -> Bool {
    var digits = 0
    for byte in bytes {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digits += 1
      case UInt8(ascii: "."): break
      case UInt8(ascii: "e"), UInt8(ascii: "E"):
        if digits > 0 { return true }
      default: digits = 0
      }
      if digits > 15 { return true }
    }
    return false
  }
}
