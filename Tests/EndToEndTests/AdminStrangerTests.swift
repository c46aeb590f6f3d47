import Foundation
import Testing

/// Strangers at the admin listener, and phones that pretend to be others.
@Suite("Strangers of the admin API", .timeLimit(.minutes(2))) struct AdminStrangerTests {
  /// The answer is there; the server would read on for as long as somebody sends.
  @Test(arguments: ["POST /v1/push", "GET /health/live"])
  func aBodyWithoutAnEndEndsItsConnection(request: String) async throws {
    let script = """
      import socket, sys, time
      host, port = sys.argv[1].rsplit(":", 1)
      peer = socket.create_connection((host, int(port)), timeout=20)
      head = [sys.argv[2] + " HTTP/1.1", "host: localhost", "transfer-encoding: chunked", "", ""]
      peer.sendall("\\r\\n".join(head).encode())
      begun = time.monotonic()
      try:
          while time.monotonic() < begun + 30:
              peer.sendall(b"1\\r\\nx\\r\\n" * 1000)
          print("goes on")
      except OSError:
          print("ended")
      """
    try await RelayProcess.run(RelaySetup(arguments: ["--admin", "127.0.0.1:0"])) { relay in
      let admin = try Admin(relay)
      let outcome = try await Program.run("python3", ["-c", script, relay.admin, request])
      #expect(try outcome.checked("python3") == "ended\n")
      #expect(try await admin("GET", "/v1/overview").status == 200)
    }
  }

  /// The relay says 400 and shuts its half; what the peer has yet to send fills both buffers, so
  /// that its end does not come.
  @Test func aHeadWithoutAnEndLeavesNothing() async throws {
    let script = """
      import os, socket, sys, time
      host, port = sys.argv[1].rsplit(":", 1)
      count = lambda: len(os.listdir(f"/proc/{sys.argv[2]}/fd"))
      before = count()
      peer = socket.create_connection((host, int(port)), timeout=2)
      try:
          peer.sendall(b"GET / HTTP/1.1\\r\\nhost: localhost\\r\\n")
          while True:
              peer.sendall((b"x: " + b"y" * 200 + b"\\r\\n") * 500)
      except OSError:
          # Unread, it would end the connection at once.
          assert b" 400 " in peer.recv(65536)
          peer.close()
      end = time.monotonic() + 20
      while count() > before and time.monotonic() < end:
          time.sleep(0.1)
      print("left" if count() > before else "gone")
      """
    try await RelayProcess.run(RelaySetup(arguments: ["--admin", "127.0.0.1:0"])) { relay in
      let outcome = try await Program.run(
        "python3", ["-c", script, relay.admin, "\(relay.processID)"])
      #expect(try outcome.checked("python3") == "gone\n")
    }
  }

  /// Whoever enrols chooses a name: somebody's token as a name gets nothing of his.
  @Test func aTokenIsNoName() async throws {
    try await RelayProcess.run(RelaySetup(arguments: ["--admin", "127.0.0.1:0"])) { relay in
      let admin = try Admin(relay)
      let phone = try await Phone(on: relay)
      let token = try await phone.register()
      let taken = try await admin("POST", "/v1/devices", #"{"name":"\#(token)"}"#)
      #expect(taken.status == 400, "\(taken)")
      let pushed = try await admin(
        "POST", "/v1/push",
        #"{"to":"\#(token)","topic":"\#(Phone.topic)","payload":{"aps":{"alert":"x"}}}"#)
      let id = pushed.json["uniqueId"] as? String ?? ""
      let life = try await admin("GET", "/v1/notifications/\(id)")
      #expect(life.body.contains(phone.id), "\(life)")
    }
  }
}
