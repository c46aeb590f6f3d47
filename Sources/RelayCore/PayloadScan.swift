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
    /// A string, number, boolean or array: ignored, noted as `Lint.apsNotObject`.
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
    /// do not count as 1 and are noted as `Lint.contentAvailableUnusual` (Apple, "Pushing
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
  package internal(set) var lints = CaseSet<Lint>()

  /// Whether the payload has something to show or sound: one of alert, sound, badge. Their mere
  /// presence counts: an empty alert is a visible key too (noted as `Lint.emptyAlert`), and badge 0
  /// is one that clears the badge.
  package var hasVisibleKeys: Bool { keys.intersects(Self.visibleKeys) }

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
}
