package import Primitives
package import RelayCore

/// A connection that requests come on, as far as people want to know.
package final class RequestSource: Sendable {
  package enum Listener: UInt8, CaseIterable, Sendable {
    case provider, binary, admin, channels

    package var name: String { "\(self)" }
  }

  /// The client has shown this of itself. Never the provider token.
  package enum Proof: Hashable, Sendable {
    /// The relay asks for none.
    case none
    case token(team: String, keyID: String)
    /// The subject's name in a client certificate.
    case certificate(String)
  }

  package let listener: Listener
  /// Address and port of the client.
  package let peer: String
  package let isEncrypted: Bool
  package let proof: Proof
  /// The service that the listener plays, if it is one of several.
  package let service: ProviderEnvironment?
  /// The connection's number on its loop.
  package let connection: UInt32

  package init(
    _ listener: Listener, peer: String, isEncrypted: Bool, _ proof: Proof,
    service: ProviderEnvironment? = nil, connection: UInt32
  ) {
    self.listener = listener
    self.peer = peer
    self.isEncrypted = isEncrypted
    self.proof = proof
    self.service = service
    self.connection = connection
  }
}

/// The part of a connection's requests that is the same until a header field changes. One object
/// for all of them.
package final class RequestHead: Sendable {
  /// The header fields, a line each, as `name: value`, without the provider token. In a push, the
  /// values that differ from request to request are missing: `SentRequest.headers` has them.
  package let fields: [UInt8]
  package let source: RequestSource
  /// Of a push.
  let topic: Topic

  package init(_ fields: [UInt8], _ source: RequestSource, _ topic: Topic = .vacant) {
    (self.fields, self.source, self.topic) = (fields, source, topic)
  }

  /// Of a row that is forgotten.
  static let none = RequestHead(
    [], RequestSource(.admin, peer: "", isEncrypted: false, .none, connection: 0))
}

/// A request as it was sent, and what became of it.
package struct SentRequest: Sendable {
  package enum Content: Sendable {
    /// Head and body are in order; it may be refused all the same.
    case push(Notification, warnings: CaseSet<PayloadWarning>)
    /// Its head or body is refused, it never was complete, or it is about a channel.
    case unusable(body: [UInt8])
  }

  package struct Answer: Hashable, Sendable {
    package enum Outcome: Hashable, Sendable {
      case push(ProviderAnswer)
      /// About a channel, with the HTTP status.
      case channel(UInt16, ChannelRefusal?)
    }

    package let outcome: Outcome
    package let after: Interval

    package init(_ outcome: Outcome, after: Interval) {
      (self.outcome, self.after) = (outcome, after)
    }

    /// The HTTP status.
    package var status: Int {
      switch outcome {
      case .push(let answer): answer.rejection.map { Int($0.status) } ?? 200
      case .channel(let status, _): Int(status)
      }
    }

    package var rejection: Rejection? {
      if case .push(let answer) = outcome { answer.rejection } else { nil }
    }

    /// Of a refusal, with a sentence for people.
    package var refusal: (reason: String, text: String)? {
      switch outcome {
      case .push(let answer): answer.rejection.map { ($0.reason, $0.row.text) }
      case .channel(_, let refusal): refusal.map { ($0.row.reason, $0.row.text) }
      }
    }
  }

  package let at: Instant
  package let uniqueID: UniqueID
  let head: RequestHead
  /// Its place among the requests of its connection, from 1.
  package let ordinal: UInt32
  package internal(set) var content: Content
  /// The body's length as sent; nil for more than any push may have.
  package internal(set) var bodyBytes: Int?
  /// nil while it has none, or never.
  package internal(set) var answer: Answer?
  /// True if places of its payload are replaced.
  package internal(set) var isRedacted = false

  package init(
    at moment: Instant, _ uniqueID: UniqueID, _ head: RequestHead, ordinal: UInt32,
    _ content: Content, bodyBytes: Int?, _ answer: Answer? = nil, isRedacted: Bool = false
  ) {
    at = moment
    self.uniqueID = uniqueID
    self.head = head
    self.ordinal = ordinal
    self.content = content
    self.bodyBytes = bodyBytes
    self.answer = answer
    self.isRedacted = isRedacted
  }

  package var source: RequestSource { head.source }

  /// As of its head (`RequestHead.fields`).
  package var fields: [UInt8] { head.fields }

  package var notification: Notification? {
    if case .push(let notification, _) = content { notification } else { nil }
  }

  package var warnings: CaseSet<PayloadWarning> {
    if case .push(_, let warnings) = content { warnings } else { CaseSet() }
  }

  package var body: [UInt8] {
    switch content {
    case .push(let notification, _): notification.payload
    case .unusable(let body): body
    }
  }

  /// The payload, if it is JSON.
  package var payload: JSONTree? { try? JSONTree.read(body) }

  /// The header fields as they came, in order.
  package var headers: [(name: String, value: String)] {
    fields.split(separator: UInt8(ascii: "\n")).map { line in
      // A pseudo-header's name begins with a colon.
      let end = line.dropFirst().firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
      let name = String(decoding: line[..<end], as: UTF8.self)
      let value = String(decoding: line[end...].dropFirst(2), as: UTF8.self)
      return (name, ownValue(of: name, sent: value) ?? value)
    }
  }

  package func header(_ name: String) -> String? { headers.last { $0.name == name }?.value }

  private func ownValue(of name: String, sent value: String) -> String? {
    switch name {
    case FieldName.path.wireName: notification.map { "/3/device/\($0.token.hexadecimal)" }
    case FieldName.apnsID.wireName: notification?.apnsID.description
    case FieldName.contentLength.wireName: value.isEmpty ? bodyBytes.map { String($0) } : nil
    default: nil
    }
  }

  package var path: String? {
    header(FieldName.path.wireName) ?? notification.map { "/3/device/\($0.token.hexadecimal)" }
  }

  /// The fields that say what kind of push it is; without a head, as of the binary API, those that
  /// would.
  package var pushFields: [(name: String, value: String)] {
    let fields = headers.filter { !$0.name.hasPrefix(":") && $0.name != FieldName.apnsID.wireName }
    guard fields.isEmpty, let notification else { return fields }
    return [
      (FieldName.apnsTopic.wireName, notification.topic.description),
      (FieldName.apnsPushType.wireName, notification.pushType.wireName),
      (FieldName.apnsPriority.wireName, "\(notification.priority.rawValue)"),
    ]
  }

  /// The topic, or the bundle id in a path about channels.
  package var topic: String? {
    notification?.topic.description ?? header("apns-topic") ?? bundle
  }

  private var bundle: String? {
    let parts = path?.split(separator: "/") ?? []
    return parts.firstIndex(of: "apps").flatMap { parts[$0...].dropFirst().first.map(String.init) }
  }

  package var token: DeviceToken? {
    if let notification { return notification.token }
    guard let path, path.hasPrefix("/3/device/") else { return nil }
    return DeviceToken(hexadecimal: String(path.dropFirst("/3/device/".count)))
  }

  /// The service that was asked, as far as listener or host say one.
  package var service: ProviderEnvironment? {
    source.service ?? header(":authority").flatMap { ProviderEnvironment(host: $0.utf8) }
  }

  package var pushType: String? { notification?.pushType.wireName ?? header("apns-push-type") }

  /// The provider's id for it, or the relay's if it gave none.
  package var apnsID: UniqueID {
    let named = header("apns-id") ?? header("apns-request-id")
    return notification?.apnsID ?? named.flatMap { UniqueID($0) } ?? uniqueID
  }

  /// True if its body is the one that was sent, from beginning to end.
  package var isWhole: Bool { !isRedacted && bodyBytes == body.count }
}
