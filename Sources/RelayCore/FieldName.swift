/// The provider API's header fields (Apple, "Sending notification requests to APNs"), and
/// `traceparent` (W3C, "Trace Context"). Others are ignored.
package enum FieldName: UInt8, CaseIterable, Sendable {
  case method, path, authorization, apnsID, apnsExpiration, apnsPriority, apnsTopic
  case apnsCollapseID, apnsPushType, contentType, contentLength, host, traceParent
  case authority

  /// In lower case, as HTTP/2 demands (RFC 9113 section 8.2).
  package var wireName: String {
    switch self {
    case .method: ":method"
    case .path: ":path"
    case .authorization: "authorization"
    case .apnsID: "apns-id"
    case .apnsExpiration: "apns-expiration"
    case .apnsPriority: "apns-priority"
    case .apnsTopic: "apns-topic"
    case .apnsCollapseID: "apns-collapse-id"
    case .apnsPushType: "apns-push-type"
    case .contentType: "content-type"
    case .contentLength: "content-length"
    case .host: "host"
    case .traceParent: "traceparent"
    case .authority: ":authority"
    }
  }

  package init?(_ bytes: Span<UInt8>) {
    guard let found = Self.table.find(PackedName(bytes, 0..<bytes.count)) else { return nil }
    self = found
  }

  private static let table = NameTable<FieldName>(name: \.wireName)
}
