import DeviceLink
import RelayCore

/// Connections to the relay, each for several phones; made on demand, and again after a loss.
///
/// A node of a cluster says in `hello` and `bye` which one has the phone. The phone's stream goes
/// there; phones that share a connection to the address that was given share one to each such node.
/// Those of a node that cannot be reached stay where they are, or come back.
package actor LinkPool {
  /// Connects with a node that a relay has named (`HOST:PORT`); nil for the address that was given.
  package typealias Connect = @Sendable (_ owner: String?) async throws -> RelayClient

  private struct Place: Hashable {
    var group: Int
    var owner: String?
  }

  private let phonesPerConnection: Int
  private let connect: Connect
  private var clients: [Place: Task<RelayClient, any Error>] = [:]
  /// Where phones were led to.
  private var owners: [Int: String] = [:]
  /// How many were led to each place.
  private var counts: [Place: Int] = [:]
  /// Nodes that did not take a phone, and until when no other is led there.
  private var avoided: [String: ContinuousClock.Instant] = [:]

  /// The most that an opened stream is led on: stripes may move meanwhile.
  static let leadsAtMost = 3
  private static let avoidance = Duration.seconds(60)
  private static let avoidedAtMost = 64
  /// Before a phone that has moved to another node listens again.
  private static let pause = Duration.milliseconds(250)

  package init(phonesPerConnection: Int, connect: @escaping Connect) {
    self.phonesPerConnection = max(1, phonesPerConnection)
    self.connect = connect
  }

  /// A connection with the node that the phone was led to, else with the address that was given.
  /// Callers that ask while it is being made share it.
  package func client(for phone: Int) async throws -> RelayClient {
    if let owner = owners[phone] {
      if let client = await led(phone, to: owner) { return client }
      move(phone, to: nil)
    }
    return try await client(at: place(of: phone, nil))
  }

  /// Opens a phone's stream at the node that has the phone, as far as it can be reached.
  ///
  /// `hello` comes first, and nothing is read of a stream that is left for another: what was sent
  /// behind it is sent again on the new one.
  package func openStream(
    for phone: Int, of identity: DeviceIdentity
  ) async throws -> ClientStream {
    let first = try await client(for: phone)
    var stream: ClientStream
    do {
      stream = try await DeviceAPI(first).openStream(of: identity)
    } catch {
      if owners[phone] != nil { await discard(first, of: phone) }
      throw error
    }
    for _ in 0..<Self.leadsAtMost {
      guard let hello = try await stream.firstLine(),
        case .hello(_, _, _, _, _, let owner?)? = DownLine(hello.span), owner != owners[phone],
        let client = await led(phone, to: owner)
      else { break }
      do {
        let next = try await DeviceAPI(client).openStream(of: identity)
        stream.cancel()
        stream = next
        move(phone, to: owner)
      } catch .refused {
        // The stripe has moved on, or is on its way.
        break
      } catch {
        // It may be open there, and the other one superseded by it.
        avoid(owner)
        stream.cancel()
        throw error
      }
    }
    return stream
  }

  /// Has a phone listen at the node that has it, until the relay ends a stream for another reason
  /// than that the phone has moved. `listen` reads a stream to its end and returns its `bye`.
  package nonisolated func keepOpen(
    for phone: Int, of identity: DeviceIdentity,
    _ listen: (ClientStream) async throws -> (reason: String, owner: String?)?
  ) async throws {
    while let bye = try await listen(try await openStream(for: phone, of: identity)),
      bye.reason == CloseReason.moved.name
    {
      if let owner = bye.owner { await lead(phone, to: owner) }
      try await Task.sleep(for: Self.pause)
    }
  }

  /// Has the phone's next connection be with this node, which a `bye` has named.
  package func lead(_ phone: Int, to owner: String) {
    if !isAvoided(owner) { move(phone, to: owner) }
  }

  /// Closes a connection that a phone found broken. The next one is with the address that was
  /// given.
  package func discard(_ client: RelayClient, of phone: Int) async {
    for owner in Set([nil, owners[phone]]) {
      let place = place(of: phone, owner)
      guard let known = clients[place], let current = try? await known.value, current === client
      else { continue }
      if clients[place] == known { clients[place] = nil }
      if owner != nil, owners[phone] == owner { move(phone, to: nil) }
      await client.close()
    }
  }

  /// Closes all. The next ones are with the address that was given.
  package func closeAll() async {
    let all = clients.values
    (clients, owners, counts) = ([:], [:], [:])
    for client in all {
      client.cancel()
      if let client = try? await client.value { await client.close() }
    }
  }

  // MARK: Details

  private func place(of phone: Int, _ owner: String?) -> Place {
    Place(group: phone / phonesPerConnection, owner: owner)
  }

  private func client(at place: Place) async throws -> RelayClient {
    if let client = clients[place] { return try await client.value }
    let client = Task { [connect] in try await connect(place.owner) }
    clients[place] = client
    do {
      return try await client.value
    } catch {
      if clients[place] == client { clients[place] = nil }
      throw error
    }
  }

  private func led(_ phone: Int, to owner: String) async -> RelayClient? {
    guard !isAvoided(owner) else { return nil }
    if let client = try? await client(at: place(of: phone, owner)) { return client }
    avoid(owner)
    return nil
  }

  /// Connections that are not wanted any more are let go of: they close when the last request on
  /// them has ended.
  private func move(_ phone: Int, to owner: String?) {
    let before = owners[phone]
    guard before != owner else { return }
    owners[phone] = owner
    if let owner { counts[place(of: phone, owner), default: 0] += 1 }
    guard let before else {
      if phonesPerConnection == 1 { clients[place(of: phone, nil)] = nil }
      return
    }
    let left = place(of: phone, before)
    counts[left, default: 1] -= 1
    if counts[left] == 0 { (counts[left], clients[left]) = (nil, nil) }
  }

  private func isAvoided(_ owner: String) -> Bool {
    avoided[owner].map { $0 > .now } ?? false
  }

  private func avoid(_ owner: String) {
    if avoided.count >= Self.avoidedAtMost { avoided = [:] }
    avoided[owner] = .now + Self.avoidance
  }
}
