/// Reading what phones and apps are.
extension Scenario.PhonePlan {
  init(_ reader: Reader, length: Int64) throws(ScenarioProblem) {
    try reader.check(ScenarioKeys.phone)
    name = try reader.required("name").text()
    network = try reader["network"]?.choice(NetworkKind.self) ?? .wifi
    isCharging = try reader["charging"]?.flag() ?? false
    isLowPower = try reader["lowPower"]?.flag() ?? false
    var apps: [AppDescription] = []
    for app in try reader.list("apps") {
      for description in try AppDescription.read(app) {
        guard !apps.contains(where: { $0.name == description.name }) else {
          throw app.problem("there are two apps with the name \"\(description.name)\"")
        }
        apps.append(description)
      }
    }
    self.apps = apps
    var usage: [Scenario.Usage] = []
    for item in try reader.list("usage") {
      usage.append(try Scenario.Usage(item, apps: apps.map(\.name), length: length))
    }
    self.usage = usage
    habits = try reader["habits"].map { habits throws(ScenarioProblem) in
      try Scenario.Habits(habits, length: length)
    }
  }
}

extension Scenario.Usage {
  fileprivate init(_ reader: Reader, apps: [String], length: Int64) throws(ScenarioProblem) {
    try reader.check(ScenarioKeys.usage)
    app = try reader.required("app").choice(apps.enumerated().map { ($1, $0) })
    var clocks: [Int64] = []
    for item in try reader.required("at").list() {
      let clock = try item.clock()
      guard clock <= length else { throw item.isOver(after: length) }
      clocks.append(clock)
    }
    self.clocks = clocks
    jitter = try reader["jitter"]?.duration() ?? 0
    duration = try reader["for"]?.duration() ?? 60_000
  }
}

extension Scenario.Habits {
  fileprivate init(_ reader: Reader, length: Int64) throws(ScenarioProblem) {
    try reader.check(ScenarioKeys.habits)
    perDay = try reader.required("perDay").range { one throws(ScenarioProblem) in
      try one.number(1...24)
    }
    between = try reader.required("between").range { one throws(ScenarioProblem) in
      try one.clock()
    }
    guard between.lowerBound <= length else {
      throw try reader.required("between").isOver(after: length)
    }
    apart = try reader.required("apart").range { one throws(ScenarioProblem) in
      try one.duration()
    }
    jitter = try reader["jitter"]?.duration() ?? 0
    duration = try reader["for"]?.duration() ?? 60_000
  }
}

extension AppDescription {
  /// One app, or its copies, whose names have numbers in the place of `#`.
  fileprivate static func read(_ reader: Reader) throws(ScenarioProblem) -> [AppDescription] {
    try reader.check(ScenarioKeys.app)
    let name = try reader.required("name").text()
    var app = AppDescription(name, modes: [.remoteNotification])
    if let modes = reader["modes"] {
      app.modes = []
      for mode in try modes.list() { app.modes.insert(try mode.choice(BackgroundMode.self)) }
    }
    if let fetch = reader["fetch"] { app.fetch = try FetchWish.read(fetch) }
    if let work = reader["onPush"] { app.onPush = try Work.read(work) }
    if let work = reader["onFetch"] { app.onFetch = try Work.read(work) }
    if let work = reader["onTransfers"] { app.onTransfers = try Work.read(work) }
    if let leave = reader["onLeave"] {
      try leave.check(ScenarioKeys.leave)
      app.transfersOnLeave = try TransferDescription.readList(leave, "transfers")
      if let task = leave["task"] { app.taskOnLeave = try TaskDescription.read(task) }
    }
    if let time = reader["contentTime"] { app.contentTime = try time.span() }
    app.state = try StateDescription.readAll(reader["state"])
    app.hidesContent = try reader["hidesContent"]?.flag() ?? false
    app.keepsOneHandler = try reader["keepsOneHandler"]?.flag() ?? false
    guard let copies = reader["copies"] else { return [app] }
    let count = try copies.number(1...256)
    guard name.contains("#") else {
      throw copies.problem("the name needs a # where the copies' numbers go")
    }
    return (1...count).map { number in
      var copy = app
      copy.name = name.split(separator: "#", omittingEmptySubsequences: false)
        .joined(separator: String(number))
      return copy
    }
  }
}

extension FetchWish {
  static func read(_ reader: Reader) throws(ScenarioProblem) -> FetchWish {
    switch try reader.text() {
    case "never": return .never
    case "minimum": return .minimum
    case let text:
      guard let time = TimeText.duration(text) else {
        throw reader.problem(
          "\"\(text)\" is none of never, minimum, or a length of time such as 15m")
      }
      return .notWithin(.milliseconds(time))
    }
  }
}

extension Work {
  fileprivate static func read(_ reader: Reader) throws(ScenarioProblem) -> Work {
    try reader.check(ScenarioKeys.work)
    var work = Work()
    if let time = reader["takes"] { work.takes = try time.span() }
    if let time = reader["jitter"] { work.jitter = try time.span() }
    work.remembers = try StateDescription.readAll(reader["remembers"])
    if let bytes = reader["bytes"] { work.bytes = Int(try bytes.number(0...1_000_000_000_000)) }
    if let energy = reader["energy"] { work.energy = Int(try energy.number(0...1_000_000_000)) }
    if let outcome = reader["outcome"] {
      work.outcome = try outcome.choice([
        ("newData", .newData), ("noData", .noData), ("failed", .failed),
      ])
    }
    if let percent = reader["newDataPercent"] {
      work.outcome = .newDataPercent(Int(try percent.number(0...100)))
    }
    if let handler = reader["handler"] {
      work.handler = try handler.choice([("called", .called), ("never called", .neverCalled)])
    }
    if let late = reader["handlerLate"] { work.handler = .calledLate(try late.span()) }
    work.transfers = try TransferDescription.readList(reader, "transfers")
    if let notification = reader["notification"] {
      try notification.check(ScenarioKeys.notification)
      work.notification = LocalBanner(
        try notification.required("text").text(),
        badge: try notification["badge"].map { badge throws(ScenarioProblem) in
          Int(try badge.number(0...1_000_000))
        }, hasSound: try notification["sound"]?.flag() ?? false)
    }
    if let task = reader["task"] { work.task = try TaskDescription.read(task) }
    if let fetch = reader["fetch"] { work.fetch = try FetchWish.read(fetch) }
    return work
  }
}

extension TaskDescription {
  fileprivate static func read(_ reader: Reader) throws(ScenarioProblem) -> TaskDescription {
    try reader.check(ScenarioKeys.task)
    return TaskDescription(
      takes: try reader.required("takes").span(),
      endsInTime: try reader["endsInTime"]?.flag() ?? true)
  }
}

extension TransferDescription {
  fileprivate static func readList(
    _ reader: Reader, _ name: String
  ) throws(ScenarioProblem) -> [TransferDescription] {
    var transfers: [TransferDescription] = []
    for transfer in try reader.list(name) { transfers.append(try read(transfer)) }
    return transfers
  }

  static func read(_ reader: Reader) throws(ScenarioProblem) -> TransferDescription {
    try reader.check(ScenarioKeys.transfer)
    var transfer = TransferDescription(
      try reader.required("name").text(),
      bytes: Int(try reader.required("bytes").number(0...1_000_000_000_000)))
    transfer.session = try reader["session"]?.text() ?? transfer.session
    transfer.isUpload = try reader["upload"]?.flag() ?? false
    transfer.isDiscretionary = try reader["discretionary"]?.flag() ?? false
    transfer.demandsCredentials = try reader["credentials"]?.flag() ?? false
    transfer.resumes = try reader["resumes"]?.flag() ?? true
    if let document = reader["document"] {
      transfer.document = Int(try document.number(1...10_000))
    }
    transfer.url = try reader["url"]?.webAddress()
    if let authorization = reader["authorization"] {
      guard transfer.url != nil else {
        throw authorization.problem("only a transfer with a url has a server that asks for it")
      }
      transfer.authorization = try authorization.fieldValue()
    }
    return transfer
  }
}
