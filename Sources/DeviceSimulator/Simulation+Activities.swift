package import DeviceModel
import Primitives
import RelayCore

/// Live Activities: what a provider's payload says, the tokens of activities, and what is told of
/// them (docs/PROTOCOL.md, "Live Activities").
extension Simulation {
  static let activityTopic = ".push-type.liveactivity"

  /// Of a push to a phone; what the payload lacks stays nil.
  func activityPush(
    _ push: Int32, _ entry: PushEntry, of app: Int32, to address: ActivityAddress
  ) -> ActivityPush {
    let root = try? JSONTree.read(entry.payload.bytes)
    let aps = root?["aps"]
    let deed = aps?["event"]?.text.flatMap(ActivityPush.Deed.init)
    var message = ActivityPush(id: pushID(of: push), app: apps[Int(app)].id, to: address, deed)
    if !address.isChannel, entry.type != .liveactivity { message.otherType = entry.type.wireName }
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
    message.channel = aps?["input-push-channel"].map { id in
      id.text.flatMap { ChannelID($0) }?.description ?? ""
    }
    return message
  }

  /// The app of a topic, and which of its activities' tokens it names; nil where no app is meant.
  func place(of topic: String, on phone: Int32) -> (app: Int32, address: ActivityAddress?)? {
    func app(_ name: some StringProtocol) -> Int32? {
      phones[Int(phone)].apps.first { apps[Int($0)].name == name }
    }
    if let app = app(topic) { return (app, nil) }
    guard let marker = topic.firstRange(of: Self.activityTopic + "."),
      let found = app(topic[..<marker.lowerBound]),
      let address = ActivityAddress(part: topic[marker.upperBound...])
    else { return nil }
    return (found, address)
  }

  // MARK: The provider

  /// To which token: of the activity that is named, or of the attributes that the payload names.
  func address(_ payload: Payload, _ options: PushOptions) -> ActivityAddress? {
    if let number = options.activity { return .update(ActivityID(UInt64(max(0, number)))) }
    if let channel = options.channel { return .channel(channel) }
    guard options.type == PushType.liveactivity.wireName else { return nil }
    let aps = (try? JSONTree.read(payload.bytes))?["aps"]
    return aps?["attributes-type"]?.text.map { .start($0) }
  }

  // MARK: What the phone tells

  mutating func perform(_ step: ActivityStep, of app: Int32) {
    var push: Int32 = -1
    switch step {
    case .started(_, _, .some(let id)), .notShown(let id, _): push = number(of: id)
    case .address(let address, let isValid):
      tellRelay(.address(address, app: app, isValid: isValid), of: apps[Int(app)].phone)
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
    case .address(let address, let isValid):
      let end = isValid ? "" : " is not valid any more"
      switch address {
      case .start(let type): return (.activityToken, "to start \(type)" + end)
      case .update(let id): return (.activityToken, "of \(id)" + end)
      case .channel(let id):
        return (.activity, "\(isValid ? "listens" : "listens no more") to channel \(id)")
      }
    case .allowed(let isOn): return (.changed, "Live Activities \(isOn ? "on" : "off")")
    case .frequentAllowed(let isOn): return (.changed, "frequent updates \(isOn ? "on" : "off")")
    }
  }

  func words(_ refusal: ActivityRefusal, of app: Int32) -> String {
    refusal.words(
      apps[Int(app)].name, time: { relay == nil ? $0.text(at: instant) : clock.text($0) },
      push: name(of:))
  }

  // MARK: Tokens and channels

  /// The app's server keeps the newest token of an activity, also when the activity is over.
  mutating func follow(_ address: ActivityAddress, isValid: Bool, of app: Int32) {
    let (name, bundle) = (apps[Int(app)].name, apps[Int(app)].topic)
    let phone = apps[Int(app)].phone
    order(.address(address, app: name, isValid: isValid), phone)
    let credential = phones[Int(phone)].credential
    if case .channel(let id) = address {
      guard let id = ChannelID(id) else { return }
      return request {
        .asked(isValid ? .subscribed(bundle, id) : .unsubscribed(bundle, id), credential, from: $0)
      }
    }
    // Pushes to a name that is no valid topic are refused.
    guard relay != nil, let topic = Topic(address.topic(of: name)) else { return }
    guard isValid else { return request { .asked(.unregistered(topic), credential, from: $0) } }
    let token = DeviceToken(
      random: (random.next(), random.next(), random.next()),
      routingKey: credential.device.routingKey)
    apps[Int(app)].activityTokens[address] = token
    request { .asked(.registered(topic, token, isOwn: false), credential, from: $0) }
  }
}

extension ActivityAddress {
  /// The topic that a token is registered under.
  package func topic(of app: String) -> String { app + Simulation.activityTopic + "." + part }
}

/// Broadcasts.
extension Simulation {
  /// Publishes on a channel, made when it is first used, which keeps the newest until it expires.
  mutating func broadcast(_ push: Int32, _ options: PushOptions) {
    let (entry, now) = (pushes[Int(push)], instant)
    let bundle = apps[Int(entry.app)].topic
    var request = ChannelRequest()
    let fields = [
      ("apns-channel-id", options.channel),
      ("apns-push-type", options.type ?? PushType.liveactivity.wireName),
      ("apns-priority", options.priority.map(String.init)),
      ("apns-expiration", options.expiration(at: now).map(String.init)),
    ]
    for case (let name, let value?) in fields {
      request.parse(Array(name.utf8).span, Array(value.utf8).span)
    }
    do throws(ChannelRefusal) {
      let wish = try request.wish(.broadcast, body: entry.payload.bytes, isStrict: false)
      guard case .publish(let id, let draft) = wish, var channels = relay?.channels else { return }
      if channels[id] == nil { _ = try channels.create(id, .mostRecent, of: bundle, at: now) }
      let broadcast = try channels.publish(draft, on: id, of: bundle, uniqueID(push), at: now)
      relay?.channels = channels
      if broadcast.isStored(at: now) { relay?.published[id] = broadcast }
      record(.published(to: relay?.core?.channelCounts[id]?.subscribers ?? 0), push: push)
      tellRelay(.broadcast(.published(broadcast)))
    } catch {
      pushes[Int(push)].answer = .missing(error.row.reason)
      refused(Int(push), error.row.status, error.row.reason)
    }
  }

  func isBroadcast(_ push: Int32) -> Bool { entry(of: push)?.activity?.isChannel == true }

  /// A broadcast is for the app of that name on each phone.
  func app(of entry: PushEntry, on phone: Int32) -> Int32? {
    guard entry.activity?.isChannel == true else { return entry.app }
    let name = apps[Int(entry.app)].name
    return phones[Int(phone)].apps.first { apps[Int($0)].name == name }
  }
}

extension ActivityID: Readable {
  /// The n-th of the app on that phone.
  static func read(_ reader: Reader) throws(ScenarioError) -> ActivityID {
    ActivityID(UInt64(try reader.number(1...1_000_000)))
  }
}

extension ChannelID: Readable {
  static func read(_ reader: Reader) throws(ScenarioError) -> ChannelID {
    guard let id = ChannelID(try reader.text()) else {
      throw reader.problem("a channel's id is wanted: the base64 of 16 bytes")
    }
    return id
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
