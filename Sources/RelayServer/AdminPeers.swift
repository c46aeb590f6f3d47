import DeviceLink
import Primitives
package import RelayCore

/// Providers and phones that use the admin API instead of a connection of their own. Their
/// addresses have the connection of operators.
struct AdminPeers {
  private enum Peer {
    case provider((ProviderAnswer) -> Void, since: Instant)
    case device((DeviceAnswer) -> Void, since: Instant)
    case listener(Listener)
  }

  private struct Listener {
    let device: DeviceID
    let lines: AsyncStream<AdminLine>.Continuation
    var unwritten = 0
  }

  private var peers: [Int32: Peer] = [:]
  private var last: Int32 = 0
  /// Set when the relay is about to end: new requests are refused.
  private(set) var isEnding = false

  private mutating func add(_ peer: Peer) -> Int32 {
    repeat { last = last == .max ? 1 : last + 1 } while peers[last] != nil
    peers[last] = peer
    return last
  }

  mutating func ask(_ answer: @escaping (ProviderAnswer) -> Void) -> Int32 {
    add(.provider(answer, since: RelayClock.steady))
  }

  mutating func ask(_ answer: @escaping (DeviceAnswer) -> Void) -> Int32 {
    add(.device(answer, since: RelayClock.steady))
  }

  mutating func listen(as device: DeviceID, _ lines: AsyncStream<AdminLine>.Continuation) -> Int32 {
    add(.listener(Listener(device: device, lines: lines)))
  }

  private func listener(_ stream: Int32) -> Listener? {
    if case .listener(let listener) = peers[stream] { listener } else { nil }
  }

  mutating func respond(_ stream: Int32, _ answer: ProviderAnswer) {
    guard case .provider(let tell, _) = peers.removeValue(forKey: stream) else { return }
    tell(answer)
  }

  mutating func answer(_ stream: Int32, _ answer: DeviceAnswer) {
    switch peers.removeValue(forKey: stream) {
    case .device(let tell, _): tell(answer)
    // A refused device may not listen.
    case .listener(let listener): listener.lines.finish()
    case .provider, nil: break
    }
  }

  /// Sends a line to a phone. The limit of frames in flight bounds what waits.
  mutating func send(_ line: DownLine, to stream: Int32) {
    guard var listener = listener(stream) else { return }
    var bytes: [UInt8] = []
    line.write(to: &bytes)
    var id: UniqueID?
    if case .notification(let delivery) = line { id = delivery.notification.uniqueID }
    listener.unwritten += 1
    listener.lines.yield(AdminLine(bytes: bytes, notification: id))
    peers[stream] = .listener(listener)
  }

  /// Whether so few lines are unwritten that one more may be, which nobody acknowledges.
  func mayBroadcast(to stream: Int32) -> Bool {
    listener(stream).map { $0.unwritten < Limits.inFlightPerDevice } ?? false
  }

  /// Records that a line was written; returns whether all were.
  mutating func wrote(_ stream: Int32) -> Bool {
    guard var listener = listener(stream) else { return false }
    listener.unwritten -= 1
    peers[stream] = .listener(listener)
    return listener.unwritten == 0
  }

  var awaited: [DeviceID] {
    peers.keys.compactMap { listener($0) }.filter { $0.unwritten > 0 }.map(\.device)
  }

  func device(on stream: Int32) -> DeviceID? { listener(stream)?.device }

  func isEmpty(_ stream: Int32) -> Bool { listener(stream)?.unwritten == 0 }

  /// Refuses requests that have been open this long.
  mutating func refuse(after patience: Interval = .zero, at now: Instant = RelayClock.steady) {
    for (stream, peer) in peers {
      switch peer {
      case .provider(_, let since) where now - since >= patience:
        respond(stream, .rejected(.serviceUnavailable))
      case .device(_, let since) where now - since >= patience:
        answer(stream, .refused(.unavailable))
      case .provider, .device, .listener: continue
      }
    }
  }

  mutating func close(_ stream: Int32, _ reason: CloseReason) {
    send(.bye(reason: reason.name), to: stream)
    remove(stream)
  }

  mutating func remove(_ stream: Int32) {
    if case .listener(let listener) = peers.removeValue(forKey: stream) { listener.lines.finish() }
  }

  mutating func closeListeners(
    _ reason: CloseReason, where isMeant: (DeviceID) -> Bool = { _ in true }
  ) {
    for stream in peers.keys {
      if let device = device(on: stream), isMeant(device) { close(stream, reason) }
    }
  }

  /// Refuses open requests, and new ones from now on; listeners stay.
  mutating func end() {
    isEnding = true
    refuse()
  }

  mutating func endAll() {
    closeListeners(.shutdown)
    refuse()
  }
}

package struct AdminLine: Sendable {
  package let bytes: [UInt8]
  fileprivate let notification: UniqueID?
}

/// A phone's stream on the admin API. A written line counts as acknowledged.
package struct AdminStream: Sendable {
  package let lines: AsyncStream<AdminLine>
  fileprivate let device: DeviceID
  fileprivate let address: StreamAddress
}

extension ShardRunner {
  func performForAdmin(_ effect: Effect) {
    switch effect {
    case .respond(let address, let answer): adminPeers.respond(address.stream, answer)
    case .answer(let address, let answer): adminPeers.answer(address.stream, answer)
    case .hello(let address):
      guard let device = adminPeers.device(on: address.stream) else { return }
      adminPeers.send(
        .hello(device: device, keepAlive: settings.shard.keepAlive, time: now),
        to: address.stream)
    case .send(let address, let delivery):
      if let set = faults.inForce, intervene(delivery, to: address, set) { return }
      adminPeers.send(.notification(delivery), to: address.stream)
    case .sendEmpty(let address): adminPeers.send(.empty(), to: address.stream)
    case .sendKeepAlive(let address): adminPeers.send(.keepAlive(), to: address.stream)
    case .checkQueue(let address):
      guard let device = adminPeers.device(on: address.stream) else { return }
      let isEmpty = adminPeers.isEmpty(address.stream)
      raise(.stream(address, .queueChecked(isEmpty: isEmpty)), for: device, at: now)
    case .close(let address, let reason): adminPeers.close(address.stream, reason)
    case .sendBroadcast, .persist, .forget, .tell, .log: break
    }
  }

  func operatorAddress(_ stream: Int32) -> StreamAddress {
    StreamAddress(loop: index, connection: .operators, stream: stream, node: node)
  }

  @discardableResult
  fileprivate func ask(
    _ wish: RequestEvent, _ credential: DeviceCredential, on stream: Int32
  ) -> StreamAddress {
    let address = operatorAddress(stream)
    raise(.asked(wish, credential, from: address), for: credential.device, at: now)
    finishBatch()
    return address
  }

  fileprivate func wrote(_ line: AdminLine, _ stream: AdminStream) {
    let now = now
    if let id = line.notification {
      raise(.stream(stream.address, .acked(id, nil)), for: stream.device, at: now)
    }
    if adminPeers.wrote(stream.address.stream), line.notification != nil {
      raise(.stream(stream.address, .heard), for: stream.device, at: now)
    }
    finishBatch()
  }

  fileprivate func hangUp(_ stream: AdminStream) {
    adminPeers.remove(stream.address.stream)
    raise(.stream(stream.address, .disconnected), for: stream.device, at: now)
    finishBatch()
  }
}

/// A test's phone, for those who run the relay: it needs no secret.
extension Relay {
  /// Creates a device; nil when the relay is not running. `name` is there if it is kept.
  package func enrol(
    name: String? = nil
  ) async -> (answer: DeviceAnswer, secret: String, name: String?)? {
    let made = await inbox.loops?.ask(0) { ($0.ids.makeDevice(), $0.ids.makeSecret()) }
    guard let (device, secret) = made else { return nil }
    let hash = DeviceRequest.hash(secret.utf8)
    let answer = await ask(.enrolled, DeviceCredential(device: device, secret: hash))
    var kept: String?
    if let name, case .enrolled? = answer, let settings = await inbox.loops?.ask(0, \.settings),
      await settings.keep(name, of: device)
    {
      kept = name
    }
    return answer.map { ($0, secret, kept) }
  }

  /// Registers an app; nil when there is no such device.
  package func register(
    _ topic: Topic, on device: DeviceID, token wanted: WantedToken
  ) async throws(NodeAway) -> DeviceAnswer? {
    guard let credential = try await credential(of: device) else { return nil }
    let made = await inbox.loops?.ask(0) { $0.ids.makeToken(wanted, for: device) }
    guard let token = made else { return nil }
    return await ask(.registered(topic, token, isOwn: wanted.isOwn), credential)
  }

  /// Removes an app; nil when there is no such device.
  package func unregister(
    _ topic: Topic, on device: DeviceID
  ) async throws(NodeAway) -> DeviceAnswer? {
    guard let credential = try await credential(of: device) else { return nil }
    return await ask(.unregistered(topic), credential)
  }

  /// Listens as a device; nil when there is no such device.
  package func listen(as device: DeviceID) async throws(NodeAway) -> AdminStream? {
    guard let credential = try await credential(of: device) else { return nil }
    let (lines, continuation) = AsyncStream.makeStream(of: AdminLine.self)
    let address = await inbox.loops?.ask(0) { runner in
      runner.ask(.connected, credential, on: runner.adminPeers.listen(as: device, continuation))
    }
    return address.map { AdminStream(lines: lines, device: device, address: $0) }
  }

  /// Records that a line was passed on to the phone.
  package func wrote(_ line: AdminLine, of stream: AdminStream) async {
    _ = await inbox.loops?.ask(Int(stream.address.loop)) { $0.wrote(line, stream) }
  }

  package func hangUp(_ stream: AdminStream) async {
    _ = await inbox.loops?.ask(Int(stream.address.loop)) { $0.hangUp(stream) }
  }

  private func credential(of device: DeviceID) async throws(NodeAway) -> DeviceCredential? {
    try await inbox.askOwner(NodeQuestions.credential, device)
  }

  private func ask(_ wish: RequestEvent, _ credential: DeviceCredential) async -> DeviceAnswer? {
    await inbox.loops?.answer(of: 0) { $0.ask(wish, credential, on: $0.adminPeers.ask($1)) }
  }
}
