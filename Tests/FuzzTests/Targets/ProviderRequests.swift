import Primitives

@testable import RelayCore

/// Requests of providers: whatever the fields say, there is a notification that keeps to all
/// limits, or a refusal; and a head that takes its values over from one before says the same.
///
/// An input is a list of fields, then the body: a byte that names the field, a byte with the length
/// of its value, the value; what names no field begins the body.
enum ProviderRequests {
  private static let now = Instant(unixSeconds: 1_767_225_600)
  private static let ownID = UniqueID(generator: 1, number: 1)

  private struct Request {
    var fields: [(FieldName, [UInt8])] = []
    var isStrict = false
    var body: [UInt8] = []

    init(_ input: UnsafeRawBufferPointer) {
      var rest = input[...]
      isStrict = rest.popFirst().map { $0 & 1 != 0 } ?? false
      while let name = rest.first.flatMap({ FieldName(rawValue: $0) }) {
        let count = min(Int(rest.dropFirst().first ?? 0), max(0, rest.count - 2))
        fields.append((name, Array(rest.dropFirst(2).prefix(count))))
        rest = rest.dropFirst(2 + count)
      }
      body = Array(rest)
    }
  }

  private enum Answer: Equatable {
    case accepted(Notification)
    case question(ProviderQuery)
    case refused(Rejection)
  }

  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    let request = Request(input)
    var topic: Topic?
    var head = head(request, &topic)
    let answer = ask(&head, request)
    if case .accepted(let notification) = answer { try check(notification, request) }
    // The same fields once more, in the place of their predecessors.
    guard Set(request.fields.map(\.0)).count == request.fields.count else { return }
    for (name, value) in request.fields {
      head.parse(name, value.span, recentTopic: &topic, isReplacement: true)
    }
    guard ask(&head, request) == answer else { throw Finding("again it is another answer") }
    var own = ProviderRequestHead()
    for (name, value) in request.fields where name != .path && name != .apnsID {
      own.parse(name, value.span, recentTopic: &topic)
    }
    own.copyRequestValues(from: &head)
    guard ask(&own, request) == answer else { throw Finding("taken over it is another answer") }
  }

  private static func head(_ request: Request, _ topic: inout Topic?) -> ProviderRequestHead {
    var head = ProviderRequestHead()
    for (name, value) in request.fields {
      head.parse(name, value.span, recentTopic: &topic)
    }
    return head
  }

  private static func ask(_ head: inout ProviderRequestHead, _ request: Request) -> Answer {
    do throws(Rejection) {
      try head.checkRequestLine()
      if let query = head.query { return .question(query) }
      let topic = try head.checkFields(defaultTopic: Topic("com.example.default"))
      var warnings = CaseSet<PayloadWarning>()
      return .accepted(
        try head.notification(
          topic: topic, body: request.body, uniqueID: ownID, isStrict: request.isStrict, at: now,
          warnings: &warnings))
    } catch {
      return .refused(error)
    }
  }

  private static func check(
    _ notification: Notification, _ request: Request
  ) throws(Finding) {
    func expect(_ isTrue: Bool, _ what: String) throws(Finding) {
      guard isTrue else { throw Finding("\(what): \(notification)") }
    }
    try expect(notification.payload == request.body, "payload")
    try expect(notification.collapseID.count <= Limits.collapseIDBytes, "collapse id")
    try expect(Limits.topicBytes.contains(notification.topic.bytes.count), "topic")
    try expect(Limits.deviceTokenBytes.contains(notification.token.count), "token")
    let path = request.fields.last { $0.0 == .path }.map { String(decoding: $0.1, as: UTF8.self) }
    try expect(
      path?.lowercased() == "/3/device/" + notification.token.hexadecimal, "token of the path")
    if case .at(let moment) = notification.expiration {
      try expect(moment > now && moment <= now + Limits.storage, "expiration")
    }
    if let id = request.fields.last(where: { $0.0 == .apnsID }) {
      let text = String(decoding: id.1, as: UTF8.self)
      try expect(text.lowercased() == notification.apnsID.description, "apns-id")
    } else {
      try expect(notification.apnsID == ownID, "apns-id")
    }
  }
}
