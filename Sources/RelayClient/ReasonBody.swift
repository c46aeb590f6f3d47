import RelayCore

/// The body of a refusal: `{"reason":"…"}`, from the provider API with a `timestamp` where a device
/// token has ended (Apple, "Handling notification responses from APNs"), from the device API with a
/// `message` for people.
package struct ReasonBody: Equatable, Sendable {
  package var reason: String
  package var message: String?
  /// UNIX milliseconds.
  package var timestamp: Int64?

  /// Nil when the bytes are not a JSON object with a `reason`.
  package init?(_ bytes: [UInt8]) {
    var reason: String?
    let span = bytes.span
    do {
      var cursor = try ObjectCursor(span)
      while let member = try cursor.next(span) {
        let value = String(decoding: bytes[member.text], as: UTF8.self)
        switch String(decoding: bytes[member.key], as: UTF8.self) {
        case "reason" where member.isString: reason = value
        case "message" where member.isString: message = value
        case "timestamp": timestamp = Int64(value)
        default: break
        }
      }
    } catch {
      return nil
    }
    guard let reason else { return nil }
    self.reason = reason
  }
}
