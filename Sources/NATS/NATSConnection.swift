internal import CNATS
internal import Dispatch
internal import Glibc
internal import Synchronization

/// A connection to one of the servers, kept up by the C client, with one inbox for all answers. A
/// question names an inbox tag to answer to; no thread waits. Without a connection, messages fail
/// or are lost, and so may answers be: a question needs a deadline.
package final class NATSConnection: Sendable {
  /// Replaced when the C library has given up.
  private struct Handles: Sendable {
    // Threads may share both; the C library locks them.
    nonisolated(unsafe) let connection: OpaquePointer
    nonisolated(unsafe) let subscription: OpaquePointer

    func destroy() {
      natsSubscription_Destroy(subscription)
      natsConnection_Destroy(connection)
    }
  }

  /// Called on the C library's threads, for messages and for the connection's end and return.
  private final class Listener: Sendable {
    let access: NATSAccess
    let name: String
    let inbox: String
    /// nil before the beginning and after the end.
    let handles = Mutex<Handles?>(nil)
    let onMessage: @Sendable (NATSMessage) -> Void
    let onConnection: @Sendable (Bool) -> Void
    private let onBar: @Sendable (String) -> Void
    private let bars = Mutex<Set<String>>([])

    init(
      _ access: NATSAccess, _ name: String, inbox: String,
      onMessage: @escaping @Sendable (NATSMessage) -> Void,
      onConnection: @escaping @Sendable (Bool) -> Void, onBar: @escaping @Sendable (String) -> Void
    ) {
      (self.access, self.name, self.inbox) = (access, name, inbox)
      self.onMessage = onMessage
      self.onConnection = onConnection
      self.onBar = onBar
    }

    /// Each text once, and no more than 20: an inbox has a new name with each connection.
    func bar(_ text: String) {
      if bars.withLock({ $0.count < 20 && $0.insert(text).inserted }) { onBar(text) }
    }

    func open() throws(NATSError) -> Handles {
      let context = Unmanaged.passUnretained(self).toOpaque()
      let connection = try NATSConnection.connect(access, name, context)
      do throws(NATSError) {
        let subscription = try NATSConnection.subscribe(connection, inbox, context)
        return Handles(connection: connection, subscription: subscription)
      } catch {
        natsConnection_Destroy(connection)
        throw error
      }
    }

    /// The library gives up when a server refuses what it shows twice in a row. Passwords and
    /// credentials are changed at servers and relays one after the other: they may be right soon.
    func closed(_ connection: OpaquePointer?) {
      if handles.withLock({ $0?.connection == connection }) { openAgain() }
    }

    /// It may have been closed before anybody knew it here.
    func checkIsOpen() {
      let isClosed = handles.withLock { $0.map { natsConnection_IsClosed($0.connection) } ?? false }
      if isClosed { openAgain() }
    }

    private func openAgain() {
      DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { [self] in
        guard handles.withLock({ $0 != nil }) else { return }
        do throws(NATSError) {
          let new = try open()
          // After the end nobody wants the new ones.
          guard let old = handles.withLock({ $0 == nil ? nil : exchange(&$0, with: new) }) else {
            return new.destroy()
          }
          old.destroy()
          bars.withLock { $0 = [] }
          onConnection(true)
          checkIsOpen()
        } catch {
          if error.cause == .user { bar(error.description) }
          openAgain()
        }
      }
    }
  }

  private let listener: Listener

  /// Connects; blocks for two seconds per server at most. Answers arrive below `inbox`, which must
  /// be unique; callbacks run on the library's threads. `onConnection` is called when the
  /// connection ends and when it is back, `onBar` with the server's words when the user may not do
  /// something, which is never answered.
  package init(
    access: NATSAccess, name: String, inbox: String,
    onMessage: @escaping @Sendable (NATSMessage) -> Void,
    onConnection: @escaping @Sendable (Bool) -> Void, onBar: @escaping @Sendable (String) -> Void
  ) throws(NATSError) {
    listener = Listener(
      access, name, inbox: inbox, onMessage: onMessage, onConnection: onConnection, onBar: onBar)
    // Never released: library threads may be in a callback when a connection is closed, and a
    // process has one or two connections.
    _ = Unmanaged.passRetained(listener)
    let handles = try listener.open()
    listener.handles.withLock { $0 = handles }
    listener.checkIsOpen()
  }

  deinit {
    listener.handles.withLock { exchange(&$0, with: nil) }?.destroy()
  }

  /// The largest message the server accepts, headers included.
  package var maximumPayloadBytes: Int {
    listener.handles.withLock { $0.map { Int(natsConnection_GetMaxPayload($0.connection)) } ?? 0 }
  }

  /// The connected server's address without user and password, or nil.
  package var server: String? {
    var text = [CChar](repeating: 0, count: 512)
    let status = listener.handles.withLock {
      natsConnection_GetConnectedUrl($0?.connection, &text, text.count)
    }
    guard status == NATS_OK else { return nil }
    let url = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard !url.isEmpty else { return nil }
    return url.split(separator: "@").last.map(String.init)
  }

  /// Sends a message; with a tag, its answers arrive under that.
  package func publish(
    _ body: [UInt8], to subject: String, headers: [(name: String, value: String)] = [],
    tag: String? = nil
  ) throws(NATSError) {
    var message: OpaquePointer?
    let reply = tag.map { "\(listener.inbox).\($0)" }
    let made = body.withUnsafeBytes { bytes in
      natsMsg_Create(
        &message, subject, reply, bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
        Int32(bytes.count))
    }
    try Self.check(made)
    defer { natsMsg_Destroy(message) }
    for header in headers { try Self.check(natsMsgHeader_Set(message, header.name, header.value)) }
    try Self.check(
      listener.handles.withLock { natsConnection_PublishMsg($0?.connection, message) })
  }

  // MARK: Details

  private static func check(_ status: natsStatus) throws(NATSError) {
    guard status != NATS_OK else { return }
    throw NATSError(String(cString: natsStatus_GetText(status)))
  }

  private static func connect(
    _ access: NATSAccess, _ name: String, _ context: UnsafeMutableRawPointer
  ) throws(NATSError) -> OpaquePointer {
    var options: OpaquePointer?
    try check(natsOptions_Create(&options))
    defer { natsOptions_Destroy(options) }
    try secure(options, access)
    var texts = access.servers.map { UnsafePointer(strdup($0)) }
    defer { for text in texts { free(UnsafeMutableRawPointer(mutating: text)) } }
    try check(natsOptions_SetServers(options, &texts, Int32(texts.count)))
    try check(natsOptions_SetName(options, name))
    try check(natsOptions_SetTimeout(options, 2000))
    // Without end and soon: the relay refuses pushes meanwhile.
    try check(natsOptions_SetMaxReconnect(options, -1))
    try check(natsOptions_SetReconnectWait(options, 100))
    // Detects a server that hangs, and does not block the sender for long.
    try check(natsOptions_SetPingInterval(options, 2000))
    try check(natsOptions_SetMaxPingsOut(options, 2))
    try check(natsOptions_SetWriteDeadline(options, 1000))
    // Messages are batches already.
    try check(natsOptions_SetSendAsap(options, true))
    try check(
      natsOptions_SetDisconnectedCB(
        options, { _, context in NATSConnection.listener(context)?.onConnection(false) }, context))
    try check(
      natsOptions_SetReconnectedCB(
        options, { _, context in NATSConnection.listener(context)?.onConnection(true) }, context))
    try check(
      natsOptions_SetClosedCB(
        options, { NATSConnection.listener($1)?.closed($0) }, context))
    // Without a handler the library prints to standard error.
    try check(
      natsOptions_SetErrorHandler(
        options,
        { connection, _, status, context in
          var text: UnsafePointer<CChar>?
          guard status == NATS_NOT_PERMITTED || status == NATS_CONNECTION_AUTH_FAILED,
            natsConnection_GetLastError(connection, &text) == status, let text
          else { return }
          NATSConnection.listener(context)?.bar(String(cString: text))
        }, context))
    var connection: OpaquePointer?
    let status = natsConnection_Connect(&connection, options)
    guard status == NATS_OK else { throw refusal(status, access) }
    guard let connection else { throw NATSError("no connection was made") }
    return connection
  }

  private static func subscribe(
    _ connection: OpaquePointer, _ inbox: String, _ context: UnsafeMutableRawPointer
  ) throws(NATSError) -> OpaquePointer {
    var subscription: OpaquePointer?
    try check(
      natsConnection_Subscribe(
        &subscription, connection, inbox + ".>",
        { _, _, message, context in
          defer { natsMsg_Destroy(message) }
          guard let message, let listener = NATSConnection.listener(context) else { return }
          listener.onMessage(NATSConnection.read(message, listener.inbox))
        }, context))
    guard let subscription else { throw NATSError("no subscription was made") }
    // Messages sent before the server knows of the subscription are lost.
    try check(natsConnection_FlushTimeout(connection, 2000))
    return subscription
  }

  private static func listener(_ context: UnsafeMutableRawPointer?) -> Listener? {
    context.map { Unmanaged<Listener>.fromOpaque($0).takeUnretainedValue() }
  }

  private static func read(_ message: OpaquePointer, _ inbox: String) -> NATSMessage {
    let subject = natsMsg_GetSubject(message).map { String(cString: $0) } ?? ""
    let count = Int(natsMsg_GetDataLength(message))
    let body = natsMsg_GetData(message).map {
      [UInt8](UnsafeRawBufferPointer(start: $0, count: count))
    }
    return NATSMessage(
      tag: String(subject.dropFirst(inbox.count + 1)), body: body ?? [], headers: headers(message))
  }

  private static func headers(_ message: OpaquePointer) -> [String: String] {
    var keys: UnsafeMutablePointer<UnsafePointer<CChar>?>?
    var count: Int32 = 0
    guard natsMsgHeader_Keys(message, &keys, &count) == NATS_OK, let keys else { return [:] }
    defer { free(keys) }
    var headers: [String: String] = [:]
    for index in 0..<Int(count) {
      var value: UnsafePointer<CChar>?
      guard let key = keys[index], natsMsgHeader_Get(message, key, &value) == NATS_OK, let value
      else { continue }
      headers[String(cString: key)] = String(cString: value)
    }
    return headers
  }
}

/// The servers, and the trust and credentials for them. Paths are empty where there is no file.
package struct NATSAccess: Hashable, Sendable {
  /// URLs, `nats://` or `tls://`, with user and password if needed.
  package var servers: [String]
  /// PEM file of authorities for the servers' certificates; empty for the system's.
  package var authorities = ""
  /// PEM files of our certificate with its chain and of its key, for servers that demand one.
  package var certificate = ""
  package var key = ""
  /// File with a user's JWT and the seed of its key, as NATS' tools write it.
  package var credentials = ""

  package init(servers: [String]) { self.servers = servers }

  /// Requires TLS for all connections: the C client would go on without where a server offers none,
  /// even for `tls://`.
  package var isEncrypted: Bool {
    !authorities.isEmpty || !certificate.isEmpty || servers.contains { $0.hasPrefix("tls://") }
  }
}

/// A message that arrived on a connection's inbox.
package struct NATSMessage: Sendable {
  /// The tag of the question: the subject behind the inbox's name.
  package var tag: String
  package var body: [UInt8]
  package var headers: [String: String]

  package init(tag: String, body: [UInt8], headers: [String: String] = [:]) {
    self.tag = tag
    self.body = body
    self.headers = headers
  }

  /// The status in the headers' first line ("NATS Protocol", "HMSG"): 503 for a subject without
  /// subscribers.
  package var status: Int? { headers["Status"].flatMap { Int($0) } }
}

package struct NATSError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Where to look for the cause.
  package enum Cause: Equatable, Sendable {
    /// Mostly that no server answers.
    case other
    /// A file of ours is not usable.
    case file(path: String)
    /// The server's certificate is not trusted, or is another host's.
    case certificate
    case noTLS
    /// The server hung up on our certificate, or for lack of one.
    case hangup
    case user
  }

  package var description: String
  package var cause: Cause

  package init(_ description: String, _ cause: Cause = .other) {
    (self.description, self.cause) = (description, cause)
  }
}
