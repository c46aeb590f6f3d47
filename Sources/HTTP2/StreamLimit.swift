/// How many streams a client may have at once (RFC 9113 section 5.1.2): what it has acknowledged
/// last, or more that it has been told since and may know of already. Before its first
/// acknowledgement nothing is enforced here: it may not have read our SETTINGS.
struct StreamLimit {
  /// Told and not acknowledged, in order.
  private var announced: [UInt32] = []
  private var acknowledgedValue: UInt32?
  private var limit = Int.max

  /// Whether so many streams may be open.
  @inline(__always)
  func allows(_ count: Int) -> Bool { count <= limit }

  /// SETTINGS with this number leave.
  mutating func announced(_ value: UInt32) {
    announced.append(value)
    update()
  }

  /// The client has acknowledged the oldest SETTINGS.
  mutating func acknowledged() {
    guard !announced.isEmpty else { return }
    acknowledgedValue = announced.removeFirst()
    update()
  }

  private mutating func update() {
    guard let acknowledgedValue else { return }
    limit = Int(announced.reduce(acknowledgedValue, max))
  }
}
