import AdminAPI
import ArgumentParser
import Cockpit
import DeviceLink
import FoundationEssentials
import NIOCore
import NIOHTTP1
import NIOPosix
import RelaySetup
import SystemPackage

/// Options of commands that ask a running relay.
struct AdminOptions: ParsableArguments {
  @Option(help: "The state directory of the relay.")
  var state = StateOptions.usual

  @Flag(help: "Print the relay's answer as JSON.")
  var json = false

  /// Asks the relay. With `--json` prints the answer unchanged and returns nil.
  func ask<Answer: Decodable>(
    _ type: Answer.Type, _ method: HTTPMethod, _ path: String, body: [UInt8] = []
  ) async throws -> Answer? {
    try await ControlClient(state: state).ask(type, method, path, body: body, printing: json)
  }

  /// Asks the relay, and shows its answer.
  func show<Answer: Decodable>(
    _ method: HTTPMethod, _ path: String, body: [UInt8] = [], as show: (Answer) throws -> Void
  ) async throws {
    if let answer = try await ask(Answer.self, method, path, body: body) { try show(answer) }
  }

  /// The same for all that there are of a kind.
  func list<Item: Decodable>(
    _ kind: String, else hint: String, as show: ([Item]) -> Void
  ) async throws {
    guard let items = try await ask([String: [Item]].self, .GET, "/v1/\(kind)")?[kind]
    else { return }
    if items.isEmpty { Console.log(hint) } else { show(items) }
  }

  func call(_ method: HTTPMethod, _ path: String, body: [UInt8] = []) async throws {
    _ = try await ControlClient(state: state).call(method, path, body: body, printing: json)
  }

  /// Has the relay send a push. Throws its refusal; with `--json` prints the answer, returns nil.
  func push(_ path: String, body: [UInt8] = []) async throws -> PushVerdict? {
    let client = ControlClient(state: state)
    let answer = try await client.call(.POST, path, body: body, printing: json)
    let verdict = try ControlClient.decode(PushVerdict.self, answer)
    guard verdict.status == 200 else {
      throw CommandError(
        "the relay answered \(verdict.status) \(verdict.reason ?? ""): \(verdict.message ?? "")")
    }
    return json ? nil : verdict
  }
}

/// Asks a relay on this machine over the admin socket in its state directory; where its path is too
/// long for one, over the listener of the page.
struct ControlClient {
  let state: String

  private static let timeout = TimeAmount.minutes(10)
  private static let longestAnswerBytes = 64 << 20

  /// Makes a request and returns the answer's body; throws a refusal as `CommandError` in the
  /// relay's words. Texts in the path must be escaped (`Query.escaped`).
  ///
  /// - Parameter isJSON: whether to print the answer unchanged, a refusal, too.
  func call(
    _ method: HTTPMethod, _ path: String, body: [UInt8] = [], printing isJSON: Bool = false
  ) async throws -> [UInt8] {
    let (status, answer) = try await exchange(method, path, body: body)
    if isJSON { Console.say(bytes: answer.isEmpty ? Array("{}".utf8) : answer.dropLast()) }
    try Self.check(status, answer)
    Self.say(lacking: answer)
    return answer
  }

  /// Hands over the lines of an answer that goes on, as they come, until `take` returns false.
  func follow(_ path: String, _ take: ([UInt8]) throws -> Bool) async throws {
    let (status, answer) = try await exchange(.GET, path, body: [], isLines: true, take)
    try Self.check(status, answer)
  }

  private static func check(_ status: UInt, _ answer: [UInt8]) throws {
    guard !(200..<300).contains(status) else { return }
    guard let refused = try? JSONDecoder().decode(Refusal.self, from: Data(answer)) else {
      throw CommandError("the relay answered \(status)")
    }
    let waits = refused.waitingFor.map { "; it waits for \($0.joined(separator: ", "))" } ?? ""
    throw CommandError("\(refused.reason): \(refused.message)\(waits)", reason: refused.reason)
  }

  /// Reports on standard error which nodes of a cluster are missing in an answer.
  private static func say(lacking answer: [UInt8]) {
    guard let lacking = try? JSONDecoder().decode(Lacks.self, from: Data(answer)) else { return }
    for node in lacking.missingNodes ?? [] {
      Console.log("node \(node) does not answer: what it knows is missing")
    }
    for stripe in lacking.missingStripes ?? [] {
      Console.log("stripe \(stripe) has no node: its phones are missing")
    }
  }

  /// Decodes the answer, or prints it unchanged and returns nil.
  func ask<Answer: Decodable>(
    _ type: Answer.Type, _ method: HTTPMethod, _ path: String, body: [UInt8] = [],
    printing isJSON: Bool
  ) async throws -> Answer? {
    let answer = try await call(method, path, body: body, printing: isJSON)
    return isJSON ? nil : try Self.decode(type, answer)
  }

  static func decode<Answer: Decodable>(
    _ type: Answer.Type, _ answer: [UInt8]
  ) throws -> Answer {
    do {
      return try JSONDecoder().decode(type, from: Data(answer))
    } catch {
      throw CommandError("the relay is of another version: its answer is not understood")
    }
  }

  private typealias Exchange = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

  /// Returns what the door wants of every request besides.
  private func connect() async throws -> (Exchange, HTTPHeaders) {
    let socket = Cockpit.socketPath(state: state)
    let bootstrap = ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
    @Sendable func begin(_ channel: any Channel) -> EventLoopFuture<Exchange> {
      channel.eventLoop.makeCompletedFuture {
        try channel.pipeline.syncOperations.addHTTPClientHandlers()
        return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
      }
    }
    do {
      let hasSocket = FileManager.default.fileExists(atPath: socket)
      if !hasSocket, let door = ReadyFile.running(state)?.door {
        let channel = try await bootstrap.connect(
          host: door.address.host, port: door.address.port, channelInitializer: begin)
        return (
          channel,
          [
            "host": door.address.description, "authorization": "bearer \(door.token)",
            "content-type": "application/json",
          ]
        )
      }
      let channel = try await bootstrap.connect(
        unixDomainSocketPath: socket, channelInitializer: begin)
      return (channel, ["host": "localhost"])
    } catch let error as IOError
      where [Errno.permissionDenied, .notPermitted].contains(Errno(rawValue: error.errnoCode))
    {
      throw CommandError("\(socket) may not be used by this user: its relay is another user's")
    } catch {
      let hint =
        socket.utf8.count > Cockpit.longestPathBytes
        ? "its path is longer than the \(Cockpit.longestPathBytes) bytes of a socket's: start "
          + "'pushrelay serve' with a shorter --state, or with --admin HOST:PORT"
        : "start 'pushrelay serve' with the same --state"
      throw CommandError("no relay answers at \(socket): \(hint)")
    }
  }

  private func exchange(
    _ method: HTTPMethod, _ path: String, body: [UInt8], isLines: Bool = false,
    _ take: ([UInt8]) throws -> Bool = { _ in false }
  ) async throws -> (status: UInt, body: [UInt8]) {
    let (channel, known) = try await connect()
    return try await channel.executeThenClose { answer, request in
      var headers = known
      headers.add(name: "connection", value: "close")
      if isLines { headers.add(name: "accept", value: "application/x-ndjson") }
      if !body.isEmpty { headers.add(name: "content-length", value: "\(body.count)") }
      // In one write: without a body the request is complete with its head, and a server that
      // answers at once may close before a separate end.
      var parts: [HTTPClientRequestPart] = [
        .head(
          HTTPRequestHead(
            version: .http1_1, method: method, uri: path, headers: headers))
      ]
      if !body.isEmpty { parts.append(.body(.byteBuffer(ByteBuffer(bytes: body)))) }
      try await request.write(contentsOf: parts + [.end(nil)])
      var status: UInt = 0
      var bytes: [UInt8] = []
      var splitter = LineSplitter(limitBytes: Self.longestAnswerBytes)
      for try await part in answer {
        switch part {
        case .head(let head): status = head.status.code
        case .body(let piece):
          if isLines, status == 200 {
            var whole: [[UInt8]] = []
            splitter.receive(Array(piece.readableBytesView).span) {
              if case .line(let line) = $0 { whole.append(line) }
            }
            for line in whole where try !take(line) { return (status, []) }
            continue
          }
          bytes.append(contentsOf: piece.readableBytesView)
          guard bytes.count <= Self.longestAnswerBytes else {
            throw CommandError("the answer is longer than \(Self.longestAnswerBytes) bytes")
          }
        case .end: return (status, bytes)
        }
      }
      throw CommandError("the relay ended before it had answered")
    }
  }
}
