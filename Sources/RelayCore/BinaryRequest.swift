/// A push of the binary provider API as in its frame (Apple, "Local and Remote Notification
/// Programming Guide", archived, "Binary Provider API" and "Legacy Notification Format").
package struct BinaryRequest: Hashable, Sendable {
  /// Repeated in error packets; nil in command 0.
  package var identifier: UInt32?
  package var token: DeviceToken
  package var payload: [UInt8]
  /// UNIX seconds; nil if the frame has none.
  package var expiration: UInt32?
  package var priority = Priority.immediate
}

/// An error in a frame, before its payload is parsed.
package enum BinaryFrameError: UInt8, CaseIterable, Error, Sendable {
  case unknownCommand
  case frameTooLong
  case itemCutOff
  case unknownItem
  case itemTwice
  case itemSize
  case badPriority
  case missingToken
  case missingPayload
  case tokenSize
  case payloadSize

  package var row: (status: BinaryStatus, rejection: Rejection, text: String) {
    switch self {
    case .unknownCommand:
      (.protocolError, .badRequestPayload, "a frame begins with another command than 0, 1 or 2")
    case .frameTooLong:
      (
        .protocolError, .payloadTooLarge,
        "a frame says that it has more than \(Limits.binaryFrameBytes) bytes"
      )
    case .itemCutOff:
      (.protocolError, .badRequestPayload, "an item goes on behind the end of its frame")
    case .unknownItem:
      (.protocolError, .badRequestPayload, "an item has another number than 1 to 5")
    case .itemTwice:
      (.protocolError, .badRequestPayload, "an item comes twice in one frame")
    case .itemSize:
      (
        .protocolError, .badRequestPayload,
        "identifier and expiration have four bytes, the priority has one"
      )
    case .badPriority:
      (.protocolError, .badPriority, "the priority is neither 10 nor 5")
    case .missingToken:
      (.missingDeviceToken, .missingDeviceToken, "the frame has no device token")
    case .missingPayload:
      (.missingPayload, .payloadEmpty, "the frame has no payload")
    case .tokenSize:
      (
        .invalidTokenSize, .badDeviceToken,
        "the device token has not \(Limits.binaryTokenBytes) bytes"
      )
    case .payloadSize:
      (
        .invalidPayloadSize, .payloadTooLarge,
        "the payload has more than \(Limits.binaryPayloadBytes) bytes, or "
          + "\(Limits.simplePayloadBytes) in commands 0 and 1"
      )
    }
  }
}

/// A frame that is no push.
package struct BinaryRefusal: Error, Equatable, Sendable {
  /// Nil if the frame has none or it could not be read.
  package var identifier: UInt32?
  package var problem: BinaryFrameError
}

/// Splits a stream of bytes into frames, in pieces of any size.
///
/// Lengths are checked as soon as they arrive, so a frame that is too long is refused at once,
/// except in command 2, whose identifier may follow the payload. So it buffers
/// `Limits.binaryFrameBytes` of one frame, and what the caller appends beyond.
package struct BinaryFrameReader: Sendable {
  private var bytes: [UInt8] = []
  /// Start of the next frame.
  private var start = 0

  package init() {}

  /// Buffered bytes of the next frames.
  package var count: Int { bytes.count - start }

  package mutating func append(_ more: some Collection<UInt8>) {
    bytes.removeSubrange(0..<start)
    start = 0
    bytes.append(contentsOf: more)
  }

  package mutating func clear() { self = BinaryFrameReader() }

  /// The next push; nil if more bytes are needed.
  package mutating func next() throws(BinaryRefusal) -> BinaryRequest? {
    guard let command = byte(0) else {
      // An idle connection holds no memory.
      clear()
      return nil
    }
    switch command {
    case 0: return try simple(at: 1, identifier: nil, expiration: nil)
    case 1:
      guard let identifier = word(1), let expiration = word(5) else { return nil }
      return try simple(at: 9, identifier: identifier, expiration: expiration)
    case 2:
      guard let length = word(1) else { return nil }
      guard length <= UInt32(Limits.binaryFrameBytes) else {
        throw BinaryRefusal(identifier: 0, problem: .frameTooLong)
      }
      guard count >= 5 + Int(length) else { return nil }
      let frame = bytes[(start + 5)..<(start + 5 + Int(length))]
      start += 5 + Int(length)
      return try Self.items(frame)
    default: throw BinaryRefusal(identifier: 0, problem: .unknownCommand)
    }
  }

  /// Commands 0 and 1, from the token's length on.
  private mutating func simple(
    at offset: Int, identifier: UInt32?, expiration: UInt32?
  ) throws(BinaryRefusal) -> BinaryRequest? {
    do throws(BinaryFrameError) {
      guard let tokenLength = length(offset) else { return nil }
      guard tokenLength > 0 else { throw .missingToken }
      guard tokenLength == Limits.binaryTokenBytes else { throw .tokenSize }
      let payloadOffset = offset + 2 + tokenLength
      guard let payloadLength = length(payloadOffset) else { return nil }
      guard payloadLength > 0 else { throw .missingPayload }
      guard payloadLength <= Limits.simplePayloadBytes else { throw .payloadSize }
      let end = payloadOffset + 2 + payloadLength
      guard count >= end else { return nil }
      let frame = bytes[start..<(start + end)]
      start += end
      let tokenBytes = frame.dropFirst(offset + 2).prefix(tokenLength)
      guard let token = DeviceToken(bytes: tokenBytes.span) else { throw .tokenSize }
      return BinaryRequest(
        identifier: identifier, token: token, payload: Array(frame.suffix(payloadLength)),
        expiration: expiration)
    } catch {
      throw BinaryRefusal(identifier: identifier, problem: error)
    }
  }

  /// Command 2. The first problem is reported, with the identifier from anywhere in the frame.
  private static func items(_ frame: ArraySlice<UInt8>) throws(BinaryRefusal) -> BinaryRequest {
    var rest = frame
    var seen: UInt8 = 0
    var identifier: UInt32 = 0
    var expiration: UInt32?
    var priority = Priority.immediate
    var token: ArraySlice<UInt8> = []
    var payload: ArraySlice<UInt8> = []
    var problem: BinaryFrameError?
    func report(_ found: BinaryFrameError) { problem = problem ?? found }
    while let number = rest.first {
      guard let length = number16(rest.dropFirst()), rest.count >= 3 + length else {
        report(.itemCutOff)
        break
      }
      let data = rest.dropFirst(3).prefix(length)
      rest = rest.dropFirst(3 + length)
      let mark: UInt8 = number < 8 ? 1 << number : 0
      if seen & mark != 0 { report(.itemTwice) }
      seen |= mark
      switch number {
      case 1: token = data
      case 2: payload = data
      case 3: if let value = number32(data) { identifier = value } else { report(.itemSize) }
      case 4: if let value = number32(data) { expiration = value } else { report(.itemSize) }
      case 5:
        if data.count != 1 { report(.itemSize) }
        switch data.first {
        case 10: priority = .immediate
        case 5: priority = .powerAware
        case nil: break
        case .some: report(.badPriority)
        }
      default: report(.unknownItem)
      }
    }
    if token.isEmpty { report(.missingToken) }
    if payload.isEmpty { report(.missingPayload) }
    let parsed = token.count == Limits.binaryTokenBytes ? DeviceToken(bytes: token.span) : nil
    if parsed == nil { report(.tokenSize) }
    if payload.count > Limits.binaryPayloadBytes { report(.payloadSize) }
    guard problem == nil, let parsed else {
      throw BinaryRefusal(identifier: identifier, problem: problem ?? .tokenSize)
    }
    return BinaryRequest(
      identifier: identifier, token: parsed, payload: Array(payload), expiration: expiration,
      priority: priority)
  }

  // MARK: Big-endian numbers

  private func byte(_ offset: Int) -> UInt8? { offset < count ? bytes[start + offset] : nil }

  private func length(_ offset: Int) -> Int? {
    Self.number16(bytes[min(start + offset, bytes.count)...])
  }

  private func word(_ offset: Int) -> UInt32? {
    Self.number32(bytes[min(start + offset, bytes.count)...].prefix(4))
  }

  private static func number16(_ bytes: ArraySlice<UInt8>) -> Int? {
    guard bytes.count >= 2 else { return nil }
    return Int(bytes[bytes.startIndex]) << 8 | Int(bytes[bytes.startIndex + 1])
  }

  private static func number32(_ bytes: ArraySlice<UInt8>) -> UInt32? {
    guard bytes.count == 4 else { return nil }
    return bytes.reduce(0) { $0 << 8 | UInt32($1) }
  }
}
