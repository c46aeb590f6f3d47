import AdminAPI
import DeviceLink
import HTTP2
import Primitives
import RelayCore
import RelaySetup
import Transport

/// A connection on the device listener: requests of the device API, and streams on which devices
/// listen. Thousands of simulated phones may share one connection.
final class DeviceConnection {
  struct Listener {
    var device: DeviceID
    /// `GET`: a line passed to the transport counts as acknowledged, for people and curl.
    var acknowledgesItself: Bool
    var splitter = LineSplitter(limitBytes: Limits.lineBytes)
    /// Lines of a self-acknowledging stream that the transport has not taken yet.
    var unacknowledged: [UniqueID] = []
    var unusableCount = 0
    /// Said before the secret was checked: the last one, which counts once it is.
    var barrier: (number: UInt64, next: Instant?)?
  }

  enum Stream {
    case collecting(DeviceRequest, since: Instant)
    /// The shard was asked. A new device's secret is kept for the answer, and its name.
    case asked(secret: String?, name: String? = nil)
    case connecting(Listener)
    case listening(Listener)
    /// The secret of a phone that would take orders is being checked.
    case proving(DeviceID)
    case takingOrders(OrderTaker)
    case ending(since: Instant)
  }

  var streams = StreamMap(vacant: Stream.asked(secret: nil))
  var hasFullStreams = false
  /// Inspections in this turn: each answer may be long.
  private var questionCount = 0
  /// Whose streams were opened in this turn.
  private var openedDevices: Set<DeviceID> = []
  /// In a cluster: since when the sweep has seen unanswered requests.
  var askedSince: [StreamID: Instant] = [:]
  var head = HeaderBlock()
  var lineBytes: [UInt8] = []

  // MARK: Events

  func received(_ events: [HTTP2Event], at now: Instant, on handler: ConnectionHandler) {
    let arena = handler.transport.http2.arena
    questionCount = 0
    if !openedDevices.isEmpty { openedDevices = [] }
    for event in events {
      switch event {
      case .headers(let stream, let fields, let endStream):
        let list = handler.transport.http2.fields
        begin(stream, list[fields], arena, at: now, on: handler)
        if endStream { bodyEnded(stream, at: now, on: handler) }
      case .data(let stream, let bytes, let endStream):
        bodyReceived(stream, arena.span.extracting(bytes), at: now, on: handler)
        if endStream { bodyEnded(stream, at: now, on: handler) }
      case .bodyTooLarge(let stream, let endStream):
        if case .collecting(var request, let since) = streams[stream] {
          request.bodyIsTooLarge = true
          streams[stream] = .collecting(request, since: since)
        }
        if endStream { bodyEnded(stream, at: now, on: handler) }
      case .headersTooLarge(let stream): respond(stream, 431, [], on: handler)
      case .drained(let stream): drained(stream, at: now, on: handler)
      case .closed(let stream, _): closed(stream, at: now, on: handler)
      case .goAwayReceived, .pingReceived, .settingsReceived: break
      }
    }
  }

  func ended(on handler: ConnectionHandler) {
    let now = handler.runner.now
    for (stream, _) in streams.all { closed(stream, at: now, on: handler) }
  }

  /// The peer sends nothing more: listeners have hung up, incomplete requests stay so.
  func peerClosed(on handler: ConnectionHandler) {
    let now = handler.runner.now
    for (stream, state) in streams.all {
      switch state {
      case .collecting, .connecting, .listening, .proving, .takingOrders:
        closed(stream, at: now, on: handler)
      case .asked, .ending: continue
      }
    }
  }

  var owesAnswers: Bool {
    streams.all.contains { if case .asked = $0.state { true } else { false } }
  }

  func begin(
    _ stream: StreamID, _ fields: ArraySlice<HeaderField>, _ arena: [UInt8], at now: Instant,
    on handler: ConnectionHandler
  ) {
    do throws(DeviceRequest.ParsingError) {
      let request = try DeviceRequest(fields: fields, arena: arena)
      if case .takeOrders(let device) = request.route {
        try beginOrders(stream, of: try request.credential(for: device), at: now, on: handler)
      } else if case .listen(let device, let acknowledgesItself) = request.route {
        let credential = try request.credential(for: device)
        // Each opening may bring all that waits for the device once more.
        guard openedDevices.insert(device).inserted,
          handler.transport.http2.queuedBytes <= Limits.openingQueuedBytes
        else { throw .tooManyQuestions }
        streams[stream] = .connecting(
          Listener(device: device, acknowledgesItself: acknowledgesItself))
        handler.runner.raise(
          .asked(.connected, credential, from: handler.address(stream)), for: device, at: now)
      } else {
        streams[stream] = .collecting(request, since: handler.runner.clock.steady(now))
      }
    } catch {
      refuse(stream, error, on: handler)
    }
  }

  func bodyReceived(
    _ stream: StreamID, _ bytes: Span<UInt8>, at now: Instant, on handler: ConnectionHandler
  ) {
    switch streams[stream] {
    case .collecting(var request, let since):
      // Bytes beyond the limit are dropped as they come; the answer at the end says so.
      request.bodyIsTooLarge =
        request.bodyIsTooLarge || request.body.count + bytes.count > Limits.deviceBodyBytes
      if request.bodyIsTooLarge { request.body = [] } else { request.body += bytes.array }
      streams[stream] = .collecting(request, since: since)
    case .connecting(let listener), .listening(let listener):
      var splitter = listener.splitter
      splitter.receive(bytes) { received($0, from: stream, at: now, on: handler) }
      // Mostly lines come whole, and nothing is left to be kept.
      if listener.splitter.isIdle, splitter.isIdle { return }
      modifyListener(stream) { $0.splitter = splitter }
    case .takingOrders(var taker):
      var pieces: [LineSplitter.Piece] = []
      taker.splitter.receive(bytes) { pieces.append($0) }
      streams[stream] = .takingOrders(taker)
      for piece in pieces { heard(piece, from: stream, of: taker.device, on: handler) }
    case .asked, .proving, .ending, nil: break
    }
  }

  func bodyEnded(_ stream: StreamID, at now: Instant, on handler: ConnectionHandler) {
    switch streams[stream] {
    case .collecting(let request, _):
      do throws(DeviceRequest.ParsingError) {
        try perform(request, stream, at: now, on: handler)
      } catch {
        refuse(stream, error, on: handler)
      }
    case .listening(let listener) where !listener.acknowledgesItself,
      .connecting(let listener) where !listener.acknowledgesItself:
      // A device that cannot speak any more has hung up.
      handler.runner.raise(
        .stream(handler.address(stream), .disconnected), for: listener.device, at: now)
      end(stream, at: now, on: handler)
    case .takingOrders: end(stream, at: now, on: handler)
    case .connecting, .listening, .asked, .proving, .ending, nil: break
    }
  }

  func perform(
    _ request: DeviceRequest, _ stream: StreamID, at now: Instant, on handler: ConnectionHandler
  ) throws(DeviceRequest.ParsingError) {
    guard !request.bodyIsTooLarge else { throw .bodyTooLarge }
    let runner = handler.runner
    func ask(
      _ wish: RequestEvent, _ credential: DeviceCredential, secret: String? = nil,
      name: String? = nil
    ) {
      streams[stream] = .asked(secret: secret, name: name)
      runner.raise(
        .asked(wish, credential, from: handler.address(stream)), for: credential.device, at: now)
    }
    switch request.route {
    case .health:
      let clock = runner.settings.clock
      let health = RelayHealth(virtualTime: clock.isVirtual ? clock.now() : nil)
      respond(stream, 200, JSONText.line(health), on: handler)
    case .enroll:
      guard runner.settings.mayEnroll(secret: request.secret) else { throw .enrolmentClosed }
      let name = try request.name()
      let device = runner.ids.makeDevice()
      let secret = runner.ids.makeSecret()
      let hash = DeviceRequest.hash(secret.utf8)
      ask(.enrolled, DeviceCredential(device: device, secret: hash), secret: secret, name: name)
    case .inspect(let device):
      questionCount += 1
      guard questionCount <= Limits.turnInspections,
        handler.transport.http2.queuedBytes <= Limits.unsentBytes
      else { throw .tooManyQuestions }
      ask(.inspected, try request.credential(for: device))
    case .registerApp(let device, let topic):
      let credential = try request.credential(for: device)
      let wanted = try request.wantedToken()
      guard !wanted.isOwn || runner.settings.configuration.ownTokens else { throw .ownTokensOff }
      let token = runner.ids.makeToken(wanted, for: device)
      ask(.registered(topic, token, isOwn: wanted.isOwn), credential)
    case .unregisterApp(let device, let topic):
      ask(.unregistered(topic), try request.credential(for: device))
    case .subscribe(let device, let topic, let channel):
      subscribe(stream, topic, channel, try request.credential(for: device), on: handler)
    case .unsubscribe(let device, let topic, let channel):
      ask(.unsubscribed(topic, channel), try request.credential(for: device))
    case .listen, .takeOrders: preconditionFailure("these begin with the head")
    }
  }

  // MARK: Time

  /// Ends answered streams whose peer keeps sending, and unfinished requests.
  func sweep(at now: Instant, on handler: ConnectionHandler) {
    let requestTimeout = handler.runner.settings.configuration.requestTimeout
    if handler.runner.isNode { refuseOverdue(at: now, on: handler) }
    for (stream, state) in streams.all {
      switch state {
      case .ending(let since) where now - since > .seconds(1):
        // The answer is out; the rest of the request is unwanted (RFC 9113 section 8.1). A slow
        // reader gets more time.
        let isOut = handler.transport.http2.queuedBytes(of: stream) == 0
        guard isOut || now - since > .seconds(5) else { continue }
        handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.noError)
      case .collecting(_, let since) where now - since > requestTimeout:
        refuse(stream, .requestTimeout, on: handler)
      case .asked, .collecting, .connecting, .listening, .proving, .takingOrders, .ending: continue
      }
      handler.markDirty()
    }
  }

}

extension DeviceConnection {
  // MARK: Lines from the device

  func received(
    _ piece: LineSplitter.Piece, from stream: StreamID, at now: Instant,
    on handler: ConnectionHandler
  ) {
    guard let device = listener(of: stream)?.device else { return }
    let address = handler.address(stream)
    do throws(UpLine.ParsingError) {
      guard case .line(let line) = piece else { throw .tooLong }
      switch try UpLine(line.span) {
      case .ack(let id, let outcome):
        handler.runner.raise(.stream(address, .acked(id, outcome)), for: device, at: now)
      case .keepAlive: handler.runner.raise(.stream(address, .keptAlive), for: device, at: now)
      case .barrier(let number, let next):
        if case .connecting = streams[stream] {
          modifyListener(stream) { $0.barrier = (number, next) }
        } else {
          handler.runner.barrier(from: address, device, number, next: next)
        }
      case .decision(let id, let decision):
        handler.runner.raise(.stream(address, .decided(id, decision)), for: device, at: now)
      case .state(let report):
        handler.runner.raise(.stream(address, .reported(report)), for: device, at: now)
      }
    } catch {
      unusable(stream, error, on: handler)
    }
  }

  func unusable(
    _ stream: StreamID, _ problem: UpLine.ParsingError, on handler: ConnectionHandler
  ) {
    modifyListener(stream) { $0.unusableCount += 1 }
    guard let listener = listener(of: stream) else { return }
    send(.error(reason: problem.text), to: stream, on: handler)
    if listener.unusableCount >= Limits.unusableLines {
      leave(stream, listener.device, .unusableLines, on: handler)
    }
  }

  func listener(of stream: StreamID) -> Listener? {
    switch streams[stream] {
    case .connecting(let listener), .listening(let listener): listener
    case .collecting, .asked, .proving, .takingOrders, .ending, nil: nil
    }
  }

  func modifyListener(_ stream: StreamID, _ body: (inout Listener) -> Void) {
    switch streams[stream] {
    case .connecting(var listener):
      body(&listener)
      streams[stream] = .connecting(listener)
    case .listening(var listener):
      body(&listener)
      streams[stream] = .listening(listener)
    case .collecting, .asked, .proving, .takingOrders, .ending, nil: break
    }
  }

  // MARK: Lines to the device

  /// The head of an answer that goes on; false if the stream is gone.
  func beginLines(_ stream: StreamID, on handler: ConnectionHandler) -> Bool {
    head.removeAll()
    head.append(":status", literal: "200")
    head.append("content-type", literal: "application/x-ndjson")
    do throws(HTTP2Error) {
      try handler.transport.http2.respond(to: stream, head, endStream: false)
      return true
    } catch {
      return false
    }
  }

  func hello(_ stream: StreamID, on handler: ConnectionHandler) {
    guard case .connecting(let listener) = streams[stream], beginLines(stream, on: handler) else {
      return
    }
    streams[stream] = .listening(listener)
    raiseStreams(handler)
    send(
      .hello(
        device: listener.device, keepAlive: handler.runner.settings.shard.keepAlive,
        time: handler.runner.now, isVirtual: handler.runner.settings.clock.isVirtual,
        owner: handler.runner.owner(of: listener.device)),
      to: stream, on: handler)
    // It came while the relay began to end.
    guard handler.runner.connections.drainsSince == nil else {
      return leave(stream, listener.device, .shutdown, on: handler)
    }
    guard let barrier = listener.barrier else { return }
    handler.runner.barrier(
      from: handler.address(stream), listener.device, barrier.number, next: barrier.next)
  }

  func send(_ line: DownLine, to stream: StreamID, on handler: ConnectionHandler) {
    var bytes: [UInt8] = []
    swap(&bytes, &lineBytes)
    bytes.removeAll(keepingCapacity: true)
    line.write(to: &bytes)
    defer { swap(&bytes, &lineBytes) }
    guard send(bytes.span, to: stream, on: handler) else { return }
    guard case .notification(let delivery) = line, acknowledgesItself(stream) else { return }
    modifyListener(stream) { $0.unacknowledged.append(delivery.notification.uniqueID) }
  }

  private func acknowledgesItself(_ stream: StreamID) -> Bool {
    streams.read(stream) {
      if case .listening(let listener) = $0 { listener.acknowledgesItself } else { false }
    } ?? false
  }

  @discardableResult
  func send(_ line: Span<UInt8>, to stream: StreamID, on handler: ConnectionHandler) -> Bool {
    // Looked at in place: this is done for each phone of a broadcast.
    let listens = streams.read(stream) {
      switch $0 {
      case .listening, .takingOrders: true
      case .collecting, .connecting, .asked, .proving, .ending: false
      }
    }
    guard listens == true else { return false }
    do throws(HTTP2Error) {
      try handler.transport.http2.write(line, to: stream)
      return true
    } catch {
      // Frames in flight bound the queue; a peer that still fills it has long stopped reading.
      handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.enhanceYourCalm)
      return false
    }
  }

  func checkQueue(of stream: StreamID, on handler: ConnectionHandler) {
    guard let device = listener(of: stream)?.device else { return }
    let isEmpty = handler.transport.http2.queuedBytes(of: stream) == 0
    handler.runner.raise(
      .stream(handler.address(stream), .queueChecked(isEmpty: isEmpty)), for: device,
      at: handler.runner.now)
  }

  func close(_ stream: StreamID, _ reason: CloseReason, on handler: ConnectionHandler) {
    let owner = listener(of: stream).flatMap { handler.runner.owner(of: $0.device) }
    send(.bye(reason: reason.name, owner: owner), to: stream, on: handler)
    end(stream, at: handler.runner.now, on: handler)
  }

  func endStreams(
    _ reason: CloseReason, but staying: Set<StreamAddress>, on handler: ConnectionHandler
  ) {
    for (stream, state) in streams.all where !staying.contains(handler.address(stream)) {
      switch state {
      case .connecting, .listening: close(stream, reason, on: handler)
      case .collecting, .asked, .proving, .takingOrders, .ending: break
      }
    }
  }

  func end(_ stream: StreamID, at now: Instant, on handler: ConnectionHandler) {
    handler.runner.timers.followers.remove(handler.address(stream))
    switch streams[stream] {
    case .listening: handler.transport.http2.finish(stream)
    case .takingOrders(let taker):
      handler.runner.orders.ended(handler.address(stream), of: taker.device)
      handler.transport.http2.finish(stream)
    case .connecting: handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.cancel)
    case .collecting, .asked, .proving, .ending, nil: break
    }
    streams[stream] = .ending(since: handler.runner.clock.steady(now))
    handler.markDirty()
  }

  /// All written lines are on their way: acknowledges those of a self-acknowledging stream.
  func drained(_ stream: StreamID, at now: Instant, on handler: ConnectionHandler) {
    guard acknowledgesItself(stream), let listener = listener(of: stream) else { return }
    modifyListener(stream) { $0.unacknowledged.removeAll() }
    let address = handler.address(stream)
    for id in listener.unacknowledged {
      handler.runner.raise(.stream(address, .acked(id, nil)), for: listener.device, at: now)
    }
    handler.runner.raise(.stream(address, .heard), for: listener.device, at: now)
  }

  func closed(_ stream: StreamID, at now: Instant, on handler: ConnectionHandler) {
    handler.runner.timers.followers.remove(handler.address(stream))
    if let device = listener(of: stream)?.device {
      handler.runner.raise(.stream(handler.address(stream), .disconnected), for: device, at: now)
    }
    if case .takingOrders(let taker) = streams[stream] {
      handler.runner.orders.ended(handler.address(stream), of: taker.device)
    }
    streams[stream] = nil
  }
}

extension DeviceConnection {
  // MARK: Answers

  func answer(_ stream: StreamID, _ answer: DeviceAnswer, on handler: ConnectionHandler) {
    switch answer {
    case .enrolled(let device):
      guard case .asked(let secret?, let name) = streams[stream] else { return }
      // Open enrolment proves nothing.
      if handler.runner.settings.configuration.enrolment != .open { raiseStreams(handler) }
      func enrolled(as name: String?) {
        guard case .asked = streams[stream] else { return }
        let body = ["device": device.description, "secret": secret, "name": name]
        respond(stream, 201, JSONText.line(body.compactMapValues(\.self)), on: handler)
      }
      guard let name else { return enrolled(as: nil) }
      handler.runner.keep(name, of: device) { enrolled(as: $0) }
    case .registered(let token):
      raiseStreams(handler)
      respond(stream, 200, JSONText.line(["token": token.hexadecimal]), on: handler)
    case .unregistered, .subscribed, .unsubscribed:
      raiseStreams(handler)
      respond(stream, 204, [], on: handler)
    case .inspected(let report):
      raiseStreams(handler)
      if takeOrders(stream, on: handler) { return }
      let name = handler.runner.settings.names[report.device]
      respond(stream, 200, JSONText.line(DeviceStatus(report, name: name)), on: handler)
    case .refused(let refusal):
      let row = refusal.row
      let body = ["reason": row.reason, "message": row.text]
      respond(stream, row.status, JSONText.line(body), on: handler)
    }
  }

  /// A secret was accepted: the peer is no stranger and gets its full number of streams.
  func raiseStreams(_ handler: ConnectionHandler) {
    guard !hasFullStreams else { return }
    hasFullStreams = true
    handler.transport.http2.updateMaximumConcurrentStreams(Limits.deviceStreams)
    handler.markDirty()
  }

  func refuse(
    _ stream: StreamID, _ problem: DeviceRequest.ParsingError, on handler: ConnectionHandler
  ) {
    let row = problem.row
    let body = ["reason": row.reason, "message": row.message]
    respond(stream, row.status, JSONText.line(body), on: handler)
  }

  func respond(
    _ stream: StreamID, _ status: UInt16, _ body: [UInt8], on handler: ConnectionHandler
  ) {
    head.removeAll()
    head.append(":status", Int(status))
    if !body.isEmpty { head.append("content-type", literal: "application/json") }
    handler.respond(to: stream, head, body: body)
    if status >= 400, !hasFullStreams { handler.transport.http2.chargeRefusal(stream) }
    streams[stream] = .ending(since: handler.runner.clock.steady(handler.runner.now))
    handler.markDirty()
  }
}
