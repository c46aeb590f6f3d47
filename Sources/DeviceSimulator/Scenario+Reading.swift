import DeviceModel
import Primitives
import RelayCore

/// Reading a scenario: everything in it is checked before anything is played.
extension Scenario {
  /// - Parameters:
  ///   - json: the bytes of the file.
  ///   - file: its name, for errors.
  public init(json: [UInt8], file: String) throws(ScenarioError) {
    let tree: JSONTree
    do {
      tree = try JSONTree.read(json)
    } catch {
      throw ScenarioError(file: file, line: error.line, key: "", text: error.text)
    }
    let reader = Reader(file: file, tree: tree, key: "")
    try reader.check(ScenarioKeys.scenario)
    self.file = file
    title = try reader.required("title").text()
    about = try reader["about"]?.text() ?? ""
    seed = UInt64(try reader["seed"]?.number(0...Int64(1) << 53) ?? 1)
    length = try Self.length(try reader.required("length"))
    let relay = reader["relay"]
    try relay?.check(ScenarioKeys.relay)
    policy =
      try relay?["policy"].map { policy throws(ScenarioError) in
        try RelayPolicy.read(policy)
      } ?? .documented
    keepAlive = try Self.keepAlive(relay?["keepAlive"])
    link = try LinkModel.read(reader["link"])
    var phones: [PhonePlan] = []
    var taken: Set<String> = []
    for phone in try reader.required("phones").list() {
      let plan = try PhonePlan(phone, length: length)
      guard taken.insert(plan.name).inserted else {
        throw phone.problem("there are two phones with the name \"\(plan.name)\"")
      }
      phones.append(plan)
    }
    self.phones = phones
    let names = PlaceNames(phones: phones, length: length)
    var events: [EventPlan] = []
    for event in try reader.list("events") { events.append(try names.event(event)) }
    self.events = events
    let pushes = PushNames(events, length: length)
    var expectations: [Expectation] = []
    for item in try reader.list("expect") {
      expectations.append(try Expectation(item, names, pushes))
    }
    self.expectations = expectations
    try checkSize(reader)
  }

  private static func length(_ reader: Reader) throws(ScenarioError) -> Int64 {
    let length = try reader.duration()
    guard length <= 400 * TimeText.day else { throw reader.problem("the most is 400d") }
    return length
  }

  private static func keepAlive(_ reader: Reader?) throws(ScenarioError) -> Int64 {
    guard let reader else { return 900_000 }
    let interval = try reader.duration()
    guard interval >= 60_000 else { throw reader.problem("the least is 1m") }
    return interval
  }

  /// A mistake in a number must not fill the memory.
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

extension RelayPolicy {
  fileprivate static func read(_ reader: Reader) throws(ScenarioError) -> RelayPolicy {
    if case .text(let name) = reader.tree.value {
      guard let policy = named(name) else {
        throw reader.problem(
          "\"\(name)\" is none of documented, strict, unlimited, or an object with limits")
      }
      return policy
    }
    try reader.check(ScenarioKeys.policy)
    func rate(_ name: String) throws(ScenarioError) -> Rate? {
      guard let reader = reader[name] else { return nil }
      try reader.check(ScenarioKeys.rate)
      let count = try reader.required("count").number(1...1_000_000)
      let burst = try reader["burst"]?.number(1...1000) ?? min(count, 1000)
      return Rate(Int(count), per: try reader.required("per").span(), burst: Int(burst))
    }
    return custom(perApp: try rate("perApp"), perPhone: try rate("perPhone"))
  }
}

extension LinkModel {
  fileprivate static func read(_ reader: Reader?) throws(ScenarioError) -> LinkModel {
    var link = LinkModel()
    guard let reader else { return link }
    try reader.check(ScenarioKeys.link)
    if let latency = reader["latency"] { link.latency = try latency.span() }
    if let jitter = reader["jitter"] { link.jitter = try jitter.span() }
    if let reconnect = reader["reconnect"] { link.reconnect = try reconnect.span() }
    if let loss = reader["loss"] { link.lossPercent = Int(try loss.number(0...100)) }
    return link
  }
}

extension Scenario.PhonePlan {
  init(_ reader: Reader, length: Int64) throws(ScenarioError) {
    try reader.check(ScenarioKeys.phone)
    self.init(name: try reader.required("name").text())
    network = try reader["network"]?.choice(Network.self) ?? .wifi
    isCharging = try reader["charging"]?.flag() ?? false
    isLowPower = try reader["lowPower"]?.flag() ?? false
    account = try reader["account"]?.text()
    hasDrive = try reader["iCloudDrive"]?.flag() ?? true
    for (name, value) in try reader["limits"]?.members() ?? [] {
      let text =
        if case .text(let text) = value.tree.value { text } else {
          String(try value.number(0...1_000_000_000_000))
        }
      guard limits.set(name, to: text) else {
        throw value.problem("there is no such limit, or it is no such value (PhoneLimits.swift)")
      }
    }
    guard limits.relationsHold else { throw reader.problem("the limits contradict each other") }
    for app in try reader.list("apps") {
      for description in try AppDefinition.readAll(app) {
        guard !apps.contains(where: { $0.name == description.name }) else {
          throw app.problem("there are two apps with the name \"\(description.name)\"")
        }
        apps.append(description)
      }
    }
    for item in try reader.list("usage") {
      usage.append(try Scenario.Usage(item, apps: apps.map(\.name), length: length))
    }
    habits = try reader["habits"].map { habits throws(ScenarioError) in
      try Scenario.Habits(habits, length: length)
    }
  }
}

extension Scenario.Usage {
  fileprivate init(_ reader: Reader, apps: [String], length: Int64) throws(ScenarioError) {
    try reader.check(ScenarioKeys.usage)
    app = try reader.required("app").choice(apps.enumerated().map { ($1, $0) })
    var clocks: [Int64] = []
    for item in try reader.required("at").list() {
      let clock = try item.clock()
      guard clock <= length else { throw item.isOver(after: length) }
      clocks.append(clock)
    }
    self.clocks = clocks
    days =
      try reader["days"]?.choice([
        ("every day", .all), ("weekdays", .weekdays), ("weekends", .weekends),
      ]) ?? .all
    jitter = try reader["jitter"]?.duration() ?? 0
    duration = try reader["for"]?.duration() ?? 60_000
  }
}

extension Scenario.Habits {
  fileprivate init(_ reader: Reader, length: Int64) throws(ScenarioError) {
    try reader.check(ScenarioKeys.habits)
    perDay = try reader.required("perDay").range { one throws(ScenarioError) in
      try one.number(1...24)
    }
    between = try reader.required("between").range { one throws(ScenarioError) in
      try one.clock()
    }
    guard between.lowerBound <= length else {
      throw try reader.required("between").isOver(after: length)
    }
    apart = try reader.required("apart").range { one throws(ScenarioError) in
      try one.duration()
    }
    jitter = try reader["jitter"]?.duration() ?? 0
    duration = try reader["for"]?.duration() ?? 60_000
  }
}

/// Which phones and apps there are to be named.
struct PlaceNames {
  let phones: [Scenario.PhonePlan]
  let length: Int64
  private let numbers: [String: Int]
  /// By `anna/messenger`, and by `anna/*` for each of hers.
  private let known: [String: [Scenario.Place]]

  init(phones: [Scenario.PhonePlan], length: Int64) {
    (self.phones, self.length) = (phones, length)
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
    // Says what there is.
    return try reader.choice(phones.enumerated().map { ($1.name, $0) })
  }

  func app(_ reader: Reader, on phone: Int) throws(ScenarioError) -> Scenario.Place {
    let app = try reader.choice(phones[phone].apps.enumerated().map { ($1.name, $0) })
    return Scenario.Place(phone: phone, app: app)
  }

  /// `anna/messenger`, or `anna/*` for each of them.
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

  // MARK: What is done

  func action(_ reader: Reader) throws(ScenarioError) -> Scenario.Action {
    let verb = try reader.required("do").choice(Verb.all.map { ($0.name, $0) })
    try reader.refuse(
      ScenarioKeys.event, but: ScenarioKeys.times + ["do"] + verb.allKeys, of: verb.name)
    switch verb.deed {
    case .app(let deed):
      let phone = try self.phone(try reader.required("phone"))
      return .app(try app(try reader.required("app"), on: phone), try deed(reader))
    case .phone(let deed):
      return .phone(try phone(try reader.required("phone")), try deed(reader))
    case .either(let ofApp, let ofPhone):
      let phone = try self.phone(try reader.required("phone"))
      guard let app = reader["app"] else { return .phone(phone, try ofPhone(reader)) }
      return .app(try self.app(app, on: phone), try ofApp(reader))
    case .relay(let deed): return .relay(try deed(reader))
    }
  }

  // MARK: Events

  func event(_ reader: Reader) throws(ScenarioError) -> Scenario.EventPlan {
    try reader.check(ScenarioKeys.event)
    let action: Scenario.Action
    if let push = reader["push"] {
      if let verb = reader["do"] { throw verb.problem("push and do do not go together") }
      try reader.refuse(ScenarioKeys.event, but: ScenarioKeys.times + ["push"], of: "push")
      action = try self.push(push)
    } else {
      action = try self.action(reader)
    }
    return Scenario.EventPlan(times: try times(reader), action: action)
  }

  private func times(_ reader: Reader) throws(ScenarioError) -> Scenario.EventPlan.Times {
    let until = try reader["until"]?.time(upTo: length) ?? length
    if let perDay = reader["perDay"] {
      if let every = reader["every"] { throw every.problem("every and perDay do not go together") }
      if let count = reader["count"] { throw count.problem("only an event with every has it") }
      let from = try reader["at"]?.time(upTo: length) ?? 0
      guard from < until else {
        throw (reader["until"] ?? reader).problem("it is not later than at")
      }
      return .perDay(try perDay.number(1...100_000), from: from, until: until)
    }
    let at = try reader.required("at").time(upTo: length)
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
    // With an `until` of its own it is plain that whichever comes first ends it.
    if let count, count > fitting, reader["until"] == nil {
      throw try reader.required("count").problem(
        "only \(fitting) of them fit before the end of the scenario")
    }
    return .every(interval, from: at, until: until, count: count ?? .max)
  }

  private func push(_ reader: Reader) throws(ScenarioError) -> Scenario.Action {
    try reader.check(ScenarioKeys.push)
    var payloads: [Payload] = []
    if let payload = reader["payload"] { payloads.append(try self.payload(payload)) }
    for payload in try reader.list("payloads") { payloads.append(try self.payload(payload)) }
    guard !payloads.isEmpty else { throw reader.problem("payload is missing") }
    let priority = try reader["priority"].map { priority throws(ScenarioError) in
      try priority.number(0...100)
    }
    let options = PushOptions(
      name: try reader["name"]?.text(), type: try reader["type"]?.text(),
      priority: priority.map { Int($0) }, expiresAfter: try reader["expires"]?.span(),
      collapseID: try reader["collapse"]?.text(), topic: try reader["topic"]?.text())
    return .push(to: try places(try reader.required("to")), payloads, options)
  }

  /// An object, taken as it is written; or `silent`, for the usual one.
  private func payload(_ reader: Reader) throws(ScenarioError) -> Payload {
    switch reader.tree.value {
    case .object: return Payload(bytes: reader.tree.source)
    case .text("silent"): return .silent
    case .text, .list, .number, .flag, .null:
      throw reader.problem("an object is wanted, or \"silent\"")
    }
  }
}
