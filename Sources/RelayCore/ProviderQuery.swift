/// What a provider may ask besides pushing. Ours, not Apple's: Apple shows the same in a console
/// (Apple, "Viewing the status of push notifications using Metrics and APNs") and used to have a
/// feedback service.
package enum ProviderQuery: Hashable, Sendable {
  /// `GET /v1/notifications/{id}`: the life of the one with this unique id or `apns-id`.
  case notification(UniqueID)
  /// `GET /v1/feedback?since=CURSOR`: the tokens that were unregistered since.
  case feedback(since: Int64)

  /// Reads a path; nil when it is none of these.
  init?(path: Span<UInt8>) {
    let (notifications, feedback) = ("/v1/notifications/", "/v1/feedback")
    if starts(path, with: notifications) {
      let rest = path.extracting(notifications.utf8.count..<path.count)
      guard let id = UniqueID(parsing: rest) else { return nil }
      self = .notification(id)
    } else if starts(path, with: feedback) {
      let rest = path.extracting(feedback.utf8.count..<path.count)
      let parameter = "?since="
      if rest.isEmpty {
        self = .feedback(since: 0)
      } else if starts(rest, with: parameter),
        let cursor = wholeNumber(rest.extracting(parameter.utf8.count..<rest.count))
      {
        self = .feedback(since: cursor)
      } else {
        return nil
      }
    } else {
      return nil
    }
  }
}

private func starts(_ path: Span<UInt8>, with text: String) -> Bool {
  let count = text.utf8.count
  return path.count >= count && matches(path.extracting(0..<count), text)
}
