package import AdminAPI
import FoundationEssentials
import HTTPTypes
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
import NIOPosix
import Primitives
import ProviderCredentials
import RelayCore
package import RelayServer
package import RelaySetup
import ServiceLifecycle
import Synchronization

/// The relay's admin API: HTTP/1.1 and JSON (docs/ADMIN.md), on a Unix socket that only its owner
/// may use, and on TCP with a token, with a page for people. Off the hot path: it reaches the event
/// loops as questions and events.
///
/// Instants are integers, UNIX milliseconds; lengths of time are texts such as `1h30m`. Errors are
/// `{"reason":"ClockMoved","message":"what to do"}`.
package struct Cockpit: Service {
  let relay: Relay
  private let configuration: RelayConfiguration
  private let logger: Logger
  private let onReady: @Sendable (RelayConfiguration.Endpoint?) -> Void
  let epoch: Epoch

  /// - Parameter onReady: gets the real TCP endpoint, nil for none, once each listener is there or
  ///   known to be impossible.
  package init(
    relay: Relay, configuration: RelayConfiguration, logger: Logger,
    onReady: @escaping @Sendable (RelayConfiguration.Endpoint?) -> Void
  ) {
    self.relay = relay
    self.configuration = configuration
    self.logger = logger
    self.onReady = onReady
    epoch = Epoch(relay)
  }

  /// The socket of a relay with this state directory, and its token for TCP.
  package static func socketPath(state: String) -> String { state + "/admin.sock" }
  package static func tokenPath(state: String) -> String { state + "/admin.token" }

  /// The longest that SwiftNIO takes on any system: `sun_path` of macOS (unix(4)) without its zero.
  package static let longestPathBytes = 103

  /// Serves until shutdown. The relay goes on without a socket that cannot be opened; an address
  /// from the configuration that cannot be opened is an error.
  package func run() async throws {
    let (listeners, ready) = AsyncStream.makeStream(of: RelayConfiguration.Endpoint?.self)
    // Before anything waits for a listener that there will not be.
    let token = try configuration.admin.map { _ in
      try AdminToken.read(Self.tokenPath(state: configuration.state))
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        var endpoint: RelayConfiguration.Endpoint?
        for await known in listeners.prefix(configuration.admin == nil ? 1 : 2) {
          endpoint = known ?? endpoint
        }
        if !Task.isCancelled { onReady(endpoint) }
      }
      group.addTask { try await runSocket(ready) }
      if let admin = configuration.admin, let token {
        group.addTask { try await runTCP(admin, token, ready) }
      }
      try await group.waitForAll()
    }
  }

  // MARK: The listeners

  /// Called for each listener that is open, or cannot be.
  private typealias Ready = AsyncStream<RelayConfiguration.Endpoint?>.Continuation

  private func runSocket(_ ready: Ready) async throws {
    let path = Self.socketPath(state: configuration.state)
    if let problem = await problem(path) {
      logger.warning("no admin socket: \(problem)", metadata: ["path": "\(path)"])
      ready.yield(nil)
      return try await gracefulShutdown()
    }
    let application = Application(
      router: router(guarded: nil), server: server(nil),
      configuration: ApplicationConfiguration(
        address: .unixDomainSocket(path: path),
        availableConnectionsDelegate: .maximum(Limits.adminConnections, logger: quiet)),
      onServerRunning: { [logger, relay] channel in
        try? await relay.descriptors.watch(channel, reserve: .max)
        do {
          try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        } catch {
          // It is gone if the relay ends as it starts.
          if channel.isActive {
            logger.error(
              "the admin socket could not be made private", metadata: ["path": "\(path)"])
          }
        }
        ready.yield(nil)
      },
      logger: quiet)
    do {
      try await application.run()
    } catch {
      logger.error("the admin socket has failed: \(error)", metadata: ["path": "\(path)"])
      ready.yield(nil)
      return try await gracefulShutdown()
    }
    try? FileManager.default.removeItem(atPath: path)
  }

  private func runTCP(
    _ endpoint: RelayConfiguration.Endpoint, _ token: String, _ ready: Ready
  ) async throws {
    let pages = OwnPages(
      ["localhost", "127.0.0.1", "::1", endpoint.host.lowercased()],
      aliases: Set(configuration.adminHosts.map { $0.lowercased() }))
    let connections = AdminConnections()
    let guarded = (guard: Guard(token: token, connections: connections), pages: pages)
    let application = Application(
      router: router(guarded: guarded), server: server(connections),
      configuration: ApplicationConfiguration(
        address: .hostname(endpoint.host, port: endpoint.port)),
      onServerRunning: { [logger, relay] channel in
        try? await relay.descriptors.watch(channel, reserve: Limits.reservedAdminConnections)
        // Closed already: the relay was told to end while it started.
        guard let port = channel.localAddress?.port else { return }
        logger.info("the admin API listens", metadata: ["admin": "\(endpoint.host):\(port)"])
        ready.yield(.init(host: endpoint.host, port: port))
      },
      logger: quiet)
    do {
      try await application.run()
    } catch let error as IOError {
      throw RelayConfiguration.ReadingError(
        key: "admin",
        description: "cannot listen on \(endpoint): \(error); choose another with --admin")
    }
  }

  /// Ends connections with half a request or none; an answer may take long.
  private func server(_ connections: AdminConnections?) -> HTTPServerBuilder {
    let decoder = HTTP1Channel.Configuration.DecoderConfiguration(
      maxHeaderFieldSize: Limits.adminHeaderBytes, maxHeaderListSize: Limits.adminHeaderBytes,
      maxHeaderFieldCount: 100)
    let configuration = HTTP1Channel.Configuration(
      additionalChannelHandlers: [RequestTurns(connections)],
      idleTimeout: .milliseconds(Limits.adminIdle.milliseconds), httpDecoderConfiguration: decoder)
    return HTTPServerBuilder { responder in
      AdminChannel(
        http: HTTP1Channel(responder: responder, configuration: configuration),
        connections: connections)
    }
  }

  /// Hummingbird throws its reason to end; the rest would hide why a start has failed.
  private var quiet: Logger {
    var quiet = logger
    quiet.logLevel = .critical
    return quiet
  }

  /// Returns why there can be no socket. Removes the one that an earlier run has left.
  private func problem(_ path: String) async -> String? {
    guard path.utf8.count <= Self.longestPathBytes else {
      return "its path has more than \(Self.longestPathBytes) bytes; choose a shorter --state"
    }
    let connection = ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .connect(unixDomainSocketPath: path)
    if let channel = try? await connection.get() {
      try? await channel.close()
      return "another relay has one in this state directory; choose another --state"
    }
    try? FileManager.default.removeItem(atPath: path)
    do {
      try FileManager.default.createDirectory(
        atPath: String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]),
        withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      return "its directory cannot be made"
    }
    return nil
  }

  // MARK: The routes

  func router(guarded: (guard: Guard, pages: OwnPages)?) -> Router<AdminContext> {
    let router = Router(context: AdminContext.self, options: .autoGenerateHeadEndpoints)
    let known = KnownRoutes()
    router.middlewares.add(Refusals(known: known))
    router.middlewares.add(NamedDevices(relay: relay))
    if let guarded { router.middlewares.add(guarded.pages) }
    // These need no token. The router asks the guard about all routes added after it, however they
    // are spelled, and about unknown ones.
    MetricsRoutes(relay: relay).add(to: router)
    PageRoutes().add(to: router)
    if let guarded { router.middlewares.add(guarded.guard) }
    ClockRoutes(relay: relay).add(to: router)
    RecordingRoutes(relay: relay).add(to: router)
    ClusterRoutes(relay: relay).add(to: router)
    DeviceRoutes(relay: relay, epoch: epoch).add(to: router)
    PhoneRoutes(relay: relay).add(to: router)
    OrderRoutes(relay: relay).add(to: router)
    FaultRoutes(relay: relay).add(to: router)
    RequestRoutes(relay: relay, epoch: epoch, configuration: configuration).add(to: router)
    NotificationRoutes(relay: relay, epoch: epoch).add(to: router)
    PushRoutes(relay: relay).add(to: router)
    EventRoutes(relay: relay, epoch: epoch).add(to: router)
    WaitRoutes(relay: relay, epoch: epoch).add(to: router)
    known.set(router.routes.map { ($0.method.rawValue, $0.path.description) })
    return router
  }
}

/// Tells cursors of this run from those of other runs, and from those before a return to a
/// checkpoint.
struct Epoch: Sendable {
  private let start: String
  private let relay: Relay

  init(_ relay: Relay) {
    self.relay = relay
    start = "e" + String(UInt64(Date().timeIntervalSince1970 * 1000), radix: 36)
  }

  /// The part of a cursor before the hyphen.
  var text: String { relay.rewindCount == 0 ? start : "\(start).\(relay.rewindCount)" }

  func cursor(_ position: some BinaryInteger) -> String { "\(text)-\(position)" }

  /// In a cluster with the moment, by which another node goes on.
  func eventCursor(_ position: UInt64) -> String {
    relay.nodeName == nil ? cursor(position) : "\(cursor(position))-\(relay.now.milliseconds)"
  }

  /// For lists whose cursors are moments: in a cluster they are valid on all nodes.
  var listText: String { relay.nodeName == nil ? text : "all" }

  func listCursor(_ moment: Instant) -> String { "\(listText)-\(moment.milliseconds)" }

  func moment(_ cursor: String) throws(Refusal) -> Instant {
    let parts = cursor.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let milliseconds = Int64(parts[1]) else {
      throw .body("since is a cursor that this API gave", field: "since")
    }
    guard parts[0] == listText else {
      throw Refusal(410, "CursorExpired", "the cursor is of another run: ask without since")
    }
    return Instant(milliseconds: milliseconds)
  }
}

package enum AdminToken {
  /// Returns the token that is there; nil if there is none.
  package static func known(_ path: String) -> String? {
    guard let data = FileManager.default.contents(atPath: path),
      let text = String(bytes: data, encoding: .utf8)
    else { return nil }
    // Without what is around it; a blank within is the operator's.
    let start = text.drop { $0.isWhitespace }
    let token = String(start.reversed().drop { $0.isWhitespace }.reversed())
    return token.utf8.count >= 16 ? token : nil
  }

  /// Reads the token; makes one, for its owner only, if there is none.
  package static func read(_ path: String) throws -> String {
    if let token = known(path) { return token }
    var bytes: [UInt8] = []
    for _ in 0..<16 { bytes.append(UInt8.random(in: 0...255)) }
    let token = bytes.map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
    do {
      try CredentialFiles.makePrivateDirectory(
        String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]))
      try CredentialFiles.write(Array((token + "\n").utf8), to: path)
    } catch {
      throw RelayConfiguration.ReadingError(
        key: "admin", description: "\(error): the admin listener needs a token")
    }
    return token
  }
}

/// For tests in the relay's own process: the bodies and answers of `POST /v1/push`, `POST /v1/wait`
/// and `GET /v1/notifications/{id}`, without HTTP.
extension Cockpit {
  package func push(_ body: [UInt8]) async throws -> PushVerdict {
    try await NamedDevices.with(relay) {
      try await PushRoutes(relay: relay).push(try PushWish(body))
    }
  }

  package func wait(_ body: [UInt8]) async throws -> WaitAnswer {
    try await NamedDevices.with(relay) {
      try await WaitRoutes(relay: relay, epoch: epoch).wait(try WaitWish(body))
    }
  }

  package func life(_ id: String) async throws -> NotificationLife {
    try await NotificationRoutes(relay: relay, epoch: epoch).body(named: id).first
  }

  /// A clock's error as the routes answer it.
  package static func refusal(_ error: VirtualClock.ClockError) -> Refusal { Refusal(error) }
}
