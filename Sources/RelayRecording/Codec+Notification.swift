import Primitives
import RelayCore

// Names and addresses, tokens and secrets, notifications.

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

/// Node and loop are one number, so that what a relay on its own has recorded is read as ever.
extension StreamAddress: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    guard !writer.isDigesting else { return writer.put(place, connection, stream) }
    writer.append(upTo: 30) { output in
      output.append(varint: UInt64(place))
      output.append(varint: UInt64(connection))
      output.append(folded: Int64(stream))
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(place: try reader.read(), connection: try reader.read(), stream: try reader.read())
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
    self.init(
      words: (
        try reader.word(), try reader.word(), try reader.word(), try reader.word()
      ))
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

  package init(from reader: inout ByteReader) throws(CodecError) { self = try reader.topic() }
}

extension OwnToken: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(token, device, topic) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(token: try reader.read(), device: try reader.read(), topic: try reader.read())
  }
}

extension DeviceCredential: BinaryCodable {
  package func write(to writer: inout ByteWriter) { writer.put(device, secret) }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self.init(device: try reader.read(), secret: try reader.read())
  }
}

extension NotificationClass: BinaryCodable {}
extension PushType: BinaryCodable {}
extension Priority: BinaryCodable {}
extension Via: BinaryCodable {}
extension Rejection: BinaryCodable {}
extension DeviceRefusal: BinaryCodable {}
extension CloseReason: BinaryCodable {}
extension BudgetLimit: BinaryCodable {}

extension Expiration: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .once: writer.put(tag: 0)
    case .at(let moment): writer.put(tag: 1, moment)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    self = try reader.read(Bool.self) ? .at(try reader.read()) : .once
  }
}

extension Notification: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    guard !writer.isDigesting else { return writer.put(uniqueID) }
    let redactor = writer.redactor
    let token = redactor?.pseudonym(of: token) ?? token
    writer.append(upTo: 192 + topic.bytes.count) { output in
      output.append(word: uniqueID.high)
      output.append(word: uniqueID.low)
      if apnsID == uniqueID {
        output.append(0)
      } else {
        output.append(1)
        output.append(word: apnsID.high)
        output.append(word: apnsID.low)
      }
      output.append(token)
      output.append(UInt8(topic.bytes.count))
      for byte in topic.bytes { output.append(byte) }
      output.append(notificationClass.rawValue)
      output.append(pushType.rawValue)
      output.append(priority.rawValue)
      output.append(wakesApp ? 1 : 0)
      switch expiration {
      case .once: output.append(0)
      case .at(let moment):
        output.append(1)
        output.append(folded: moment.milliseconds)
      }
    }
    writer.put(bytes: redactor?.collapseID(collapseID) ?? collapseID)
    writer.put(payload: payload)
  }

  package convenience init(from reader: inout ByteReader) throws(CodecError) {
    let uniqueID = try reader.read(UniqueID.self)
    let apnsID = try reader.read(UniqueID?.self)
    // One form for each value.
    guard apnsID != uniqueID else { throw reader.invalid(Notification.self) }
    let (token, topic) = (try reader.read(DeviceToken.self), try reader.read(Topic.self))
    let notificationClass = try reader.read(NotificationClass.self)
    let (pushType, priority) = (try reader.read(PushType.self), try reader.read(Priority.self))
    let wakesApp = try reader.read(Bool.self)
    let expiration = try reader.read(Expiration.self)
    self.init(
      uniqueID: uniqueID, apnsID: apnsID ?? uniqueID, token: token, topic: topic,
      notificationClass: notificationClass, pushType: pushType, priority: priority,
      wakesApp: wakesApp, collapseID: try reader.byteString(), expiration: expiration,
      payload: try reader.payload())
  }
}

extension DeliveryOutcome: BinaryCodable {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .newData: writer.put(tag: 0)
    case .noData: writer.put(tag: 1)
    case .failed: writer.put(tag: 2)
    case .notLaunched(let reason): writer.put(tag: 3, reason)
    case .later: writer.put(tag: 4)
    }
  }

  package init(from reader: inout ByteReader) throws(CodecError) {
    switch try reader.byte() {
    case 0: self = .newData
    case 1: self = .noData
    case 2: self = .failed
    case 3: self = .notLaunched(reason: try reader.read())
    case 4: self = .later
    default: throw reader.invalid(Self.self)
    }
  }
}
