import FoundationEssentials
import HTTPTypes
import Hummingbird
package import Logging
import NIOCore
import NIOPosix
import Primitives
import ServiceLifecycle

/// The relay's admin API: HTTP/1.1 and JSON on a Unix socket that only its owner may use
/// (docs/CLOCK.md). Off the hot path: it knows the relay by the closures that it is handed.
///
/// Instants are integers, UNIX milliseconds; lengths of time are texts such as `1h30m`. Errors are
/// `{"reason":"ClockMoved","message":"what to do"}`.
package struct Cockpit: Sendable {
  private let path: String
  private let clock: ClockSeat?
  private let logger: Logger
  private let onReady: @Sendable () -> Void

  /// - Parameters:
  ///   - path: where the socket is made; at most `longestPathBytes`.
  ///   - clock: the clock; nil when the relay goes by its machine's.
  ///   - onReady: called once the socket is there, or it is known that there will be none.
  package init(
    path: String, clock: ClockSeat?, logger: Logger, onReady: @escaping @Sendable () -> Void
  ) {
    self.path = path
    self.clock = clock
    self.logger = logger
    self.onReady = onReady
  }

  /// Where a relay with this state directory has its socket.
  package static func socketPath(state: String) -> String { state + "/admin.sock" }

  /// What a socket's address holds on Linux (`sun_path`, unix(7)), but for the zero at its end.
  package static let longestPathBytes = 107

  /// Serves until it is told to shut down; the socket goes with it. The relay does without when
  /// there cannot be one.
  package func run() async throws {
    if let problem = await problem() {
      logger.warning("no admin socket: \(problem)", metadata: ["path": "\(path)"])
      onReady()
      return try await gracefulShutdown()
    }
    do {
      try await application.run()
    } catch {
      logger.error("the admin socket has failed: \(error)", metadata: ["path": "\(path)"])
      onReady()
      return try await gracefulShutdown()
    }
    try? FileManager.default.removeItem(atPath: path)
  }

  /// Why there can be no socket; what an earlier run has left behind is removed.
  private func problem() async -> String? {
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

  private var application: some ApplicationProtocol {
    var quiet = logger
    quiet.logLevel = .error
    let (path, logger, onReady) = (path, logger, onReady)
    return Application(
      router: router,
      configuration: ApplicationConfiguration(address: .unixDomainSocket(path: path)),
      onServerRunning: { _ in
        do {
          try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: path)
        } catch {
          logger.error("the admin socket could not be made private", metadata: ["path": "\(path)"])
        }
        onReady()
      },
      logger: quiet)
  }

  /// All routes, without a listener.
  var router: Router<BasicRequestContext> {
    let router = Router(context: BasicRequestContext.self)
    router.middlewares.add(Refusals())
    router.get("/v1/clock") { _, _ in
      guard let clock else { return try answer(ClockStatus.system) }
      return try answer(await clock.status())
    }
    router.post("/v1/clock/advance") { request, _ in
      let wish = try AdvanceWish(try await body(request))
      return try answer(await virtual().advance(wish))
    }
    router.patch("/v1/clock") { request, _ in
      let wish = try RateWish(try await body(request))
      let clock = try virtual()
      await clock.setRate(wish.rate)
      return try answer(await clock.status())
    }
    addCheckpoints(to: router)
    return router
  }

  private func addCheckpoints(to router: Router<BasicRequestContext>) {
    router.get("/v1/checkpoints") { _, _ in
      try answer(CheckpointList(checkpoints: await clock?.checkpoints() ?? []))
    }
    router.put("/v1/checkpoints/:name") { _, context in
      let name = try name(context)
      return try answer(await virtual().save(name))
    }
    router.post("/v1/checkpoints/:name/restore") { _, context in
      let name = try name(context)
      return try answer(await virtual().rewind(name))
    }
    router.delete("/v1/checkpoints/:name") { _, context in
      let name = try name(context)
      try await virtual().drop(name)
      return Response(status: .noContent)
    }
  }

  /// The name in a path: letters, digits and hyphens, so that it can be a file's.
  private func name(_ context: BasicRequestContext) throws -> String {
    let name = context.parameters.get("name") ?? ""
    let isGood = name.utf8.allSatisfy { byte in
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
    }
    guard isGood, (1...64).contains(name.utf8.count) else {
      throw Refusal(400, "BadName", "a name has 1 to 64 of the characters a-z, 0-9 and -")
    }
    return name
  }

  private func virtual() throws -> ClockSeat {
    guard let clock else {
      throw Refusal(
        409, "ClockNotVirtual",
        "the relay goes by its machine's time; start it with --clock virtual")
    }
    return clock
  }

  private func body(_ request: Request) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    for try await piece in request.body {
      bytes.append(contentsOf: piece.readableBytesView)
      guard bytes.count <= Self.bodyBytes else {
        throw Refusal(
          413, "BodyTooLarge", "a body has at most \(Self.bodyBytes) bytes")
      }
    }
    return bytes
  }

  private static let bodyBytes = 65_536

  private func answer(_ value: some Encodable) throws -> Response {
    try Response(.ok, json: value)
  }
}

extension Response {
  init(_ status: HTTPResponse.Status, json value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    var bytes = Array(try encoder.encode(value))
    bytes.append(UInt8(ascii: "\n"))
    self.init(
      status: status, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }
}

/// Why a request of the admin API was refused.
package struct Refusal: Error, Equatable, Sendable {
  let status: Int
  /// One word for programs.
  package let reason: String
  /// What to do, for people.
  package let message: String
  /// The member of the body that is meant.
  var field: String?
  /// Who has not come to an end.
  var waitingFor: [String]?

  init(
    _ status: Int, _ reason: String, _ message: String, field: String? = nil,
    waitingFor: [String]? = nil
  ) {
    self.status = status
    self.reason = reason
    self.message = message
    self.field = field
    self.waitingFor = waitingFor
  }

  /// 400: the body is not what is wanted.
  static func body(_ message: String, field: String? = nil) -> Refusal {
    Refusal(400, "BadBody", message, field: field)
  }

  /// 404: there is no such thing.
  package static func missing(_ reason: String, _ message: String) -> Refusal {
    Refusal(404, reason, message)
  }

  /// 409: the relay is not in the state for it.
  package static func conflict(
    _ reason: String, _ message: String, waitingFor: [String]? = nil
  ) -> Refusal {
    Refusal(409, reason, message, waitingFor: waitingFor)
  }
}

/// Makes an answer of every error, in the one form that all have.
private struct Refusals: RouterMiddleware {
  private struct Body: Encodable {
    var reason: String
    var message: String
    var field: String?
    var waitingFor: [String]?
  }

  func handle(
    _ request: Request, context: BasicRequestContext,
    next: (Request, BasicRequestContext) async throws -> Response
  ) async throws -> Response {
    do {
      return try await next(request, context)
    } catch let refusal as Refusal {
      return try respond(refusal)
    } catch let error as HTTPError where error.status == .notFound {
      return try respond(
        Refusal(404, "NotFound", "there is no \(request.uri.path); docs/CLOCK.md lists all"))
    } catch let error as HTTPError where error.status == .methodNotAllowed {
      return try respond(
        Refusal(405, "MethodNotAllowed", "not with \(request.method.rawValue)"))
    }
  }

  private func respond(_ refusal: Refusal) throws -> Response {
    try Response(
      HTTPResponse.Status(code: refusal.status),
      json: Body(
        reason: refusal.reason, message: refusal.message, field: refusal.field,
        waitingFor: refusal.waitingFor))
  }
}
