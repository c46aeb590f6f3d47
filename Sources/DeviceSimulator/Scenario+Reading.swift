import DeviceModel
import Primitives
import RelayCore

/// Reads a scenario; everything is checked before playing.
extension Scenario: ReadableObject {
  /// - Parameter file: the name for error messages.
  public init(json: [UInt8], file: String) throws(ScenarioError) {
    let tree: JSONTree
    do {
      tree = try JSONTree.read(json)
    } catch {
      throw ScenarioError(file: file, line: error.line, key: "", text: error.text)
    }
    let reader = Reader(file: file, tree: tree, key: "")
    self = try .read(reader)
    self.file = file
    try checkSize(reader)
  }

  static let fields: [Field<Scenario>] = [
    Field("title", \.title, isRequired: true), Field("about", \.about),
    Field("seed", \.seed, in: 0...1 << 53),
    Field("length", isRequired: true) { scenario, reader throws(ScenarioError) in
      scenario.length = try reader.duration()
      guard (1...400 * TimeText.day).contains(scenario.length) else {
        throw reader.problem("a length is above 0, and 400d at most")
      }
    }, Field("relay", \.relay), Field("link", \.link),
    Field("tokensTo") { scenario, reader throws(ScenarioError) in
      scenario.tokensTo = try TransferRequest.address(try reader.text(), reader)
    },
    Field("phones", isRequired: true) { scenario, reader throws(ScenarioError) in
      var names: Set<String> = []
      for phone in try scenario.ending(reader).list() {
        let plan = try PhonePlan.read(phone)
        guard names.insert(plan.name).inserted else {
          throw phone.problem("there are two phones with the name \"\(plan.name)\"")
        }
        scenario.phones.append(plan)
      }
    },
    Field("events") { scenario, reader throws(ScenarioError) in
      let names = PlaceNames(phones: scenario.phones)
      for event in try scenario.ending(reader).list() {
        scenario.events.append(try names.event(event))
      }
    },
    Field("expect") { scenario, reader throws(ScenarioError) in
      let names = PlaceNames(phones: scenario.phones)
      let pushes = PushNames(scenario.events, length: scenario.length)
      for item in try scenario.ending(reader).list() {
        scenario.expectations.append(try Expectation(item, names, pushes))
      }
    },
  ]

  private func ending(_ reader: Reader) -> Reader {
    var reader = reader
    reader.end = length
    return reader
  }

  /// Keeps a wrong number from filling the memory.
  private func checkSize(_ reader: Reader) throws(ScenarioError) {
    let days = length / TimeText.day + 1
    var steps: Int64 = 0
    for event in events { steps += event.times.count(within: length) }
    for phone in phones {
      for usage in phone.usage { steps += Int64(usage.clocks.count) * days * 2 }
      if let habits = phone.habits {
        steps += Int64(phone.apps.count) * habits.perDay.upperBound * days * 2
      }
    }
    guard steps <= 2_000_000 else {
      throw reader.problem("\(steps) things would happen; the most is 2000000")
    }
  }
}

extension Scenario.RelayPlan: ReadableObject {
  static let fields: [Field<Self>] = [
    Field("policy", \.policy),
    Field("keepAlive") { relay, reader throws(ScenarioError) in
      relay.keepAlive = try reader.duration()
      guard relay.keepAlive >= 60_000 else { throw reader.problem("the least is 1m") }
    },
  ]
}

extension RelayPolicy: Readable {
  struct Limits: ReadableObject {
    var perApp: Rate?
    var perPhone: Rate?

    static let fields: [Field<Limits>] = [Field("perApp", \.perApp), Field("perPhone", \.perPhone)]
  }

  static func read(_ reader: Reader) throws(ScenarioError) -> RelayPolicy {
    guard reader["perApp"] == nil, reader["perPhone"] == nil else {
      let limits = try Limits.read(reader)
      return custom(perApp: limits.perApp, perPhone: limits.perPhone)
    }
    do throws(SilentPolicyError) {
      return RelayPolicy(policy: try SilentPolicy(json: reader.tree))
    } catch {
      throw reader.problem(error.description)
    }
  }
}

extension RelayPolicy.Rate: ReadableObject {
  init() { self.init(0, per: .zero, burst: 0) }

  static let fields: [Field<RelayPolicy.Rate>] = [
    Field("count", isRequired: true) { rate, reader throws(ScenarioError) in
      rate.count = Int(try reader.number(1...1_000_000))
      rate.burst = min(rate.count, 1000)
    }, Field("per", \.per, isRequired: true), Field("burst", \.burst, in: 1...1000),
  ]
}

extension LinkModel: ReadableObject {
  static let fields: [Field<LinkModel>] = [
    Field("latency", \.latency), Field("jitter", \.jitter), Field("reconnect", \.reconnect),
    Field("loss") { link, reader throws(ScenarioError) in
      link.lossPercent = Double(try reader.number(0...100))
    },
  ]
}

extension Scenario.PhonePlan: ReadableObject {
  static let fields: [Field<Self>] = [
    Field("name", isRequired: true) { plan, reader throws(ScenarioError) in
      plan.name = try reader.text()
      // It is printed wherever the phone is told of.
      guard plan.name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
        throw reader.problem("a name has no control characters")
      }
      // A push goes to PHONE/APP.
      guard !plan.name.isEmpty, !plan.name.contains("/") else {
        throw reader.problem("a name has a character or more, and no slash")
      }
    },
    Field("network", \.network),
    Field("charging", \.isCharging), Field("lowPower", \.isLowPower),
    Field("limits") { plan, reader throws(ScenarioError) in
      var given: [String] = []
      for (name, value) in try reader.members() {
        let text =
          if case .text(let text) = value.tree.value { text } else {
            String(try value.number(0...1_000_000_000_000))
          }
        guard plan.limits.set(name, to: text) else {
          let isKnown = PhoneLimits.slots.contains { $0.name == name }
          throw value.problem(
            isKnown ? "\(text) is no value of \(name)" : "there is no limit \(name)")
        }
        given.append("\(name) \(text)")
      }
      guard plan.limits.relationsHold else {
        let limits = given.joined(separator: ", ")
        throw reader.problem("these contradict the other limits, or each other: \(limits)")
      }
    },
    Field("apps") { plan, reader throws(ScenarioError) in
      for app in try reader.list() {
        for description in try AppDefinition.readAll(app) {
          guard !plan.apps.contains(where: { $0.name == description.name }) else {
            throw app.problem("there are two apps with the name \"\(description.name)\"")
          }
          plan.apps.append(description)
        }
      }
    },
    Field("usage") { plan, reader throws(ScenarioError) in
      let apps = plan.apps.enumerated().map { ($1.name, $0) }
      for item in try reader.list() {
        var usage = try Scenario.Usage.read(item)
        usage.app = try item.required("app").choice(apps)
        plan.usage.append(usage)
      }
    }, Field("habits", \.habits), Field("account", \.account), Field("iCloudDrive", \.hasDrive),
  ]
}

extension Scenario.Usage: ReadableObject {
  static let fields: [Field<Scenario.Usage>] = [
    // Read by the phone, which knows its apps.
    Field("app", isRequired: true) { _, _ in },
    Field("at", isRequired: true) { usage, reader throws(ScenarioError) in
      for item in try reader.list() {
        usage.clocks.append(try item.clock())
        try item.checkIsBeforeEnd(usage.clocks.last ?? 0)
      }
    },
    Field("days", \.days), Field("jitter", milliseconds: \.jitter),
    Field("for", milliseconds: \.duration),
  ]
}

extension Scenario.Habits: ReadableObject {
  static let fields: [Field<Scenario.Habits>] = [
    Field("perDay", isRequired: true) { habits, reader throws(ScenarioError) in
      habits.perDay = try reader.range { one throws(ScenarioError) in try one.number(1...24) }
    },
    Field("between", isRequired: true) { habits, reader throws(ScenarioError) in
      habits.between = try reader.range { one throws(ScenarioError) in try one.clock() }
      try reader.checkIsBeforeEnd(habits.between.lowerBound)
    },
    Field("apart", isRequired: true) { habits, reader throws(ScenarioError) in
      habits.apart = try reader.range { one throws(ScenarioError) in try one.duration() }
    }, Field("jitter", milliseconds: \.jitter), Field("for", milliseconds: \.duration),
  ]
}

/// The phones and apps that may be named.
struct PlaceNames {
  let phones: [Scenario.PhonePlan]
  private let numbers: [String: Int]
  /// By `anna/messenger`; `anna/*` has all apps of the phone.
  private let known: [String: [Scenario.Place]]

  init(phones: [Scenario.PhonePlan]) {
    self.phones = phones
    var (numbers, known) = ([String: Int](), [String: [Scenario.Place]]())
    for (number, phone) in phones.enumerated() {
      numbers[phone.name] = number
      for (app, description) in phone.apps.enumerated() {
        let place = Scenario.Place(phone: number, app: app)
        for name in [description.name, "*"] {
          known["\(phone.name)/\(name)", default: []].append(place)
        }
      }
    }
    (self.numbers, self.known) = (numbers, known)
  }

  func phone(_ reader: Reader) throws(ScenarioError) -> Int {
    if case .text(let name) = reader.tree.value, let number = numbers[name] { return number }
    // For its error message.
    return try reader.choice(phones.enumerated().map { ($1.name, $0) })
  }

  func place(_ reader: Reader) throws(ScenarioError) -> Scenario.Place {
    let phone = try phone(try reader.required("phone"))
    let apps = phones[phone].apps.enumerated().map { ($1.name, $0) }
    return Scenario.Place(phone: phone, app: try reader.required("app").choice(apps))
  }

  /// `anna/messenger`, or `anna/*` for all.
  private func places(_ reader: Reader) throws(ScenarioError) -> [Scenario.Place] {
    if case .list = reader.tree.value {
      var places: [Scenario.Place] = []
      for item in try reader.list() { places += try self.places(item) }
      guard !places.isEmpty else { throw reader.problem("an app is wanted") }
      return places
    }
    let text = try reader.text()
    guard let found = known[text] else {
      throw reader.problem("\"\(text)\" is no app such as phone/app, or phone/*")
    }
    return found
  }

  // MARK: Events

  static let times = ["at", "every", "count", "until", "perDay"]
  static let keys = Verb.all.reduce(into: times + ["push", "do"]) { keys, verb in
    keys += verb.allKeys.filter { !keys.contains($0) }
  }

  func action(_ reader: Reader) throws(ScenarioError) -> Scenario.Action {
    let verb = try reader.required("do").choice(Verb.all.map { ($0.name, $0) })
    try reader.refuse(Self.keys, but: Self.times + ["do"] + verb.allKeys, of: verb.name)
    return try verb.action(reader, self)
  }

  func event(_ reader: Reader) throws(ScenarioError) -> Scenario.EventPlan {
    try reader.check(Self.keys)
    guard let push = reader["push"] else {
      return Scenario.EventPlan(times: try times(reader), action: try action(reader))
    }
    if let verb = reader["do"] { throw verb.problem("push and do do not go together") }
    try reader.refuse(Self.keys, but: Self.times + ["push"], of: "push")
    let plan = try PushPlan.read(push)
    guard !plan.payloads.isEmpty else { throw push.problem("payload is missing") }
    let places = try places(try push.required("to"))
    return Scenario.EventPlan(
      times: try times(reader), action: .push(to: places, plan.payloads, plan.options))
  }

  private func times(_ reader: Reader) throws(ScenarioError) -> Scenario.EventPlan.Times {
    let until = try reader["until"]?.time() ?? reader.end
    if let perDay = reader["perDay"] {
      if let every = reader["every"] { throw every.problem("every and perDay do not go together") }
      if let count = reader["count"] { throw count.problem("only an event with every has it") }
      let from = try reader["at"]?.time() ?? 0
      guard from < until else {
        throw (reader["until"] ?? reader).problem("it is not later than at")
      }
      return .perDay(try perDay.number(1...100_000), from: from, until: until)
    }
    let at = try reader.required("at").time()
    guard let every = reader["every"] else {
      for name in ["count", "until"] {
        if let extra = reader[name] { throw extra.problem("only an event with every has it") }
      }
      return .once(at)
    }
    let interval = try every.duration()
    guard interval > 0 else { throw every.problem("there must be some time between") }
    guard at <= until else {
      throw try reader.required("until").problem("it is before the first time")
    }
    let count = try reader["count"]?.number(1...1_000_000)
    let fitting = (until - at) / interval + 1
    // With its own `until`, whichever comes first ends it.
    if let count, count > fitting, reader["until"] == nil {
      throw try reader.required("count").problem(
        "only \(fitting) of them fit before the end of the scenario")
    }
    return .every(interval, from: at, until: until, count: count ?? .max)
  }
}

/// A push without its destinations.
struct PushPlan: ReadableObject {
  var payloads: [Payload] = []
  var options = PushOptions()

  static let fields: [Field<PushPlan>] = [
    Field("to", isRequired: true) { _, _ in }, Field("name", \.options.name),
    Field("payload") { push, reader throws(ScenarioError) in
      push.payloads = [try .read(reader)]
    },
    Field("payloads") { push, reader throws(ScenarioError) in
      push.payloads += try [Payload].read(reader)
    }, Field("type", \.options.type), Field("priority", \.options.priority, in: 0...100),
    Field("expires", \.options.expiresAfter), Field("collapse", \.options.collapseID),
    Field("topic", \.options.topic), Field("activity", \.options.activity, in: 1...1_000_000),
    Field("channel") { push, reader throws(ScenarioError) in
      push.options.channel = try ChannelID.read(reader).description
    },
  ]
}

extension Payload: Readable {
  /// An object, kept as written, or `silent`.
  static func read(_ reader: Reader) throws(ScenarioError) -> Payload {
    switch reader.tree.value {
    case .object: return Payload(bytes: reader.tree.source)
    case .text("silent"): return .silent
    case .text, .list, .number, .flag, .null:
      throw reader.problem("an object is wanted, or \"silent\"")
    }
  }
}
