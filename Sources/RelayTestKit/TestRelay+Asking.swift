import AdminAPI
import Cockpit
import Primitives
import RelayServer

extension TestRelay {
  /// A step to wait for.
  public enum Step: String, CaseIterable, Sendable {
    case received, sent, stored, held, delivered, discarded, replaced, expired, outcome
  }

  /// A push that the relay has accepted.
  public struct Push: Hashable, Sendable {
    /// `apns-id` or `apns-unique-id`, from the answer to a push.
    public let id: String

    public init(id: String) { self.id = id }
  }

  /// Pushes as a provider would, without the network. `payload` is a JSON object, sent unchanged;
  /// `headers` are the provider API's, such as `apns-push-type`. Throws `TestRelayError` with
  /// Apple's reason when refused.
  @discardableResult
  public func push(
    _ payload: String, to phone: TestPhone, headers: [String: String] = [:]
  ) async throws -> Push {
    let names = String(decoding: try JSONText.bytes(headers), as: UTF8.self)
    let body =
      #"{"to":"\#(phone.id)","topic":"\#(phone.topic)","headers":\#(names),"payload":\#(payload)}"#
    let answer = try await ask { try await cockpit.push(Array(body.utf8)) }
    guard answer.status == 200, let id = answer.uniqueId else {
      throw TestRelayError(reason: answer.reason ?? "", message: answer.message ?? "")
    }
    return Push(id: id)
  }

  /// A silent push, as Apple wants it: `content-available`, push type background, priority 5.
  @discardableResult
  public func pushSilently(to phone: TestPhone) async throws -> Push {
    try await push(
      #"{"aps":{"content-available":1}}"#, to: phone,
      headers: ["apns-push-type": "background", "apns-priority": "5"])
  }

  /// Waits for a step, past ones included. `within` is how far the relay's clock may be moved,
  /// event by event; nil does not move it. `timeout` is by the machine's time, at most 10 minutes;
  /// zero looks once. Throws `TestRelayError` `NotYet`, or `NeverAgain` when it cannot come.
  public func wait(
    for step: Step, of push: Push, within: Duration? = nil, timeout: Duration = .seconds(10)
  ) async throws {
    let expect = #""expect":{"what":"\#(step.rawValue)","push":"\#(push.id)"}"#
    let within = within.map { #","within":"\#(Self.text($0))","advance":true"# } ?? ""
    let body = #"{\#(expect)\#(within),"timeout":"\#(Self.text(timeout))"}"#
    _ = try await ask { try await cockpit.wait(Array(body.utf8)) }
  }

  /// The state of a push in a sentence: "Held: app budget: 0 of 3 left, …".
  public func explanation(of push: Push) async throws -> String {
    try await ask { try await cockpit.life(push.id) }.sentence ?? ""
  }

  // MARK: Time

  public var nowMilliseconds: Int64 { relay.now.milliseconds }

  /// Moves the relay's clock through all events until then; they are done when this returns.
  public func advance(by length: Duration) async throws {
    _ = try await clock { try await $0.advance(.by(Self.interval(length))) }
  }

  public func save(checkpoint name: String) async throws {
    _ = try await clock { try await $0.saveCheckpoint(name) }
  }

  /// Returns the relay to a saved state; phones hear `rewound` or are disconnected.
  public func restore(checkpoint name: String) async throws {
    _ = try await clock { try await $0.rewind(to: name) }
  }

  private func clock<Value: Sendable>(
    _ body: (VirtualClock) async throws -> Value
  ) async throws -> Value {
    guard let clock = relay.virtualClock else {
      throw TestRelayError(reason: "NotRunning", message: "the relay has ended")
    }
    return try await ask { try await body(clock) }
  }

  // MARK: Details

  private func ask<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch let refusal as Refusal {
      throw TestRelayError(reason: refusal.reason, message: refusal.message)
    } catch let error as VirtualClock.ClockError {
      let refusal = Cockpit.refusal(error)
      throw TestRelayError(reason: refusal.reason, message: refusal.message)
    }
  }

  private static func interval(_ length: Duration) -> Interval {
    .milliseconds(Int64(length / .milliseconds(1)))
  }

  private static func text(_ length: Duration) -> String {
    "\(max(0, Int64(length / .milliseconds(1))))ms"
  }
}
