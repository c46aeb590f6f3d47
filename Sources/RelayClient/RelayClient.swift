import HTTP2
package import NIOCore
import NIOPosix
package import RelayCore
package import TLS
import Transport

/// One HTTP/2 connection to a relay: any number of requests and streams at once, from any task.
/// Requests beyond the server's limit wait here, also while a provider's first token is being
/// verified (one stream, Apple, "Sending notification requests to APNs"). When the connection ends,
/// all that waits fails with the reason; connect again for more.
package final class RelayClient: Sendable {
  package enum Security: Sendable {
    /// HTTP/2 with prior knowledge, `pushrelay serve --plaintext`.
    case plaintext
    /// The certificate must be for `serverName`, a DNS name or IP address; nil accepts any.
    case tls(TLSContext, serverName: String?)
  }

  /// `HOST:PORT` of the server.
  package let address: String
  let eventLoop: any EventLoop
  private let inbox: ClientInbox
  private let options: ClientOptions

  private init(
    address: String, eventLoop: any EventLoop, inbox: ClientInbox, options: ClientOptions
  ) {
    self.address = address
    self.eventLoop = eventLoop
    self.inbox = inbox
    self.options = options
  }

  deinit {
    inbox.send(.close(nil))
  }

  /// Connects and waits for the server's SETTINGS, so that limits are known and a wrong port is
  /// noticed. Throws `cannotConnect`, `tls`, `noHTTP2`, `timedOut`, `cancelled`.
  package static func connect(
    host: String, port: Int, security: Security, options: ClientOptions = ClientOptions(),
    on group: any EventLoopGroup
  ) async throws(ClientError) -> RelayClient {
    let address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    let inbox: ClientInbox
    let ready: EventLoopFuture<Void>
    do {
      (inbox, ready) = try await ClientBootstrap(group: group)
        .connectTimeout(.seconds(options.connectTimeoutSeconds))
        .channelOption(.tcpOption(.tcp_nodelay), value: 1)
        .connect(host: host, port: port) { channel in
          channel.eventLoop.makeCompletedFuture {
            let handler = try makeHandler(
              address: address, security: security, options: options, on: channel.eventLoop)
            try channel.pipeline.syncOperations.addHandler(handler)
            let inbox = ClientInbox(handler, eventLoop: channel.eventLoop)
            return (inbox, handler.ready.futureResult)
          }
        }
    } catch let error as TLSError {
      throw .tls(address: address, error)
    } catch {
      throw .cannotConnect(address: address, problem: ConnectErrorText.text(error))
    }
    let client = RelayClient(
      address: address, eventLoop: ready.eventLoop, inbox: inbox, options: options)
    do {
      try await withTaskCancellationHandler {
        try await ready.get()
      } onCancel: {
        inbox.send(.close(nil))
      }
    } catch {
      throw Task.isCancelled ? .cancelled : error as? ClientError ?? .closed
    }
    return client
  }

  /// Makes a request and waits for the whole answer, whatever its status. Header names are lower
  /// case. Cancelling the task resets the stream.
  package func request(
    method: String, path: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []
  ) async throws(ClientError) -> ClientResponse {
    guard body.count <= Self.maximumBodyBytes else { throw .requestTooLarge }
    let box = StreamBox(readLimitBytes: options.maximumResponseBytes)
    let head = RequestHead(method: method, path: path, headers: headers)
    inbox.send(.open(head, body: body, box))
    while true {
      if let answer = box.answer { return try answer.get() }
      guard !Task.isCancelled else {
        inbox.send(.abandon(box))
        throw .cancelled
      }
      await box.waitForEnd()
    }
  }

  /// Makes a request without a task: `onAnswer` is called on the connection's loop, once.
  func request(
    _ head: RequestHead, body: [UInt8],
    onAnswer: @escaping @Sendable (Result<ClientResponse, ClientError>) -> Void
  ) {
    let box = StreamBox(readLimitBytes: options.maximumResponseBytes, onAnswer: onAnswer)
    inbox.send(.open(head, body: body, box))
  }

  /// Opens a stream in both directions and waits for the answer's head, whatever its status.
  /// `finish` ends the request's body.
  package func openStream(
    method: String, path: String, headers: [(name: String, value: String)] = []
  ) async throws(ClientError) -> ClientStream {
    let box = StreamBox(readLimitBytes: options.unreadStreamBytes)
    inbox.send(.open(RequestHead(method: method, path: path, headers: headers), body: nil, box))
    // From here on the stream is reset when its last owner is released.
    let owner = StreamOwner(box: box, inbox: inbox)
    while true {
      if let head = box.head {
        return ClientStream(try head.get(), owner: owner, connection: self)
      }
      guard !Task.isCancelled else { throw .cancelled }
      await box.waitForHead()
    }
  }

  /// Ends the connection. Whatever waits fails with `closed`.
  package func close() async {
    await withCheckedContinuation { inbox.send(.close($0)) }
  }

  private static let maximumBodyBytes = 1 << 20

  private static func makeHandler(
    address: String, security: Security, options: ClientOptions, on eventLoop: any EventLoop
  ) throws -> ClientHandler {
    var configuration = HTTP2Configuration()
    configuration.initialWindowSize = 262_144
    // Answers are limited here instead: a device's stream goes on for months.
    configuration.maximumBodyBytes = .max
    configuration.maximumDiscardedBytes = .max
    // So is what our own tasks queue.
    configuration.maximumQueuedConnectionBytes = .max
    configuration.maximumHeaderListBytes = 65_536
    switch security {
    case .plaintext:
      let transport = try Transport(plaintext: .client, configuration: configuration)
      return ClientHandler(
        transport, address: address, isSecure: false, options: options, on: eventLoop)
    case .tls(let context, let serverName):
      let session = try TLSSession(client: context, serverName: serverName)
      let transport = try Transport(session, role: .client, configuration: configuration)
      return ClientHandler(
        transport, address: address, isSecure: true, options: options, on: eventLoop)
    }
  }
}

/// The limits of one client connection, in whole seconds and in bytes.
package struct ClientOptions: Sendable {
  /// For TCP to connect, and then for TLS and the server's SETTINGS together.
  package var connectTimeout: Duration = .seconds(10)
  /// For a request's whole answer, or a stream's head.
  package var timeout: Duration = .seconds(30)
  /// Of a body that `request` returns.
  package var maximumResponseBytes = 16 << 20
  /// Unread bytes of a stream until the connection stops reading.
  package var unreadStreamBytes = 1 << 20
  /// Called on the event loop, after each read that brought some, with a broadcast and how many
  /// lines of it came. Readers of streams do not get these lines. nil: they get all.
  package var onBroadcasts: (@Sendable (Broadcast, Int) -> Void)?

  package init() {}

  var connectTimeoutSeconds: Int64 { max(1, connectTimeout.components.seconds) }

  var timeoutSeconds: Int64 { max(1, timeout.components.seconds) }
}
