import Foundation
import Testing

/// Somebody sets the clock of the machine on which a relay runs.
@Suite("The machine's clock is set", .timeLimit(.minutes(2))) struct ClockStepTests {
  private func now(_ admin: Admin) async throws -> Int64 {
    try #require(try await admin("GET", "/v1/overview").json["now"] as? NSNumber).int64Value
  }

  /// The relay's time follows, and goes on: what is pushed with ten minutes to live is kept, though
  /// an hour ago it was an hour later, and what was stored before is still there.
  @Test(arguments: [-3600, 3600, -2_592_000])
  func itIsFollowedAndNothingIsLost(step: Int) async throws {
    let path = FileManager.default.temporaryDirectory.path + "/pushrelay-offset-\(UUID())"
    defer { try? FileManager.default.removeItem(atPath: path) }
    // Whoever reads it meanwhile sees one of both.
    func set(_ seconds: Int) throws {
      try Data("\(seconds)".utf8).write(to: URL(filePath: path), options: .atomic)
    }
    try set(0)
    let library = try #require(try await ClockOffset.library.value, "a C compiler is needed")
    let setup = RelaySetup(
      arguments: ["--admin", "127.0.0.1:0"],
      environment: ["LD_PRELOAD": library, "CLOCK_OFFSET_FILE": path])
    try await RelayProcess.run(setup) { relay in
      let admin = try Admin(relay)
      let phone = try await Phone(on: relay)
      _ = try await phone.register()
      func push(_ kind: String, _ headers: String, _ aps: String) async throws {
        let answer = try await admin(
          "POST", "/v1/push",
          #"{"to":"\#(phone.id)","headers":{\#(headers)},"payload":{"aps":{\#(aps)}}}"#)
        #expect(answer.status == 200, "\(kind): \(answer.body)")
      }
      try await push(
        "silent", #""apns-push-type":"background","apns-priority":"5""#, #""content-available":1"#)
      let before = try await now(admin)
      try set(step)
      let wanted = before + Int64(step) * 1000
      var after = before
      // It looks once a second.
      while abs(after - wanted) > 30_000 { after = try await now(admin) }
      try await push(
        "visible", #""apns-expiration":"\#(after / 1000 + 600)""#, #""alert":"Hello""#)
      let app = try #require(try await phone.report().apps.first)
      #expect(app.visible != nil, "kept, with ten minutes to live")
      #expect(app.silent != nil, "what was stored before is there")
      let later = try await now(admin)
      #expect(later >= after && later - after < 30_000, "it goes on from there")
    }
  }
}
