/// The kinds of notification that `apns-push-type` names (Apple, "Sending notification requests to
/// APNs", and the WidgetKit, ActivityKit and accessory pages).
///
/// Their numbers stand in journals, on stripes and in recordings: never change one, append.
package enum PushType: UInt8, CaseIterable, Sendable {
  case alert = 0
  case background, voip, complication, fileprovider, mdm, liveactivity, location, pushtotalk
  case widgets, controls, accessory

  /// The type that the header's value names: exactly, in lower case; nil for any other.
  package init?(wireName: Span<UInt8>) {
    guard let found = Self.table.find(PackedName(wireName, 0..<wireName.count)) else { return nil }
    self = found
  }

  /// The value in the header `apns-push-type`.
  package var wireName: String {
    switch self {
    case .alert: "alert"
    case .background: "background"
    case .voip: "voip"
    case .complication: "complication"
    case .fileprovider: "fileprovider"
    case .mdm: "mdm"
    case .liveactivity: "liveactivity"
    case .location: "location"
    case .pushtotalk: "pushtotalk"
    case .widgets: "widgets"
    case .controls: "controls"
    case .accessory: "accessory"
    }
  }

  /// What the topic has behind the bundle ID; empty when the topic is the bundle ID, and for `mdm`,
  /// whose topic is the UID of its certificate.
  package var topicSuffix: String {
    switch self {
    case .alert, .background, .mdm: ""
    case .voip: ".voip"
    case .complication: ".complication"
    case .fileprovider: ".pushkit.fileprovider"
    case .liveactivity: ".push-type.liveactivity"
    case .location: ".location-query"
    case .pushtotalk: ".voip-ptt"
    case .widgets: ".push-type.widgets"
    case .controls: ".push-type.controls"
    case .accessory: ".push-type.accessory"
    }
  }

  /// The longest body in bytes, this length included (Apple, "Generating a remote notification").
  package var payloadLimitBytes: Int { self == .voip ? 5120 : 4096 }

  /// Whether the payload of such a push can make it silent; the other types go to their own handler
  /// on the device and are never silent (docs/PROTOCOL.md, "What the relay makes of a
  /// notification").
  package var canBeSilent: Bool { self == .alert || self == .background }

  /// Whether only a provider token may send it, a client certificate not (Apple, "Sending
  /// notification requests to APNs").
  package var requiresProviderToken: Bool { self == .location }

  /// Whether the documentation names this priority for the type (Apple, "Sending notification
  /// requests to APNs"). A push with another one is accepted and noted.
  package func documents(_ priority: Priority) -> Bool {
    switch self {
    case .background: priority != .immediate
    case .liveactivity, .location: priority != .powerFirst
    case .alert, .voip, .complication, .fileprovider, .mdm, .pushtotalk, .widgets, .controls,
      .accessory:
      true
    }
  }

  /// Whether the topic has the form that the type asks for: its suffix behind something.
  package func fits(topic: Span<UInt8>) -> Bool {
    let suffix = topicSuffix.utf8
    guard topic.count > suffix.count else { return false }
    // Backwards, because the suffixes of different types differ at their ends.
    var position = topic.count
    for byte in suffix.reversed() {
      position -= 1
      guard topic[position] == byte else { return false }
    }
    return true
  }

  /// The type of a push whose header is missing (docs/PROTOCOL.md, "Where Apple's text is silent"),
  /// from payload and topic.
  ///
  /// Content decides first: what only asks for a background update is `background`, whatever the
  /// bundle ID ends in. Then the topic's suffix names the type, as it did before the header
  /// existed; then a lone `mdm` key; all else is `alert`.
  package static func inferred(from scan: PayloadScan, topic: Span<UInt8>) -> PushType {
    if scan.contentAvailable == .one, !scan.hasVisibleKeys { return .background }
    // The last component tells the suffixes apart; an ordinary bundle ID has none of them.
    var start = topic.count
    while start > 0, topic[start - 1] != UInt8(ascii: ".") { start -= 1 }
    let component = PackedName(topic, start..<topic.count)
    if let type = lastComponents.find(component), type.fits(topic: topic) { return type }
    return scan.hasMDM && scan.aps == .absent ? .mdm : .alert
  }

  private static let table = NameTable<PushType>(name: \.wireName)
  private static let lastComponents = NameTable<PushType> { type in
    type.topicSuffix.split(separator: ".").last.map(String.init) ?? ""
  }
}

/// How urgent a push is: `apns-priority` (Apple, "Sending notification requests").
package enum Priority: UInt8, CaseIterable, Sendable {
  /// 1: power comes first, the device must not be woken for it.
  case powerFirst = 1
  /// 5: sent with regard to the device's power.
  case powerAware = 5
  /// 10: sent at once; also what a missing header means.
  case immediate = 10

  /// The priority that the header's value names, exactly `1`, `5` or `10`; nil for any other
  /// (`BadPriority`).
  package init?(wireValue: Span<UInt8>) {
    switch (wireValue.count, wireValue.isEmpty ? 0 : wireValue[0]) {
    case (1, UInt8(ascii: "1")): self = .powerFirst
    case (1, UInt8(ascii: "5")): self = .powerAware
    case (2, UInt8(ascii: "1")) where wireValue[1] == UInt8(ascii: "0"): self = .immediate
    default: return nil
    }
  }
}
