import AdminAPI
import Hummingbird
import Primitives
import RelayCore
import RelayFaults
import RelayServer

/// Failures on purpose, counted, so that a test can assert them.
struct FaultRoutes {
  let relay: Relay

  func add(to router: Router<AdminContext>) {
    router.get("/v1/faults") { _, _ in
      try Response(json: ["faults": relay.faults.map(FaultStatus.init)])
    }
    router.get("/v1/faults/:name") { _, context in
      let name = try context.name()
      guard let rule = relay.faults.first(where: { $0.name == name }) else { throw Self.unknown }
      return try Response(json: FaultStatus(rule))
    }
    router.put("/v1/faults/:name") { request, context in
      let name = try context.name()
      guard relay.mayFail else {
        throw Refusal(
          403, "FaultsDisabled", "in the production profile nothing goes wrong on purpose")
      }
      let fault = try FaultWish.fault(try await request.bytes())
      guard await relay.put(fault, named: name),
        let rule = relay.faults.first(where: { $0.name == name })
      else {
        throw Refusal.conflict("TooManyFaults", "there are \(Limits.faults) faults; remove some")
      }
      return try Response(json: FaultStatus(rule))
    }
    router.delete("/v1/faults/:name") { _, context in
      guard await relay.removeFault(named: try context.name()) else { throw Self.unknown }
      return Response(status: .noContent)
    }
    router.get("/v1/reserved-tokens") { _, _ in
      try Response(json: ["tokens": Rejection.allCases.map(ReservedTokenStatus.init)])
    }
  }

  private static let unknown = Refusal.missing(
    "UnknownFault",
    "no fault has this name; 'pushrelay fault list' says which there are")
}

/// The body of `PUT /v1/faults/{name}`:
/// `{"at":"provider","match":{"topic":"…"},"do":{"answer":"BadTopic"},
/// "when":{"skip":2,"times":3,"probability":1,"rate":{"over":9,"per":"1m"}},"seed":7,"for":"5m"}`.
enum FaultWish {
  static func fault(_ bytes: [UInt8]) throws -> Fault {
    let members = try JSONMembers(bytes, known: ["at", "match", "do", "when", "seed", "for"])
    let place: Fault.Place = try Refusal.read(members.text("at"), "at", oneOf: \.rawValue)
    var fault = Fault(place, try action(members, at: place))
    fault.match = try match(members)
    fault.when = try when(members)
    if let seed = try members.integer("seed") { fault.seed = UInt64(bitPattern: seed) }
    fault.duration = try length(members.text("for"), field: "for")
    return fault
  }

  private static func action(_ members: JSONMembers, at place: Fault.Place) throws -> Fault.Action {
    let known = place.actions.map(\.rawValue)
    let choice = #"do is an object with one of \#(known.joined(separator: ", "))"#
    guard let wish = try members.object("do", known: Set(known)) else {
      throw Refusal.body(choice, field: "do")
    }
    let names = wish.names
    guard let name = names.first, names.count == 1, let kind = Fault.Action.Kind(rawValue: name)
    else { throw Refusal.body(choice, field: "do") }
    func length() throws -> Interval {
      if let length = try Self.length(wish.text(name), field: "do.\(name)") { return length }
      throw Refusal.body("\(name) is a length of time such as 2s", field: "do.\(name)")
    }
    func plain(_ action: Fault.Action) throws -> Fault.Action {
      if try wish.flag(name) == true { return action }
      throw Refusal.body("\(name) is true", field: "do.\(name)")
    }
    switch kind {
    case .answer:
      let reason = try wish.text(name)
      if let rejection = Rejection.allCases.first(where: { $0.reason == reason }) {
        return .answer(rejection)
      }
      guard let refusal = reason.flatMap(ChannelRefusal.init(reason:)) else {
        throw Refusal.body(
          "answer is a reason of the provider API or of channels, such as ServiceUnavailable",
          field: "do.answer")
      }
      return .answerChannels(refusal)
    case .delay: return .delay(try length())
    case .stall: return .stall(try length())
    case .goAway: return .goAway(try Refusal.read(wish.text(name), "do.goaway", oneOf: \.rawValue))
    case .drop: return try plain(.drop)
    case .reset: return try plain(.reset)
    case .duplicate: return try plain(.duplicate)
    case .halfClose: return try plain(.halfClose)
    case .blackhole: return try plain(.blackhole)
    case .failWrite: return try plain(.failWrite)
    }
  }

  private static func match(_ members: JSONMembers) throws -> Fault.Match {
    var match = Fault.Match()
    let known: Set<String> = ["topic", "device", "token", "kind"]
    guard let wish = try members.object("match", known: known) else { return match }
    match.topic = try Refusal.topic(wish.text("topic"), "match.topic")
    match.device = try Refusal.device(wish.text("device"), "match.device")
    match.token = try Refusal.token(wish.text("token"), "match.token")
    match.kind = try Refusal.kind(wish.text("kind"), "match.kind")
    return match
  }

  private static func when(_ members: JSONMembers) throws -> Fault.When {
    var when = Fault.When()
    let known: Set<String> = ["skip", "times", "probability", "rate"]
    guard let wish = try members.object("when", known: known) else { return when }
    when.skip = try count(wish, "skip", from: 0) ?? 0
    when.times = try count(wish, "times", from: 1)
    if let chance = try wish.number("probability") {
      guard (0...1).contains(chance) else {
        throw Refusal.body("probability is a number from 0 to 1", field: "when.probability")
      }
      when.probability = chance
    }
    guard let rate = try wish.object("rate", known: ["over", "per"]) else { return when }
    guard let over = try rate.integer("over"), (1...1_000_000).contains(over),
      let period = try length(rate.text("per"), field: "when.rate.per")
    else {
      throw Refusal.body(
        #"rate is {"over":100,"per":"1m"}: what comes beyond it is hit"#, field: "when.rate")
    }
    when.over = RateLimit(over, per: period, burst: over)
    return when
  }

  private static func count(
    _ members: JSONMembers, _ name: String, from least: Int64
  ) throws -> Int? {
    guard let number = try members.integer(name) else { return nil }
    guard (least...1_000_000_000).contains(number) else {
      throw Refusal.body("\(name) is a whole number from \(least)", field: "when.\(name)")
    }
    return Int(number)
  }

  private static func length(_ text: String?, field: String) throws -> Interval? {
    guard let text else { return nil }
    guard let length = Interval(text), length > .zero, length <= .days(30) else {
      throw Refusal.body("\(field) is a length of time such as 5m, at most 30d", field: field)
    }
    return length
  }
}
