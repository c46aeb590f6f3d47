import RelayClient

/// A provider that broadcasts on a channel of its own.
struct LoadBroadcaster: Sendable {
  let channel: String
  private let topic: String
  private let provider: RelayClient
  private let authorization: [(name: String, value: String)]

  /// Makes the channel, which stores nothing.
  init(
    topic: String, _ token: String?, management: RelayClient, provider: RelayClient
  ) async throws {
    (self.topic, self.provider) = (topic, provider)
    authorization = token.map { [("authorization", "bearer \($0)")] } ?? []
    let answer = try await management.request(
      method: "POST", path: "/1/apps/\(topic)/channels", headers: authorization,
      body: Array(#"{"message-storage-policy":0,"push-type":"LiveActivity"}"#.utf8))
    guard let id = answer.headers["apns-channel-id"] else {
      throw CommandError("the relay makes no channel: \(answer.status) \(answer.text)")
    }
    channel = id
    await management.close()
  }

  /// Broadcasts so often in so many seconds, each due in the middle of its part.
  func send(
    _ count: Int, in seconds: Double, to devices: Int, since start: ContinuousClock.Instant,
    _ tally: LoadTally
  ) async throws {
    let begin = ContinuousClock.now
    for number in 0..<count {
      let due = begin + .seconds((Double(number) + 0.5) * seconds / Double(count))
      try await Task.sleep(until: due, clock: .continuous)
      let sent = Int((due - start) / .microseconds(1))
      let answer = try await provider.request(
        method: "POST", path: "/4/broadcasts/apps/\(topic)",
        headers: authorization + [
          ("apns-channel-id", channel), ("apns-push-type", "liveactivity"),
          ("apns-expiration", "0"), ("apns-priority", "10"),
        ],
        body: Array(
          (#"{"aps":{"event":"update","timestamp":1790000000,"content-state":{"n":\#(number)}},"#
            + #""\#(LoadPhone.member)":\#(sent)}"#).utf8))
      await tally.broadcast(status: answer.status, to: devices)
    }
    await provider.close()
  }
}
