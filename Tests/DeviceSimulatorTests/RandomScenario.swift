import DeviceModel
import Primitives

@testable import DeviceSimulator

/// Scenarios that nobody would write: every verb, every script, in any order.
struct RandomScenario {
  private var random: SeededRandom

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  private mutating func pick<Element>(_ choices: [Element]) -> Element {
    choices[Int(random.below(Int64(choices.count)))]
  }

  private mutating func span(_ milliseconds: Int64) -> String { "\(random.below(milliseconds))ms" }

  private mutating func transfer() -> String {
    let flags = ["upload", "discretionary", "credentials"].map {
      "\"\($0)\":\(pick([true, false]))"
    }
    var document = pick(["", ",\"document\":\(1 + random.below(3))"])
    document += pick(["", #","url":"https://a/b""#, #","url":"http://a","authorization":"k""#])
    return """
      {"name":"t","bytes":\(pick([0, 1, 40_000, 900_000_000])),"session":"\(pick(["a", "b"]))",
      \(flags.joined(separator: ",")),"resumes":\(pick([true, false]))\(document)}
      """
  }

  private mutating func work() -> String {
    var members = [
      "\"takes\":\"\(span(40_000))\"", "\"jitter\":\"\(span(5000))\"",
      "\"bytes\":\(random.below(20_000_000))", "\"energy\":\(random.below(100_000))",
    ]
    members.append(
      pick([
        "\"outcome\":\"newData\"", "\"outcome\":\"noData\"", "\"outcome\":\"failed\"",
        "\"newDataPercent\":50",
      ]))
    members.append(
      pick(["\"handler\":\"called\"", "\"handler\":\"never called\"", "\"handlerLate\":\"20s\""]))
    if random.below(2) == 0 { members.append("\"transfers\":[\(transfer())]") }
    if random.below(3) == 0 { members.append("\"notification\":{\"text\":\"n\",\"badge\":1}") }
    if random.below(3) == 0 {
      members.append(
        "\"task\":{\"takes\":\"\(span(60_000))\",\"endsInTime\":\(pick([true, false]))}")
    }
    members.append("\"reads\":\"\(pick(["complete", "unlessOpen", "untilFirstUnlock", "none"]))\"")
    if random.below(4) == 0 { members.append("\"ignoresSnapshot\":true") }
    if random.below(4) == 0 { members.append("\"brings\":[\"a\",\"b\"]") }
    if random.below(4) == 0 {
      members.append(#""uses":[{"documents":"write:1","line":1,"text":"x"}]"#)
    }
    if random.below(4) == 0 { members.append("\"fetch\":\"\(pick(["never", "minimum", "1h"]))\"") }
    return "{\(members.joined(separator: ","))}"
  }

  private mutating func app(_ number: Int) -> String {
    let modes = pick(["[]", "[\"fetch\"]", "[\"fetch\",\"remote-notification\"]"])
    return """
      {"name":"app\(number)","modes":\(modes),
       "fetch":"\(pick(["never", "minimum", "10m"]))","onPush":\(work()),"onFetch":\(work()),
       "onTransfers":\(work()),\(pick(["", "\"container\":\"provider\",\"onDocument\":{},"]))
       "onAuthentication":{"\(pick(["provides", "cancels"]))":"\(span(5000))"},
       "restoration":{"oldest":"1h","crashes":\(pick([true, false])),"gone":["window"]},
       "activities":["Order"],"frequentUpdates":\(pick([true, false])),
       "onLeave":{"transfers":[\(transfer())],"task":{"takes":"5m"}},
       "state":\(pick(["{}", "{\"window\":{}}", "{\"window/inbox\":{\"k\":1}}"])),
       "hidesContent":\(pick([true, false])),"keepsOneHandler":\(pick([true, false]))}
      """
  }

  private mutating func event() -> String {
    let at = span(20 * 3_600_000)
    let phone = pick(["anna", "ben"])
    let app = "app\(random.below(3))"
    if random.below(5) == 0 {
      let aps = "\"timestamp\":\(random.below(100)),\"content-state\":{\"s\":\(random.below(9))}"
      let start =
        "{\"aps\":{\"event\":\"start\",\(aps),\"attributes-type\":\"Order\",\"attributes\":{}}}"
      let update = "{\"aps\":{\"event\":\"\(pick(["update", "update", "end"]))\",\(aps)}}"
      let push = pick([
        "\"payload\":\(start),\"type\":\"liveactivity\"",
        "\"payload\":\(update),\"activity\":\(1 + random.below(4)),\"priority\":\(pick([5, 10]))",
      ])
      return """
        {"at":"\(at)","every":"5m","count":9,"until":"20h","push":{"to":"\(phone)/\(app)",\(push)}}
        """
    }
    if random.below(3) > 0 {
      let payload = pick([
        "\"silent\"", "{\"aps\":{\"alert\":\"a\"}}", "{}", "{\"aps\":{\"badge\":-5}}",
        "{\"aps\":{\"alert\":\"a\",\"content-available\":1}}", "{\"aps\":7}",
      ])
      let more = pick([
        "", ",\"type\":\"background\"", ",\"type\":\"voip\"", ",\"priority\":5", ",\"priority\":3",
        ",\"expires\":\"0s\",\"name\":\"once\"", ",\"expires\":\"10m\"", ",\"collapse\":\"c\"",
        ",\"topic\":\"x\"",
      ])
      let many = pick([
        "", ",\"every\":\"\(1 + random.below(60))m\",\"count\":20,\"until\":\"20h\"",
      ])
      return """
        {"at":"\(at)"\(many),
         "push":{"to":"\(phone)/\(pick([app, "*"]))","payload":\(payload)\(more)}}
        """
    }
    let verb = pick(Verb.all)
    let to: String =
      switch verb.name {
      case "set fetch": pick(["never", "minimum", "1h"])
      case "network": pick(["wifi", "cellular", "none", "airplane"])
      case "slow journal": pick(["0s", "3s", "2m"])
      case "policy": pick(["documented", "strict", "unlimited"])
      case "export document", "move document": "app\(random.below(4))"
      default: pick(["on", "off"])
      }
    let path = pick(["window", "window/inbox", "gone/"])
    let values = [
      "phone": "\"\(phone)\"", "app": "\"\(app)\"", "name": "\"d\"",
      "bytes": "\(random.below(1_000_000))", "document": "\(1 + random.below(3))",
      "transfer": transfer(), "path": "\"\(path)\"", "key": "\"k\"",
      "value": pick(["true", "7", "\"here\""]), "to": "\"\(to)\"",
      "for": "\"\(span(600_000))\"", "loss": "\(random.below(101))",
      "latency": "\"\(span(3000))\"", "jitter": "\"\(span(3000))\"",
      "documents": "\"\(pick(["read:1", "write:2,write:1", "write:1,read:2,read:3"]))\"",
      "line": "\(1 + random.below(3))",
      "text": verb.name == "rewrite document" ? "\"a|b\"" : pick(["\"a\"", "null"]),
      "version": verb.name == "update" ? "\"2.0\"" : pick(["2", "\"all\""]),
      "activity": "\(1 + random.below(3))", "type": "\"Order\"", "state": "{\"s\":0}",
      "attributes": pick(["null", "{}"]),
      "target": "\"window\"", "folder": "\"work\"", "class": "\"Detail\"", "madeBy": "\"Maker\"",
    ]
    var keys = verb.allKeys
    // Of an app or of all.
    if verb.scope == .appOrPhone, random.below(2) == 0 { keys.removeAll { $0 == "app" } }
    let members = keys.map { "\"\($0)\":\(values[$0] ?? "null")" }
    return "{\"at\":\"\(at)\",\"do\":\"\(verb.name)\",\(members.joined(separator: ","))}"
  }

  /// The text of one.
  mutating func text() -> String {
    let phones = ["anna", "ben"].map { name in
      let apps = (0..<3).map { app($0) }.joined(separator: ",")
      return """
        {"name":"\(name)","network":"\(pick(["wifi", "cellular", "none", "airplane"]))",
         "charging":\(pick([true, false])),"lowPower":\(pick([true, false])),"apps":[\(apps)],
         "usage":[{"app":"app0","at":["07:00","15:00"],"jitter":"2h","for":"1h"}],
         "habits":{"perDay":[1,24],"between":["00:00","23:59"],"apart":["0s","3h"],"jitter":"1h"}}
        """
    }
    let events = (0..<(10 + random.below(60))).map { _ in event() }.joined(separator: ",\n")
    return """
      {"title":"random","length":"20h","seed":\(random.below(1000)),
       "relay":{"policy":\(pick(["\"documented\"", "\"strict\"", "{}",
        "{\"perApp\":{\"count\":1,\"per\":\"0s\"},\"perPhone\":{\"count\":2,\"per\":\"9d\"}}"])),
        "keepAlive":"\(1 + random.below(30))m"},
       "link":{"latency":"\(span(2000))","jitter":"\(span(5000))","reconnect":"\(span(60_000))",
         "loss":\(pick([0, 0, 30]))},
       "phones":[\(phones.joined(separator: ","))],
       "events":[\(events)]}
      """
  }
}
