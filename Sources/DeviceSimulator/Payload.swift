import RelayCore

/// A posted payload: its bytes, and what a phone reads in them.
///
/// ```swift
/// simulation.push(.alert("Lunch?"), to: messenger)
/// simulation.push(.silent, to: messenger)
/// simulation.push(#"{"aps":{"badge":3}}"#, to: messenger)
/// ```
public struct Payload: Hashable, Sendable, ExpressibleByStringLiteral {
  public let bytes: [UInt8]
  let alert: String?
  let badge: Int?
  let hasSound: Bool
  /// `content-available: 1`.
  let wakesApp: Bool

  /// Any bytes: the relay refuses what is no payload, as it would over the network.
  public init(bytes: [UInt8]) {
    self.bytes = bytes
    let root = try? JSONTree.read(bytes)
    let scan = try? scanPayload(bytes.span)
    let aps = root?["aps"]
    alert = aps?["alert"].flatMap(Self.alertText)
    if case .number(let number)? = aps?["badge"]?.value, abs(number) < 1_000_000_000 {
      badge = Int(number)
    } else {
      badge = nil
    }
    // Of a Live Activity's it is inside the alert.
    hasSound = scan?.keys.contains(.sound) ?? false || aps?["alert"]?["sound"] != nil
    wakesApp = scan?.contentAvailable == .one
  }

  public init(stringLiteral text: String) { self.init(json: text) }

  public init(json text: String) { self.init(bytes: Array(text.utf8)) }

  /// With `wakesApp` the app is woken before the user sees the alert.
  public static func alert(_ text: String, wakesApp: Bool = false) -> Payload {
    let wake = wakesApp ? #","content-available":1"# : ""
    return Payload(json: #"{"aps":{"alert":\#(quoted(text))\#(wake)}}"#)
  }

  /// Only `content-available`.
  public static let silent = Payload(json: #"{"aps":{"content-available":1}}"#)

  /// The banner's text: the alert, or title, subtitle and body; for a localized one the key, which
  /// a Live Activity has in an object of its own (Apple, "Generating a remote notification";
  /// ActivityKit, "Starting and updating Live Activities with ActivityKit push notifications").
  private static func alertText(_ alert: JSONTree) -> String? {
    switch alert.value {
    case .text(let text): return text.isEmpty ? nil : text
    case .object:
      let parts = [
        ["title", "title-loc-key"], ["subtitle", "subtitle-loc-key"], ["body", "loc-key"],
      ].compactMap { keys in
        keys.lazy.compactMap { alert[$0]?.text ?? alert[$0]?["loc-key"]?.text }.first
      }
      return parts.isEmpty ? nil : parts.joined(separator: ": ")
    case .list, .number, .flag, .null: return nil
    }
  }
}

/// JSON string (RFC 8259, section 7).
func quoted(_ text: String) -> String {
  var quoted = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"": quoted += "\\\""
    case "\\": quoted += "\\\\"
    case "\n": quoted += "\\n"
    case _ where scalar.value < 0x20:
      let digits = String(scalar.value, radix: 16)
      quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    default: quoted.unicodeScalars.append(scalar)
    }
  }
  return quoted + "\""
}
