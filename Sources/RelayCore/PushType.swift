/// The values of `apns-push-type` (Apple, "Sending notification requests to APNs", and the
/// WidgetKit, ActivityKit and accessory pages). Their numbers are in journals, stripes and
/// recordings: never change one, append.
package enum PushType: UInt8, CaseIterable, Sendable {
  case alert = 0
  case background, voip, complication, fileprovider, mdm, liveactivity, location, pushtotalk
  case widgets, controls, accessory

  /// The exact name in lower case; nil for any other.
  package init?(wireName: Span<UInt8>) {
    guard let found = Self.table.find(PackedName(wireName, 0..<wireName.count)) else { return nil }
    self = found
  }

  /// The case's own name.
  package var wireName: String { "\(self)" }

  /// The topic's part after the bundle ID; empty also for `mdm`, whose topic is a certificate's.
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

  /// The longest allowed body (Apple, "Generating a remote notification").
  package var payloadLimitBytes: Int { self == .voip ? 5120 : 4096 }

  /// Whether the payload can make it silent; other types have their own handler on the device
  /// (docs/PROTOCOL.md, "What the relay makes of a notification").
  package var canBeSilent: Bool { self == .alert || self == .background }

  /// Not allowed with a client certificate (Apple, "Sending notification requests to APNs").
  package var requiresProviderToken: Bool { self == .location }

  /// Whether this priority is documented for the type (Apple, "Sending notification requests to
  /// APNs"). Others are accepted with a note.
  package func documents(_ priority: Priority) -> Bool {
    switch self {
    case .background: priority != .immediate
    case .liveactivity, .location: priority != .powerFirst
    case .alert, .voip, .complication, .fileprovider, .mdm, .pushtotalk, .widgets, .controls,
      .accessory:
      true
    }
  }

  /// Whether the topic ends with the type's suffix, after something.
  package func fits(topic: Span<UInt8>) -> Bool {
    let suffix = topicSuffix.utf8
    guard topic.count > suffix.count else { return false }
    // Backwards, as suffixes differ at their ends.
    var position = topic.count
    for byte in suffix.reversed() {
      position -= 1
      guard topic[position] == byte else { return false }
    }
    return true
  }

  /// The type of a push without the header (docs/PROTOCOL.md, "Where Apple's text is silent").
  ///
  /// First the topic's suffix, as before the header existed: it is the kind of token that the app
  /// has, whatever the payload asks for. Then the content: only asking for a background update is
  /// `background`; a lone `mdm` key; otherwise `alert`.
  package static func inferred(from scan: PayloadScan, topic: Span<UInt8>) -> PushType {
    if let type = suffixed(topic) { return type }
    if scan.contentAvailable == .one, !scan.hasVisibleKeys { return .background }
    return scan.hasMDM && scan.aps == .absent ? .mdm : .alert
  }

  /// The type whose suffix the topic has; nil for an ordinary bundle ID.
  package static func suffixed(_ topic: Span<UInt8>) -> PushType? {
    // The last component tells the suffixes apart.
    var start = topic.count
    while start > 0, topic[start - 1] != UInt8(ascii: ".") { start -= 1 }
    let type = lastComponents.find(PackedName(topic, start..<topic.count))
    return type?.topicSuffix.isEmpty == false && type?.fits(topic: topic) == true ? type : nil
  }

  /// Whether the topic is one that Apple documents for the type: a bundle ID, or that of an MDM
  /// certificate. Those with a suffix are checked by `fits`.
  func documents(topic: Span<UInt8>) -> Bool {
    switch self {
    case .alert, .background: return Self.suffixed(topic) == nil
    case .mdm:
      return topic.count > 15 && topic.extracting(0..<15).equals("com.apple.mgmt.")
    case .voip, .complication, .fileprovider, .liveactivity, .location, .pushtotalk, .widgets,
      .controls, .accessory:
      return true
    }
  }

  private static let table = NameTable<PushType>(name: \.wireName)
  private static let lastComponents = NameTable<PushType> { type in
    type.topicSuffix.split(separator: ".").last.map(String.init) ?? ""
  }
}

/// `apns-priority` (Apple, "Sending notification requests").
package enum Priority: UInt8, CaseIterable, Sendable {
  /// Power comes first: the device must not be woken for it.
  case powerFirst = 1
  /// Sent with regard to the device's power.
  case powerAware = 5
  /// Sent at once; the default without the header.
  case immediate = 10

  /// Exactly `1`, `5` or `10`; nil for any other (`BadPriority`).
  package init?(wireValue: Span<UInt8>) {
    switch (wireValue.count, wireValue.isEmpty ? 0 : wireValue[0]) {
    case (1, UInt8(ascii: "1")): self = .powerFirst
    case (1, UInt8(ascii: "5")): self = .powerAware
    case (2, UInt8(ascii: "1")) where wireValue[1] == UInt8(ascii: "0"): self = .immediate
    default: return nil
    }
  }
}
