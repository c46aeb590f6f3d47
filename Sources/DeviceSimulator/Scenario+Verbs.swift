/// Reading what people do, and what happens to phones.
extension PlaceNames {
  private static let appVerbs = [
    "open", "open banner", "swipe away", "use", "crash", "set fetch", "queue transfer",
    "create document", "remember", "show",
  ]
  private static let phoneVerbs = [
    "unlock", "lock", "leave", "reboot", "exhaust memory", "network", "charger", "low power",
    "change document",
  ]
  /// What `do` may say. `refresh` is of an app, or of all.
  static let verbs = appVerbs + phoneVerbs + ["refresh", "policy"]

  func action(_ reader: Reader) throws(ScenarioProblem) -> Scenario.Action {
    let verb = try reader.required("do").choice(Self.verbs.map { ($0, $0) })
    try reader.refuse(
      ScenarioKeys.event, but: ScenarioKeys.times + ["do"] + Self.keys(of: verb), of: verb)
    if verb == "policy" {
      let to = try reader.required("to")
      guard let policy = RelayPolicy.named(try to.text()) else {
        throw to.problem("\"\(try to.text())\" is none of documented, strict, unlimited")
      }
      return .policy(policy)
    }
    let phone = try self.phone(try reader.required("phone"))
    if Self.appVerbs.contains(verb) || verb == "refresh" && reader["app"] != nil {
      let place = try app(try reader.required("app"), on: phone)
      return .app(place, try appVerb(verb, reader))
    }
    return .phone(phone, try phoneVerb(verb, reader))
  }

  /// What a verb may have beside the times.
  static func keys(of verb: String) -> [String] {
    let own: [String] =
      switch verb {
      case "use": ["for"]
      case "set fetch", "network", "charger", "low power", "policy": ["to"]
      case "queue transfer": ["transfer"]
      case "create document": ["name", "bytes"]
      case "change document": ["document", "bytes"]
      case "remember": ["path", "key", "value"]
      case "show": ["path"]
      case "refresh": ["app", "to"]
      default: []
      }
    if verb == "policy" { return own }
    return (appVerbs.contains(verb) ? ["phone", "app"] : ["phone"]) + own
  }

  private func appVerb(
    _ verb: String, _ reader: Reader
  ) throws(ScenarioProblem) -> Scenario.AppVerb {
    switch verb {
    case "open": return .open
    case "open banner": return .openBanner
    case "swipe away": return .swipeAway
    case "use": return .use(try reader["for"]?.duration() ?? 60_000)
    case "crash": return .crash
    case "set fetch": return .fetch(try FetchWish.read(try reader.required("to")))
    case "queue transfer":
      return .transfer(try TransferDescription.read(try reader.required("transfer")))
    case "create document":
      return .createDocument(
        try reader.required("name").text(), bytes: try bytes(reader))
    case "remember":
      return .remember(
        path: try reader.required("path").text(), key: try reader.required("key").text(),
        try StateMemo.read(try reader.required("value")))
    case "show": return .show(path: try reader.required("path").text())
    default: return .refresh(try isOn(reader))
    }
  }

  private func phoneVerb(
    _ verb: String, _ reader: Reader
  ) throws(ScenarioProblem) -> Scenario.PhoneVerb {
    switch verb {
    case "unlock": return .unlock
    case "lock": return .lock
    case "leave": return .leave
    case "reboot": return .reboot
    case "exhaust memory": return .exhaustMemory
    case "network": return .network(try reader.required("to").choice(NetworkKind.self))
    case "charger": return .charger(try isOn(reader))
    case "low power": return .lowPower(try isOn(reader))
    case "change document":
      return .changeDocument(
        Int(try reader.required("document").number(1...10_000)), bytes: try bytes(reader))
    default: return .refresh(try isOn(reader))
    }
  }

  private func isOn(_ reader: Reader) throws(ScenarioProblem) -> Bool {
    try reader.required("to").choice([("on", true), ("off", false)])
  }

  private func bytes(_ reader: Reader) throws(ScenarioProblem) -> Int {
    Int(try reader.required("bytes").number(0...1_000_000_000_000))
  }
}
