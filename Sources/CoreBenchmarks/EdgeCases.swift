import DeviceLink
import Primitives
import RelayCore

/// Cases before a shard sees the request, and behind it.

func measureScan(_ payload: [UInt8], _ count: Int) throws(CommandError) -> Measurement {
  try measure(count) { _ throws(CommandError) in
    do {
      let scan = try scanPayload(payload.span)
      return UInt64(scan.keys.bits)
    } catch {
      throw .refused("the payload")
    }
  }
}

/// The head that `scripts/bench` sends, without the provider token.
private let typicalHead: [(name: [UInt8], value: [UInt8])] = [
  (":method", "POST"),
  (":scheme", "https"),
  (":authority", "localhost:2197"),
  ("user-agent", "h2load nghttp2/1.52.0"),
  ("apns-topic", "com.example.app"),
  ("apns-push-type", "alert"),
  ("apns-priority", "10"),
  ("content-length", "220"),
].map { (Array($0.0.utf8), Array($0.1.utf8)) }

private func makePaths() -> [[UInt8]] {
  (0..<256).map { Array("/3/device/\(token(of: $0).hexadecimal)".utf8) }
}

private func parse(
  _ name: [UInt8], _ value: [UInt8], into head: inout ProviderRequestHead,
  _ recentTopic: inout Topic?
) {
  guard let field = FieldName(name.span) else { return }
  head.parse(field, value.span, recentTopic: &recentTopic)
}

private func check(_ head: inout ProviderRequestHead) throws(CommandError) -> Topic {
  do throws(Rejection) {
    try head.checkRequestLine()
    return try head.checkFields(defaultTopic: nil)
  } catch {
    throw .refused("the head: \(error.reason)")
  }
}

func measureHead(_ count: Int) throws(CommandError) -> Measurement {
  let paths = makePaths()
  let pathName = Array(":path".utf8)
  var recentTopic: Topic?
  return try measure(count) { index throws(CommandError) in
    var head = ProviderRequestHead()
    for (name, value) in typicalHead { parse(name, value, into: &head, &recentTopic) }
    parse(pathName, paths[index & 255], into: &head, &recentTopic)
    return UInt64(try check(&head).bytes.count)
  }
}

/// A head that gets another path each time, as on one connection.
private struct RepeatedHead {
  var head = ProviderRequestHead()
  var recentTopic: Topic?
  private let pathName = Array(":path".utf8)

  init(_ path: [UInt8]) {
    for (name, value) in typicalHead { parse(name, value, into: &head, &recentTopic) }
    parse(pathName, path, into: &head, &recentTopic)
  }

  mutating func replacePath(_ path: [UInt8]) throws(CommandError) -> Topic {
    guard let field = FieldName(pathName.span) else { throw .refused("a field's name") }
    head.parse(field, path.span, recentTopic: &recentTopic, isReplacement: true)
    return try check(&head)
  }
}

func measurePath(_ count: Int) throws(CommandError) -> Measurement {
  let paths = makePaths()
  var last = RepeatedHead(paths[0])
  return try measure(count) { index throws(CommandError) in
    UInt64(try last.replacePath(paths[index & 255]).bytes.count)
  }
}

func measureRequest(_ payload: [UInt8], _ count: Int) throws(CommandError) -> Measurement {
  let paths = makePaths()
  var last = RepeatedHead(paths[0])
  return try measure(count) { index throws(CommandError) in
    let topic = try last.replacePath(paths[index & 255])
    // As in the server, each request's body is bytes of its own.
    var body: [UInt8] = []
    body.append(contentsOf: payload)
    var warnings = CaseSet<PayloadWarning>()
    do throws(Rejection) {
      let notification = try last.head.notification(
        topic: topic, body: body, uniqueID: UniqueID(generator: 1, number: UInt64(index)),
        isStrict: false, at: start, warnings: &warnings)
      return notification.token.routingKey
    } catch {
      throw .refused("the request: \(error.reason)")
    }
  }
}

func measureAnswer(_ count: Int) -> Measurement {
  var text: [UInt8] = []
  var sum: UInt64 = 0
  let ids = (0..<256).map { UniqueID(generator: generator, number: UInt64($0)) }
  let measured = try? measure(count) { index throws(CommandError) in
    for id in [ids[index & 255], ids[(index &+ 1) & 255]] {
      text.removeAll(keepingCapacity: true)
      id.write(to: &text)
      sum &+= UInt64(text[35])
    }
    return 0
  }
  return Measurement(nanoseconds: measured?.nanoseconds ?? 0, sum: sum)
}

/// A push's line to its device, and the line that acknowledges it.
func measureLine(_ payload: [UInt8], _ count: Int) throws(CommandError) -> Measurement {
  guard let topic = Topic("com.example.app") else { throw .refused("the topic") }
  let acknowledgements = (0..<256).map { number in
    var bytes: [UInt8] = []
    let id = UniqueID(generator: generator, number: UInt64(number))
    UpLine.ack(id: id, outcome: nil).write(to: &bytes)
    return bytes
  }
  let notification = Notification(
    uniqueID: UniqueID(generator: generator, number: 0),
    apnsID: UniqueID(generator: generator, number: 1), token: token(of: 0), topic: topic,
    notificationClass: .visible, pushType: .alert, priority: .immediate, wakesApp: false,
    collapseID: [], expiration: .at(start + .hours(1)), payload: payload)
  var splitter = LineSplitter()
  var bytes: [UInt8] = []
  return try measure(count) { index throws(CommandError) in
    bytes.removeAll(keepingCapacity: true)
    DownLine.notification(
      Delivery(notification: notification, via: .direct, acceptedAt: start, sentAt: start)
    ).write(to: &bytes)
    var sum = UInt64(bytes.count)
    let acknowledgement = acknowledgements[index & 255]
    splitter.receive(acknowledgement.span) { piece in
      guard case .line(let line) = piece, case .ack(let id, _)? = try? UpLine(line.span) else {
        return
      }
      sum &+= id.low
    }
    return sum
  }
}
