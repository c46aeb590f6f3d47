import DeviceLink
import HTTP2
import NIOCore
import Primitives
package import RelayCore
package import RelayRecording
import RelaySetup
import Transport

/// The end of an order to a simulated phone.
package enum PhoneAnswer: Sendable {
  /// A JSON object of the phone's.
  case told([UInt8])
  /// In the phone's words.
  case failed(String)
  /// The phone has ended its stream, or was silent for `Limits.orderPatience`.
  case missing
  /// No stream of orders is open here.
  case takesNone
  case tooMany
}

/// The simulated phones of one loop that take orders, and the orders without an answer
/// (docs/PROTOCOL.md, "Orders"). Beside the shard, which knows nothing of them.
struct PhoneOrders {
  private struct Open {
    let stream: StreamAddress
    let timeout: Scheduled<Void>
    let tell: (PhoneAnswer) -> Void
  }

  /// A phone's newest stream, and since when it is open, in the machine's time.
  private var takers: [DeviceID: (stream: StreamAddress, since: Instant)] = [:]
  private var open: [UInt64: Open] = [:]
  private var lastNumber: UInt64 = 0

  mutating func take(_ device: DeviceID, on stream: StreamAddress) {
    takers[device] = (stream, RelayClock.steady)
  }

  func stream(of device: DeviceID) -> StreamAddress? { takers[device]?.stream }

  /// nil when no stream is open.
  func isOpen(for device: DeviceID) -> Instant? { takers[device]?.since }

  var isFull: Bool { open.count >= Limits.openOrders }

  /// Returns the order's number.
  mutating func add(
    to stream: StreamAddress, _ tell: @escaping (PhoneAnswer) -> Void,
    timeout: (UInt64) -> Scheduled<Void>
  ) -> UInt64 {
    lastNumber += 1
    open[lastNumber] = Open(stream: stream, timeout: timeout(lastNumber), tell: tell)
    return lastNumber
  }

  /// Handles a line of a phone. One that cannot be used answers nothing.
  mutating func answered(_ piece: LineSplitter.Piece, from stream: StreamAddress) {
    guard case .line(let bytes) = piece, let line = DoneLine(bytes.span),
      open[line.number]?.stream == stream
    else { return }
    switch line.result {
    case .told(let json): end(line.number, .told(json))
    case .failed(let why): end(line.number, .failed(why))
    }
  }

  mutating func end(_ number: UInt64, _ answer: PhoneAnswer) {
    guard let order = open.removeValue(forKey: number) else { return }
    order.timeout.cancel()
    order.tell(answer)
  }

  mutating func ended(_ stream: StreamAddress, of device: DeviceID) {
    if takers[device]?.stream == stream { takers[device] = nil }
    for (number, order) in open where order.stream == stream { end(number, .missing) }
  }

  mutating func endAll() {
    for number in open.keys { end(number, .missing) }
  }
}

/// A phone's stream of orders.
struct OrderTaker {
  let device: DeviceID
  var splitter = LineSplitter(limitBytes: Limits.orderAnswerBytes)
}

extension DeviceConnection {
  /// The shard checks the secret, as for a look at the device.
  func beginOrders(
    _ stream: StreamID, of credential: DeviceCredential, at now: Instant,
    on handler: ConnectionHandler
  ) throws(DeviceRequest.ParsingError) {
    guard handler.runner.settings.configuration.profile == .dev else { throw .ordersOff }
    streams[stream] = .proving(credential.device)
    handler.runner.raise(
      .asked(.inspected, credential, from: handler.address(stream)), for: credential.device,
      at: now)
  }

  /// The secret was right; returns false if the stream is for something else.
  func takeOrders(_ stream: StreamID, on handler: ConnectionHandler) -> Bool {
    guard case .proving(let device) = streams[stream] else { return false }
    guard beginLines(stream, on: handler) else { return true }
    // A phone has one. On another loop an older one may stay, which is asked nothing.
    if let older = handler.runner.orders.stream(of: device),
      let connection = handler.runner.connections[older.connection]
    {
      connection.device?.end(older.stream, at: handler.runner.now, on: connection)
    }
    streams[stream] = .takingOrders(OrderTaker(device: device))
    handler.runner.orders.take(device, on: handler.address(stream))
    // It came while the relay began to end.
    if handler.runner.connections.drainsSince != nil {
      end(stream, at: handler.runner.now, on: handler)
    }
    return true
  }

  /// A phone follows a virtual clock on this stream, too.
  func heard(
    _ piece: LineSplitter.Piece, from stream: StreamID, of device: DeviceID,
    on handler: ConnectionHandler
  ) {
    let address = handler.address(stream)
    if case .line(let line) = piece, case .barrier(let number, let next)? = try? UpLine(line.span) {
      handler.runner.barrier(from: address, device, number, next: next, takesOrders: true)
    } else {
      handler.runner.orders.answered(piece, from: address)
    }
  }

  func order(_ line: OrderLine, to stream: StreamID, on handler: ConnectionHandler) {
    guard case .takingOrders = streams[stream] else { return }
    var bytes: [UInt8] = []
    line.write(to: &bytes)
    do throws(HTTP2Error) {
      try handler.transport.http2.write(bytes.span, to: stream)
    } catch {
      handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.enhanceYourCalm)
    }
    handler.markDirty()
  }

  func endOrders(on handler: ConnectionHandler) {
    for (stream, state) in streams.all {
      if case .takingOrders = state { end(stream, at: handler.runner.now, on: handler) }
    }
  }
}

extension ShardRunner {
  func order(_ order: [UInt8]?, to device: DeviceID, _ tell: @escaping (PhoneAnswer) -> Void) {
    guard let stream = orders.stream(of: device),
      let connection = connections[stream.connection]
    else { return tell(.takesNone) }
    guard !orders.isFull else { return tell(.tooMany) }
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    let number = orders.add(to: stream, tell) { number in
      eventLoop.scheduleTask(in: .milliseconds(Limits.orderPatience.milliseconds)) {
        bound.value.orders.end(number, .missing)
      }
    }
    let line = OrderLine(number: number, time: now, order: order)
    connection.device?.order(line, to: stream.stream, on: connection)
    finishBatch()
  }
}

extension Relay {
  /// Has a simulated phone do something; `order` is a JSON object, nil asks for its state. With a
  /// virtual clock the instant has settled behind it.
  package func order(
    _ order: [UInt8]?, to device: DeviceID
  ) async throws(VirtualClock.ClockError) -> PhoneAnswer {
    guard let loops = inbox.loops else { return .takesNone }
    var answer = await loops.order(order, to: device)
    if case .takesNone = answer, nodeName != nil {
      answer = await orderElsewhere(order, to: device)
    }
    if case .told = answer, order != nil, let clock = inbox.clock {
      try await clock.settled(after: device)
    }
    return answer
  }

  /// Of an earlier connection, on another node, a stream may still be open, which answers nothing.
  private func orderElsewhere(_ order: [UInt8]?, to device: DeviceID) async -> PhoneAnswer {
    let answers = await inbox.askAll(NodeQuestions.order, Pair(device, order)).value
    var best = PhoneAnswer.takesNone
    for answer in answers {
      switch answer {
      case .told, .failed: return answer
      case .missing, .tooMany: best = answer
      case .takesNone: continue
      }
    }
    return best
  }
}

extension LoopSet {
  /// Has a phone of this node do something.
  func order(_ order: [UInt8]?, to device: DeviceID) async -> PhoneAnswer {
    // Of an earlier connection, on another loop, a stream may still be open.
    let since = await onEach { $0.orders.isOpen(for: device) }
    guard let newest = since.compactMap(\.self).max(), let loop = since.firstIndex(of: newest)
    else { return .takesNone }
    return await answer(of: loop) { $0.order(order, to: device, $1) } ?? .takesNone
  }
}

extension PhoneAnswer: Tagged {
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .told(let json): writer.put(tag: 1, json)
    case .failed(let why): writer.put(tag: 2, why)
    case .missing: writer.put(tag: 3)
    case .takesNone: writer.put(tag: 4)
    case .tooMany: writer.put(tag: 5)
    }
  }

  package static let cases: Cases<Self> = [
    1: .of(Self.told), 2: .of(Self.failed), 3: .just(.missing), 4: .just(.takesNone),
    5: .just(.tooMany),
  ]
}
