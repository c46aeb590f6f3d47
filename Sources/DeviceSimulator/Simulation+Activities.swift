package import DeviceModel
import Primitives
import RelayCore

/// Live Activities: what a provider's payload says, the tokens of activities, and what is told of
/// them (docs/PROTOCOL.md, "Live Activities").
extension Simulation {
  static let activityTopic = ".push-type.liveactivity"

  /// Of a push to a phone; what the payload lacks stays nil.
  func activityPush(
    _ push: Int32, _ entry: PushEntry, to address: ActivityAddress
  ) -> ActivityPush {
    let root = try? JSONTree.read(entry.payload.bytes)
    let aps = root?["aps"]
    let deed = aps?["event"]?.text.flatMap(ActivityPush.Deed.init)
    var message = ActivityPush(
      id: pushID(of: push), app: apps[Int(entry.app)].id, to: address, deed)
    message.timestamp = aps?["timestamp"]?.wholeNumber
    message.type = aps?["attributes-type"]?.text
    message.attributes = aps?["attributes"]?.compactObject
    message.content = aps?["content-state"]?.compactObject
    message.staleAt = aps?["stale-date"]?.moment
    message.leavesAt = aps?["dismissal-date"]?.moment
    if case .number(let score)? = aps?["relevance-score"]?.value, score.isFinite {
      message.relevance = score
    }
    message.alert = entry.payload.alert
    message.hasSound = entry.payload.hasSound
    message.isUrgent = entry.priority == .immediate
    message.hasChannel = aps?["input-push-channel"]?.text != nil
    return message
  }

  /// The app of a topic, and which of its activities' tokens it names; nil where no app is meant.
  func place(of topic: String, on phone: Int32) -> (app: Int32, address: ActivityAddress?)? {
    func app(_ name: some StringProtocol) -> Int32? {
      phones[Int(phone)].apps.first { apps[Int($0)].name == name }
    }
    if let app = app(topic) { return (app, nil) }
    let marker = Array((Self.activityTopic + ".").utf8)
    let bytes = Array(topic.utf8)
    let starts = 0..<max(0, bytes.count - marker.count)
    guard let start = starts.first(where: { bytes[$0..<$0 + marker.count].elementsEqual(marker) }),
      let found = app(String(decoding: bytes[..<start], as: UTF8.self)),
      let address = ActivityAddress(
        part: String(decoding: bytes[(start + marker.count)...], as: UTF8.self))
    else { return nil }
    return (found, address)
  }

  /// For the driver: all that a phone's apps have told their servers.
  func activityTopics(of phone: Int32) -> [String] {
    phones[Int(phone)].apps.flatMap { app in
      phones[Int(phone)].model.tokens(of: apps[Int(app)].id).map { self.topic($0, of: app) }
    }
  }

  private func topic(_ address: ActivityAddress, of app: Int32) -> String {
    apps[Int(app)].name + Self.activityTopic + "." + address.part
  }

  // MARK: The provider

  /// To which token: of the activity that is named, or of the attributes that the payload names.
  func address(_ payload: Payload, _ options: PushOptions) -> ActivityAddress? {
    if let number = options.activity { return .update(ActivityID(UInt64(max(0, number)))) }
    guard options.type == PushType.liveactivity.wireName else { return nil }
    let aps = (try? JSONTree.read(payload.bytes))?["aps"]
    return aps?["attributes-type"]?.text.map { .start($0) }
  }

  // MARK: What the phone tells

  mutating func perform(_ step: ActivityStep, of app: Int32) {
    var push: Int32 = -1
    switch step {
    case .started(_, _, .some(let id)), .notShown(let id, _): push = number(of: id)
    case .token(let address, let isValid): follow(address, isValid: isValid, of: app)
    case .started(_, _, nil), .shows, .stale, .ended, .left, .allowed, .frequentAllowed: break
    }
    let (kind, words) = told(step, of: app)
    record(.activity(kind, words), app: app, push: push)
  }

  private func told(_ step: ActivityStep, of app: Int32) -> (TraceKind, String) {
    func time(_ moment: Instant) -> String { clock.text(moment) }
    switch step {
    case .started(let id, let type, let push):
      let by = push.map { " by push \(number(of: $0) + 1)" } ?? ""
      return (.activity, "\(id) started\(by), \(type)")
    case .shows(let id, let content):
      return (.activity, "\(id) shows \(String(decoding: content, as: UTF8.self))")
    case .stale(let id): return (.activity, "\(id) is stale")
    case .ended(let id, let leaves):
      return (.activity, "\(id) has ended, on the screen until \(time(leaves))")
    case .left(let id): return (.activity, "\(id) has left the screen")
    case .notShown(_, let refusal): return (.notShown, words(refusal, of: app))
    case .token(let address, let isValid):
      let token =
        switch address {
        case .start(let type): "to start \(type)"
        case .update(let id): "of \(id)"
        }
      return (.activityToken, token + (isValid ? "" : " is not valid any more"))
    case .allowed(let isOn): return (.changed, "Live Activities \(isOn ? "on" : "off")")
    case .frequentAllowed(let isOn): return (.changed, "frequent updates \(isOn ? "on" : "off")")
    }
  }

  func words(_ refusal: ActivityRefusal, of app: Int32) -> String {
    refusal.words(apps[Int(app)].name) { moment in
      relay == nil ? moment.text(at: instant) : clock.text(moment)
    } push: { id in
      let number = number(of: id)
      return entry(of: number)?.id.map { "\($0)" } ?? "push \(number + 1)"
    }
  }

  // MARK: Tokens

  /// The app's server keeps the newest token of an activity, also when the activity is over.
  private mutating func follow(_ address: ActivityAddress, isValid: Bool, of app: Int32) {
    let name = topic(address, of: app)
    let phone = apps[Int(app)].phone
    order(.activityToken(topic: name, isValid: isValid), phone)
    // Pushes to a name that is no valid topic are refused.
    guard relay != nil, let topic = Topic(name) else { return }
    let credential = phones[Int(phone)].credential
    guard isValid else {
      return request { .asked(.unregistered(topic), credential, from: $0) }
    }
    let token = DeviceToken(
      random: (random.next(), random.next(), random.next()),
      routingKey: credential.device.routingKey)
    apps[Int(app)].activityTokens[address] = token
    request { .asked(.registered(topic, token, isOwn: false), credential, from: $0) }
  }
}

/// Actions of users and apps on Live Activities.
extension Simulation {
  /// By an app in the foreground. `attributes` and `content` are JSON objects.
  mutating func startActivity(
    _ type: String, attributes: [UInt8], content: [UInt8], by app: AppHandle
  ) {
    tell(app) {
      .activity(.started($0, type: type, attributes: attributes, content: content))
    }
  }

  mutating func allowActivities(_ isOn: Bool, of app: AppHandle) {
    tell(app) { .activity(.allowed($0, isOn: isOn)) }
  }

  /// For all apps.
  mutating func allowActivities(_ isOn: Bool, of phone: PhoneHandle) {
    record(.changed("Live Activities \(isOn ? "on" : "off") for all"), phone: phone.number)
    tell(phone.number, .activity(.allowed(nil, isOn: isOn)))
  }
}

extension ActivityID: Readable {
  /// The n-th of the app on that phone.
  static func read(_ reader: Reader) throws(ScenarioError) -> ActivityID {
    ActivityID(UInt64(try reader.number(1...1_000_000)))
  }
}

/// A JSON object of a scenario, or of a typed word.
struct JSONObject: Readable {
  let bytes: [UInt8]

  static func read(_ reader: Reader) throws(ScenarioError) -> JSONObject {
    var tree: JSONTree? = reader.tree
    if case .text(let text) = reader.tree.value { tree = try? JSONTree.read(Array(text.utf8)) }
    guard let bytes = tree?.compactObject else {
      throw reader.problem(#"an object is wanted, such as {"status":"ordered"}"#)
    }
    guard bytes.count <= PushType.liveactivity.payloadLimitBytes else {
      throw reader.problem("the most is \(PushType.liveactivity.payloadLimitBytes) bytes")
    }
    return JSONObject(bytes: bytes)
  }
}

extension JSONTree {
  /// Without white space; nil for anything but an object.
  fileprivate var compactObject: [UInt8]? {
    if case .object = value { RelayCore.Notification.compact(source) } else { nil }
  }

  fileprivate var wholeNumber: Int64? {
    if case .number(let number) = value, abs(number) < 1e15 { Int64(number) } else { nil }
  }

  /// UNIX seconds.
  fileprivate var moment: Instant? {
    wholeNumber.map { max(Instant(milliseconds: 0), min(Instant(unixSeconds: $0), .endOfCalendar)) }
  }
}
