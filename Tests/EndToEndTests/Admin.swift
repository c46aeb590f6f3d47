import Foundation

/// The admin API of a relay on TCP, by curl.
struct Admin: Sendable {
  struct Answer: Sendable {
    var status: Int
    var body: String

    var json: [String: Any] {
      (try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]) ?? [:]
    }
    var reason: String { json["reason"] as? String ?? "" }
  }

  let relay: RelayProcess
  let token: String

  init(_ relay: RelayProcess) throws {
    self.relay = relay
    token = try String(contentsOfFile: relay.state + "/admin.token", encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }

  func callAsFunction(
    _ method: String, _ path: String, _ body: String? = nil, headers: [String] = [],
    token: String? = nil
  ) async throws -> Answer {
    var arguments = ["-sS", "-m", "60", "-X", method, "-w", "\n%{http_code}"]
    let bearer = token ?? self.token
    if !bearer.isEmpty { arguments += ["-H", "authorization: bearer \(bearer)"] }
    if let body { arguments += ["-H", "content-type: application/json", "-d", body] }
    for header in headers { arguments += ["-H", header] }
    let outcome = try await Program.run("curl", arguments + ["http://\(relay.admin)\(path)"])
    let text = try outcome.checked("curl")
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    return Answer(
      status: Int(lines.last ?? "") ?? 0, body: lines.dropLast().joined(separator: "\n"))
  }
}
