import FoundationEssentials
import HTTP2
import RelayCore
import TLS
import Transport

/// The head of a request of the device API (docs/PROTOCOL.md, "Device API").
struct DeviceRequest {
  enum Route: Equatable {
    case health
    case enroll
    case inspect(DeviceID)
    case registerApp(DeviceID, Topic)
    case unregisterApp(DeviceID, Topic)
    case subscribe(DeviceID, Topic, ChannelID)
    case unsubscribe(DeviceID, Topic, ChannelID)
    case listen(DeviceID, acknowledgesItself: Bool)
    case takeOrders(DeviceID)
  }

  enum ParsingError: Error, Equatable {
    case notFound
    case methodNotAllowed(allowed: String)
    case badTopic
    case badChannel
    case missingSecret
    case enrolmentClosed
    case ownTokensOff
    case ordersOff
    case badBody(String)
    case bodyTooLarge
    case requestTimeout
    case tooManyQuestions

    var row: (status: UInt16, reason: String, message: String) {
      switch self {
      case .notFound: (404, "BadPath", "see docs/PROTOCOL.md for the paths of the device API")
      case .methodNotAllowed(let allowed): (405, "MethodNotAllowed", "use \(allowed)")
      case .badTopic:
        (400, "BadTopic", "a topic is 1 to 255 letters, digits, dots, hyphens and underscores")
      case .badChannel:
        (400, "BadChannelId", "a channel's id is the base64 of 16 bytes, in the form for paths")
      case .missingSecret:
        (401, "Unauthorized", "send the device's secret as 'authorization: bearer <secret>'")
      case .enrolmentClosed:
        (
          403, "EnrolmentClosed",
          "send the relay's enrolmentKey as 'authorization: bearer <key>'; without one it takes no "
            + "new devices"
        )
      case .ownTokensOff:
        (403, "OwnTokensOff", "this relay makes the tokens (ownTokens): register without one")
      case .ordersOff: (403, "OrdersOff", "in the production profile no phone takes orders")
      case .badBody(let message): (400, "BadRequest", message)
      case .bodyTooLarge:
        (413, "PayloadTooLarge", "a body has at most \(Limits.deviceBodyBytes) bytes")
      case .requestTimeout:
        (408, "RequestTimeout", "the request did not end in time; send it again, whole")
      case .tooManyQuestions:
        (503, "ServiceUnavailable", "too much at once, or not read: ask again when it is answered")
      }
    }
  }

  var route: Route
  /// The hash of what follows `bearer `, if anything. Hashed at once: a stranger must not make the
  /// relay keep a text as long as a header list.
  var secret: SecretHash?
  var body: [UInt8] = []
  var bodyIsTooLarge = false

  init(fields: ArraySlice<HeaderField>, arena: [UInt8]) throws(ParsingError) {
    var method = ""
    var path = ""
    var secret: SecretHash?
    for field in fields {
      switch FieldName(arena.span.extracting(field.name)) {
      case .method: method = String(decoding: arena[field.value], as: UTF8.self)
      case .path: path = String(decoding: arena[field.value], as: UTF8.self)
      case .authorization: secret = Self.secret(arena[field.value])
      case .apnsID, .apnsExpiration, .apnsPriority, .apnsTopic, .apnsCollapseID, .apnsPushType,
        .contentType, .contentLength, .host, .traceParent, .authority, nil:
        break
      }
    }
    self.route = try Self.route(method, path)
    self.secret = secret
  }

  func credential(for device: DeviceID) throws(ParsingError) -> DeviceCredential {
    guard let secret else { throw .missingSecret }
    return DeviceCredential(device: device, secret: secret)
  }

  /// The token that the body of a registration wants: the device's own, or a new one of a service.
  func wantedToken() throws(ParsingError) -> WantedToken {
    struct Body: Decodable {
      var token: String?
      var environment: String?
    }
    guard !bodyIsTooLarge else { throw .bodyTooLarge }
    guard !body.isEmpty else { return .new(for: nil) }
    guard let decoded = try? JSONDecoder().decode(Body.self, from: Data(body)) else {
      throw .badBody(#"the body is empty, {"token":"<hexadecimal>"} or {"environment":"sandbox"}"#)
    }
    do throws(WantedToken.Problem) {
      return try WantedToken(token: decoded.token, environment: decoded.environment)
    } catch {
      throw .badBody(error.description)
    }
  }

  /// The name in the body of an enrolment, if any.
  func name() throws(ParsingError) -> String? {
    struct Body: Decodable { var name: String? }
    guard !body.isEmpty else { return nil }
    guard let decoded = try? JSONDecoder().decode(Body.self, from: Data(body)) else {
      throw .badBody(#"the body is empty or {"name":"<what people call it>"}"#)
    }
    guard let name = decoded.name else { return nil }
    guard DeviceNames.isUsable(name) else { throw .badBody(DeviceNames.words) }
    return name
  }

  /// SHA-256 as four words.
  static func hash(_ secret: some Sequence<UInt8>) -> SecretHash {
    var words: [UInt64] = [0, 0, 0, 0]
    for (index, byte) in SHA256.hash(Array(secret)).enumerated() {
      words[index / 8] = words[index / 8] << 8 | UInt64(byte)
    }
    return SecretHash(words: (words[0], words[1], words[2], words[3]))
  }

  private static func secret(_ value: ArraySlice<UInt8>) -> SecretHash? {
    let scheme = Array("bearer ".utf8)
    guard value.count > scheme.count,
      zip(value, scheme).allSatisfy({ $0 == $1 || $0 | 0x20 == $1 })
    else { return nil }
    return hash(value.dropFirst(scheme.count))
  }

  private static func route(_ method: String, _ path: String) throws(ParsingError) -> Route {
    let parts = path.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count >= 3, parts[0].isEmpty, parts[1] == "v1" else { throw .notFound }
    if parts.count == 3, parts[2] == "health" {
      return try only("GET", method, .health)
    }
    guard parts[2] == "devices" else { throw .notFound }
    if parts.count == 3 { return try only("POST", method, .enroll) }
    guard let device = DeviceID(parts[3]) else { throw .notFound }
    if parts.count == 4 { return try only("GET", method, .inspect(device)) }
    if parts.count == 5, parts[4] == "stream" {
      switch method {
      case "GET": return .listen(device, acknowledgesItself: true)
      case "POST": return .listen(device, acknowledgesItself: false)
      default: throw .methodNotAllowed(allowed: "GET or POST")
      }
    }
    if parts.count == 5, parts[4] == "orders" {
      return try only("POST", method, .takeOrders(device))
    }
    guard parts.count == 6 || parts.count == 8, parts[4] == "apps" else { throw .notFound }
    guard let topic = Topic(parts[5]) else { throw .badTopic }
    if parts.count == 8 {
      guard parts[6] == "channels" else { throw .notFound }
      guard let channel = ChannelID(parts[7]) else { throw .badChannel }
      switch method {
      case "PUT": return .subscribe(device, topic, channel)
      case "DELETE": return .unsubscribe(device, topic, channel)
      default: throw .methodNotAllowed(allowed: "PUT or DELETE")
      }
    }
    switch method {
    case "PUT": return .registerApp(device, topic)
    case "DELETE": return .unregisterApp(device, topic)
    default: throw .methodNotAllowed(allowed: "PUT or DELETE")
    }
  }

  private static func only(
    _ allowed: String, _ method: String, _ route: Route
  ) throws(ParsingError) -> Route {
    guard method == allowed else { throw .methodNotAllowed(allowed: allowed) }
    return route
  }
}
