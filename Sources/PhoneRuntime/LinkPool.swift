import RelayClient

/// The connections to the relay, each shared by so many phones: made when the first of them needs
/// it, made anew when it is lost.
actor LinkPool {
  private let phonesPerConnection: Int
  private let connect: @Sendable () async throws -> RelayClient
  private var clients: [Int: Task<RelayClient, any Error>] = [:]

  init(phonesPerConnection: Int, connect: @escaping @Sendable () async throws -> RelayClient) {
    self.phonesPerConnection = max(1, phonesPerConnection)
    self.connect = connect
  }

  /// The connection of a phone. All that ask while it is being made get the same.
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

  /// A phone has found its connection broken.
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
