import Primitives

@testable import RelayCore

/// What a provider of the binary API sends: cut into the same pushes whatever pieces it comes in,
/// never more kept than a frame may have, nothing taken behind a refusal; and what was taken keeps
/// to its limits and can be found in the bytes.
enum BinaryFrames {
  private static let now = Instant(unixSeconds: 1_767_225_600)

  private enum Found: Equatable {
    case push(BinaryRequest)
    case end([UInt8])
  }

  /// The first byte says how long the pieces are, and which push the shard refuses.
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    guard let first = input.first else { return }
    let bytes = [UInt8](input.dropFirst())
    let refused = first & 0x80 == 0 ? nil : 2
    let whole = try converse(bytes, pieces: max(1, bytes.count), refused)
    guard try converse(bytes, pieces: Int(first & 0x7F) + 1, refused) == whole else {
      throw Finding("in pieces it is another conversation")
    }
    for case .push(let request) in whole { try check(request) }
  }

  private static func converse(
    _ bytes: [UInt8], pieces count: Int, _ refused: Int?
  ) throws(Finding) -> [Found] {
    var conversation = BinaryConversation(at: now)
    var found: [Found] = []
    for start in stride(from: 0, to: bytes.count, by: count) {
      conversation.receive(bytes[start..<min(bytes.count, start + count)])
      steps: while true {
        switch conversation.next(at: now) {
        case .wait: break steps
        case .judge(let request):
          found.append(.push(request))
          guard conversation.next(at: now) == .wait else {
            throw Finding("a second one was taken before the verdict")
          }
          let rejection: Rejection? = found.count == refused ? .badDeviceToken : nil
          if let ending = conversation.judged(rejection, at: now) {
            found.append(.end(ending.packet))
          }
        case .refuse(_, let ending), .end(let ending): found.append(.end(ending.packet))
        }
      }
    }
    let ends = found.indices.filter { if case .end = found[$0] { true } else { false } }
    guard ends.isEmpty || ends == [found.count - 1] else {
      throw Finding("it went on behind its end: \(found)")
    }
    guard !ends.isEmpty || conversation.wantsBytes else { throw Finding("it wants no more bytes") }
    return found
  }

  private static func check(_ request: BinaryRequest) throws(Finding) {
    guard request.token.count == Limits.binaryTokenBytes,
      (1...Limits.binaryPayloadBytes).contains(request.payload.count),
      request.priority != .powerFirst
    else { throw Finding("beyond its limits: \(request)") }
    var head = ProviderRequestHead(request)
    var warnings = CaseSet<PayloadWarning>()
    let notification: Notification
    do throws(Rejection) {
      notification = try head.notification(
        topic: .vacant, body: request.payload, uniqueID: UniqueID(generator: 1, number: 1),
        isStrict: false, at: now, warnings: &warnings)
    } catch {
      guard error == .badRequestPayload else { throw Finding("refused for \(error)") }
      return
    }
    guard notification.token == request.token, notification.payload == request.payload,
      !warnings.contains(.pushTypeInferred)
    else { throw Finding("another notification: \(notification)") }
  }
}
