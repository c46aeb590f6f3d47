import Foundation
import Testing

/// The table "Who may do what" of docs/OPERATIONS.md, asked of a relay in each profile.
@Suite("Access", .timeLimit(.minutes(2))) struct AccessTests {
  private static let enrolmentKey = "an enrolment key"

  /// A row of the table; the two last are `200`, or a status and a reason.
  private struct Row {
    var listener, who, asks, dev, production: String
  }

  private static func table() throws -> [Row] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(
      contentsOf: root.appendingPathComponent("docs/OPERATIONS.md"), encoding: .utf8)
    let section = try #require(text.components(separatedBy: "### Who may do what\n").last)
    let lines = section.split(separator: "\n").drop { !$0.hasPrefix("|---") }.dropFirst()
    return lines.prefix { $0.hasPrefix("|") }.map { line in
      let cells = line.split(separator: "|").map {
        $0.trimmingCharacters(in: .whitespaces).replacing("`", with: "")
      }
      return Row(
        listener: cells[0], who: cells[1], asks: cells[2], dev: cells[3], production: cells[4])
    }
  }

  /// What the rows need of one relay.
  private struct Scene {
    let relay: RelayProcess
    let phone, other: Phone
    let token, known, unknown, admin: String

    init(_ relay: RelayProcess) async throws {
      self.relay = relay
      phone = try await Phone(on: relay, enrolmentKey: AccessTests.enrolmentKey)
      other = try await Phone(on: relay, enrolmentKey: AccessTests.enrolmentKey)
      token = try await phone.register()
      known = try await relay.providerToken()
      admin = try Admin(relay).token
      let scratch = try Scratch()
      let keys = ["--state", scratch.path, "--key", "STRANGE001", "--team", RelaySetup.teamID]
      _ = try await Program.run(Program.pushrelay, ["key", "new"] + keys).checked("key new")
      unknown = try await Program.run(
        Program.pushrelay, ["jwt", "--state", scratch.path, "--key", "STRANGE001"]
      ).checked("jwt").trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func options(_ who: String) throws -> [String] {
      func bearer(_ secret: String) -> [String] { ["-H", "authorization: bearer \(secret)"] }
      return switch who {
      case "anybody", "its owner": []
      case "a key that is in keys/": bearer(known) + ["-H", "apns-topic: \(Phone.topic)"]
      case "a key that is not in keys/": bearer(unknown) + ["-H", "apns-topic: \(Phone.topic)"]
      case "the enrolment key": bearer(AccessTests.enrolmentKey)
      case "its secret": bearer(phone.secret)
      case "another device's secret": bearer(other.secret)
      case "its token": bearer(admin)
      case "its token, in a page of another site":
        bearer(admin) + ["-H", "origin: http://example.com"]
      case "its token, under another host's name": bearer(admin) + ["-H", "host: example.com"]
      default: try #require(nil as [String]?, "nobody is called \(who)")
      }
    }

    private func base(_ listener: String) throws -> (url: String, options: [String]) {
      switch listener {
      case "provider": (relay.providerURL, ["--http2-prior-knowledge"])
      case "device": (relay.deviceURL, ["--http2-prior-knowledge"])
      case "admin": ("http://\(relay.admin)", [])
      case "admin.sock": ("http://localhost", ["--unix-socket", relay.state + "/admin.sock"])
      default: try #require(nil as (String, [String])?, "there is no listener \(listener)")
      }
    }

    /// The status, and the reason where there is one.
    func answer(_ row: Row) async throws -> String {
      let asks = row.asks.replacing("TOKEN", with: token).replacing("DEVICE", with: phone.id)
        .split(separator: " ", maxSplits: 2).map(String.init)
      let base = try base(row.listener)
      var arguments = ["-sS", "-m", "20", "-X", asks[0], "-w", "\n%{http_code}"]
      arguments += base.options + (try options(row.who))
      let payload = row.listener == "provider" && asks[0] == "POST" ? Push.alert : nil
      if let body = asks.dropFirst(2).first ?? payload {
        arguments += ["-H", "content-type: application/json", "--data-binary", body]
      }
      let said = try await Program.run("curl", arguments + [base.url + asks[1]]).checked("curl")
      let lines = said.split(separator: "\n", omittingEmptySubsequences: false)
      let body = lines.dropLast().joined(separator: "\n")
      let json = try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
      return ([String(lines.last ?? "")] + [json?["reason"] as? String].compactMap(\.self))
        .joined(separator: " ")
    }
  }

  @Test(arguments: ["dev", "production"])
  func whatTheTableSays(profile: String) async throws {
    var setup = RelaySetup(plaintext: true)
    setup.arguments = ["--profile", profile, "--store", "memory", "--admin", "127.0.0.1:0"]
    if profile == "production" {
      setup.environment = ["PUSHRELAY_ENROLMENT_KEY": Self.enrolmentKey]
    }
    let table = try Self.table()
    #expect(table.count > 25)
    try await RelayProcess.run(setup) { relay in
      let scene = try await Scene(relay)
      for row in table {
        let answer = try await scene.answer(row)
        let wanted = profile == "dev" ? row.dev : row.production
        #expect(answer == wanted, "\(row.listener), \(row.who): \(row.asks)")
      }
    }
  }
}
