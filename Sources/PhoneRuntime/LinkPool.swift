import RelayClient

/// Connections to the relay, each for several phones; made on demand, and again after a loss.
actor LinkPool {
  private let phonesPerConnection: Int
  private let connect: @Sendable () async throws -> RelayClient
  private var clients: [Int: Task<RelayClient, any Error>] = [:]

  init(phonesPerConnection: Int, connect: @escaping @Sendable () async throws -> RelayClient) {
    self.phonesPerConnection = max(1, phonesPerConnection)
    self.connect = connect
  }

  /// Callers that ask while the connection is being made share it.
  func client(for phone: Int) async throws -> RelayClient {
    let place = phone / phonesPerConnection
    if let client = clients[place] { return try await client.value }
    let client = Task { [connect] in try await connect() }
    clients[place] = client
    do {
      return try await client.value
    } catch {
      if clients[place] == client { clients[place] = nil }
      throw error
    }
  }

  /// Closes a connection that a phone found broken.
  func discard(_ client: RelayClient, of phone: Int) async {
    let place = phone / phonesPerConnection
    guard let known = clients[place], let current = try? await known.value, current === client,
      clients[place] == known
    else { return }
    clients[place] = nil
    await client.close()
  }

  func closeAll() async {
    let all = clients.values
    clients = [:]
    for client in all {
      client.cancel()
      if let client = try? await client.value { await client.close() }
    }
  }
}
