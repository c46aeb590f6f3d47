import Primitives
package import RelayCore

extension UniqueID: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(word: high)
    writer.put(word: low)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(high: try reader.word(), low: try reader.word())
  }
}

extension DeviceID: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(value) }

  package init(from reader: inout ByteReader) throws(CodecError) { self.init(try reader.read()) }
}

/// Node and loop are one number, so that recordings of a single relay stay readable.
extension StreamAddress: BinaryCodable {
  static let mostBytes = 15

  package func write(to writer: inout ByteWriter) {
    guard !writer.isDigesting else { return writer.put(place, connection.value, stream) }
    writer.append(upTo: Self.mostBytes) { append(to: &$0) }
  }

  @inline(__always)
  func append(to output: inout OutputSpan<UInt8>) {
    output.append(varint: UInt64(place))
    output.append(varint: UInt64(connection.value))
    output.append(folded: Int64(stream))
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(
      place: try reader.read(), connection: ConnectionNumber(try reader.read()),
      stream: try reader.read())
  }
}

extension PartitionID: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(number) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(try reader.read(UInt16.self))
  }
}

extension SecretHash: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    let words = (writer.redactor?.pseudonym(of: self) ?? self).words
    writer.put(word: words.0)
    writer.put(word: words.1)
    writer.put(word: words.2)
    writer.put(word: words.3)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(words: (try reader.word(), try reader.word(), try reader.word(), try reader.word()))
  }
}

extension DeviceToken: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    let token = writer.redactor?.pseudonym(of: self) ?? self
    guard token.count == 32 else { return writer.put(bytes: token.bytes) }
    writer.put(varint: 32)
    let words = token.words
    writer.put(word: words.0.byteSwapped)
    writer.put(word: words.1.byteSwapped)
    writer.put(word: words.2.byteSwapped)
    writer.put(word: words.3.byteSwapped)
  }

  package init(from reader: inout ByteReader) throws(CodecError) { self = try reader.token() }
}

extension Topic: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    writer.put(tag: UInt8(bytes.count))
    writer.put(raw: bytes)
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self = try reader.topic()
    guard self != .vacant else { throw reader.invalid(Self.self) }
  }
}

extension OwnToken: Composite {
  package static let fields = Fields(Self.init, \.token, \.device, \.topic)
}

extension DeviceCredential: Composite {
  package static let fields = Fields(Self.init, \.device, \.secret)
}

extension NotificationClass: BinaryCodable {}
extension PushType: BinaryCodable {}
extension Priority: BinaryCodable {}
extension Via: BinaryCodable {}
extension Rejection: BinaryCodable {}
extension DeviceRefusal: BinaryCodable {}
extension CloseReason: BinaryCodable {}
extension BudgetLimit: BinaryCodable {}

extension Expiration: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .once: writer.put(tag: 0)
    case .at(let moment): writer.put(tag: 1, moment)
    }
  }

  package static let cases: Cases<Self> = [0: .just(.once), 1: .of(Self.at)]
}

/// Fields that are omitted when they follow from the notification before: a relay numbers its ids
/// in a row, and most pushes have the same app and lifetime.
struct LastNotification: Sendable {
  private(set) var uniqueID = UniqueID(high: 0, low: 0)
  private(set) var topic = Topic.vacant
  /// Milliseconds, of the last one that may be stored.
  private(set) var expiresAt: Int64 = 0

  mutating func remember(_ notification: Notification, isSameTopic: Bool) {
    uniqueID = notification.uniqueID
    if !isSameTopic { topic = notification.topic }
    if case .at(let moment) = notification.expiration { expiresAt = moment.milliseconds }
  }

  /// The first byte of a notification.
  struct Mark: OptionSet {
    let rawValue: UInt8
    static let silent = Mark(rawValue: 1)
    static let wakesApp = Mark(rawValue: 2)
    static let expires = Mark(rawValue: 4)
    /// The provider's id differs from the relay's.
    static let apnsID = Mark(rawValue: 8)
    /// The high word of the id follows.
    static let generator = Mark(rawValue: 16)
    static let topic = Mark(rawValue: 32)
    static let showsNothing = Mark(rawValue: 64)
    /// A fingerprint of the omitted parts follows.
    static let fingerprint = Mark(rawValue: 128)
    static let all: Mark = [
      .silent, .wakesApp, .expires, .apnsID, .generator, .topic, .showsNothing, .fingerprint,
    ]
  }
}

extension Notification: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    guard !writer.isDigesting else { return writer.put(uniqueID) }
    write(to: &writer, before: 0) { _ in }
    writer.put(payload: payload)
  }

  /// Everything but the payload, after `tag`, then at most `count` bytes by `more`, in one run.
  @inline(__always)
  func write(
    to writer: inout ByteWriter, behind tag: UInt8? = nil, before count: Int,
    _ more: (inout OutputSpan<UInt8>) -> Void
  ) {
    let token = writer.redactor?.pseudonym(of: token) ?? token
    let collapseIDCount = writer.redactor?.keepsCollapseIDs ?? true ? collapseID.count : 0
    let (lastID, lastExpiresAt) = (writer.last.uniqueID, writer.last.expiresAt)
    let fingerprint = writer.redactor?.fingerprint(of: self) ?? self.fingerprint
    var mark = mark(behind: writer.last)
    if fingerprint != 0 { mark.insert(.fingerprint) }
    let topicCount = mark.contains(.topic) ? topic.bytes.count &+ 1 : 0
    let room = 80 &+ token.count &+ topicCount &+ collapseIDCount &+ count
    writer.append(upTo: room) { output in
      if let tag { output.append(tag) }
      output.append(mark.rawValue)
      if mark.contains(.generator) { output.append(word: uniqueID.high) }
      output.append(folded: Int64(bitPattern: uniqueID.low &- lastID.low))
      if mark.contains(.apnsID) {
        output.append(word: apnsID.high)
        output.append(word: apnsID.low)
      }
      output.append(token)
      if mark.contains(.topic) {
        output.append(UInt8(topic.bytes.count))
        output.append(raw: topic.bytes)
      }
      output.append(pushType.rawValue)
      output.append(priority.rawValue)
      if case .at(let moment) = expiration {
        output.append(folded: moment.milliseconds &- lastExpiresAt)
      }
      output.append(varint: UInt64(collapseIDCount))
      if collapseIDCount > 0 { output.append(raw: collapseID) }
      if fingerprint != 0 { output.append(word: fingerprint) }
      more(&output)
    }
    writer.last.remember(self, isSameTopic: !mark.contains(.topic))
  }

  @inline(__always)
  private func mark(behind last: borrowing LastNotification) -> LastNotification.Mark {
    var mark: LastNotification.Mark = []
    if case .silent = notificationClass { mark.insert(.silent) }
    if wakesApp { mark.insert(.wakesApp) }
    if showsNothing { mark.insert(.showsNothing) }
    if apnsID.low != uniqueID.low || apnsID.high != uniqueID.high { mark.insert(.apnsID) }
    if uniqueID.high != last.uniqueID.high { mark.insert(.generator) }
    // Not `!=`, which is a dynamic lookup.
    if !(topic == last.topic) { mark.insert(.topic) }
    if case .at = expiration { mark.insert(.expires) }
    return mark
  }

  package convenience init(from reader: inout ByteReader) throws(CodecError) {
    let mark = LastNotification.Mark(rawValue: try reader.byte())
    let last = reader.last
    let high = mark.contains(.generator) ? try reader.word() : last.uniqueID.high
    let step = UInt64(bitPattern: try reader.read(Int64.self))
    let uniqueID = UniqueID(high: high, low: last.uniqueID.low &+ step)
    let apnsID = mark.contains(.apnsID) ? try reader.read(UniqueID.self) : uniqueID
    let token = try reader.read(DeviceToken.self)
    let topic = mark.contains(.topic) ? try reader.topic() : last.topic
    // One form for each value.
    guard LastNotification.Mark.all.isSuperset(of: mark),
      mark.contains(.generator) == (high != last.uniqueID.high),
      mark.contains(.apnsID) == (apnsID != uniqueID),
      mark.contains(.topic) == (topic != last.topic)
    else { throw reader.invalid(Notification.self) }
    let (pushType, priority) = (try reader.read(PushType.self), try reader.read(Priority.self))
    let expiration: Expiration =
      mark.contains(.expires)
      ? .at(Instant(milliseconds: last.expiresAt &+ (try reader.read(Int64.self)))) : .once
    let collapseID = try reader.byteString()
    let fingerprint = mark.contains(.fingerprint) ? try reader.word() : 0
    guard mark.contains(.fingerprint) == (fingerprint != 0) else {
      throw reader.invalid(Notification.self)
    }
    self.init(
      uniqueID: uniqueID, apnsID: apnsID, token: token, topic: topic,
      notificationClass: mark.contains(.silent) ? .silent : .visible, pushType: pushType,
      priority: priority, wakesApp: mark.contains(.wakesApp),
      showsNothing: mark.contains(.showsNothing), collapseID: collapseID, expiration: expiration,
      payload: try reader.payload(), fingerprint: fingerprint)
    reader.last.remember(self, isSameTopic: !mark.contains(.topic))
  }
}

extension DeliveryOutcome: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .newData: writer.put(tag: 0)
    case .noData: writer.put(tag: 1)
    case .failed: writer.put(tag: 2)
    case .notLaunched(let reason): writer.put(tag: 3, reason)
    case .later: writer.put(tag: 4)
    case .shown: writer.put(tag: 5)
    case .notShown(let reason): writer.put(tag: 6, reason)
    }
  }

  package static let cases: Cases<Self> = [
    0: .just(.newData), 1: .just(.noData), 2: .just(.failed), 3: .of(Self.notLaunched),
    4: .just(.later), 5: .just(.shown), 6: .of(Self.notShown),
  ]
}
