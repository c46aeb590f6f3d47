import DeviceLink
import DeviceModel
import DeviceSimulator
import FoundationEssentials
import Primitives
import RelayClient
import RelayCore

/// A phone's orders that come over the relay (docs/PROTOCOL.md, "Orders").
struct OrderBook {
  /// Of the last stream, or of the introduction.
  var identity: DeviceIdentity?
  /// Makes a phone known that begins without a network.
  var introduction: Task<Void, Never>?
  /// Reads the phone's stream of orders; it is there without coverage, too.
  var task: Task<Void, Never>?
  /// Until the next try, while no link would notice that the relay is there again.
  var pause: Task<Void, any Error>?
  /// Lines to that stream.
  var feed: AsyncStream<PhoneSession.SentLine>.Continuation?
  /// The trace since the order that is being carried out; nil without one.
  var lines: [String]?
  /// Resumed when the link that the order has opened stands, or has failed.
  var awaitsLink: CheckedContinuation<Void, Never>?

  /// The most that an answer tells, in bytes; the rest is counted.
  static let toldBytes = Limits.orderAnswerBytes / 4
}

extension PhoneDriver {
  /// A phone that begins without a network is heard of all the same: it takes orders, and follows
  /// the relay's clock. Its apps are registered once it is in a network.
  func introduce(_ phone: Int) {
    guard configuration.takesOrders, phones[phone].task == nil, ending == nil else { return }
    let apps = Set(simulation.model(of: phone).apps.map(\.definition.name))
    untold += 1
    phones[phone].orders.introduction = Task {
      do {
        let api = DeviceAPI(try await pool.client(for: phone))
        phones[phone].orders.identity = try await configuration.identify(phone, apps, api)
        hasConnected = true
      } catch {
        warn("\(simulation.phones[phone]) takes no orders until it is in a network: \(error)")
      }
      takeOrders(phone)
      told()
    }
  }

  /// Opens the phone's stream of orders, if it has none. A relay that is older, or in production,
  /// has no such path.
  func takeOrders(_ phone: Int) {
    phones[phone].orders.pause?.cancel()
    guard configuration.takesOrders, phones[phone].orders.task == nil, ending == nil,
      let identity = phones[phone].orders.identity
    else { return }
    // The clock waits for it: from then on it can tell the phone the time wherever that is.
    untold += 1
    phones[phone].orders.task = Task {
      guard case .ended = await readOrders(phone, as: identity) else {
        phones[phone].orders.task = nil
        return
      }
      await keepReading(phone, as: identity)
      phones[phone].orders.task = nil
      // The link may have been quicker to come back.
      if phones[phone].lines != nil { takeOrders(phone) }
    }
  }

  /// A phone that is off or has no network has no link that would notice that the relay is there
  /// again.
  private func keepReading(_ phone: Int, as identity: DeviceIdentity) async {
    func isLinkless() -> Bool {
      let model = simulation.model(of: phone)
      return ending == nil && (!model.network.isConnected || model.wakefulness == .off)
    }
    var length = Duration.seconds(1)
    while isLinkless() {
      let pause = Task { [length] in try await Task.sleep(for: length) }
      phones[phone].orders.pause = pause
      try? await pause.value
      guard isLinkless() else { return }
      untold += 1
      switch await readOrders(phone, as: identity) {
      case .ended: length = .seconds(1)
      case .failed(let client):
        length = min(length * 2, .seconds(4))
        // It may have ended with the relay.
        if let client, ending == nil { await pool.discard(client, of: phone) }
      case .refused: return
      }
    }
  }

  private enum Reading {
    case ended
    /// It could not be opened, on this connection if there was one.
    case failed(RelayClient?)
    /// The relay does not know the phone any more, or is in production.
    case refused
  }

  private nonisolated func readOrders(_ phone: Int, as identity: DeviceIdentity) async -> Reading {
    var client: RelayClient?
    let stream: ClientStream
    do {
      let known = try await pool.client(for: phone)
      client = known
      stream = try await DeviceAPI(known).openStream("orders", of: identity)
    } catch {
      await opened(ordersOf: phone, nil)
      guard case ClientError.refused(let refusal) = error, refusal.status < 500 else {
        return .failed(client)
      }
      return .refused
    }
    let (lines, feed) = AsyncStream.makeStream(of: PhoneSession.SentLine.self)
    await opened(ordersOf: phone, feed)
    await withTaskCancellationHandler {
      async let written: Void = {
        for await line in lines { try await stream.write(line.bytes) }
        stream.finish()
      }()
      do {
        for try await line in stream.lines {
          if let order = OrderLine(line.span) {
            feed.yield(.init(await perform(order, phone)))
          } else if let line = DownLine(line.span) {
            await heardOnOrders(line, phone)
          }
        }
      } catch {}
      feed.finish()
      try? await written
    } onCancel: {
      stream.cancel()
    }
    await closed(ordersOf: phone)
    return .ended
  }

  /// A phone whose relay's clock moves only when told follows it there, too.
  private func opened(
    ordersOf phone: Int, _ feed: AsyncStream<PhoneSession.SentLine>.Continuation?
  ) {
    phones[phone].orders.feed = feed
    if clock != nil { feed?.yield(.init(.barrier(number: 0, next: nextMoment))) }
    told()
  }

  private func closed(ordersOf phone: Int) {
    phones[phone].orders.feed = nil
    clock?.orderBarriers[phone] = nil
    // Its moment went with it.
    clock?.told = .max
    if ending == nil { settle() }
  }

  private func perform(_ line: OrderLine, _ phone: Int) async -> DoneLine {
    if clock != nil { moveClock(to: line.time.milliseconds) } else { settle() }
    guard ending == nil else { return DoneLine(number: line.number, .failed("it is over")) }
    guard let order = line.order else { return answer(line, simulation.state(of: phone)) }
    if (try? JSONTree.read(order))?["do"]?.text == "help" {
      return answer(line, ["lines": LiveCommandHelp.lines])
    }
    phones[phone].orders.lines = []
    defer { phones[phone].orders.lines = nil }
    let session = phones[phone].session
    do {
      try simulation.perform(order: order, of: phone, at: now)
    } catch {
      return DoneLine(number: line.number, .failed("\(error)"))
    }
    settle()
    // Done means that what comes next finds the phone there.
    if phones[phone].session != session, phones[phone].task != nil, ending == nil {
      await withCheckedContinuation { phones[phone].orders.awaitsLink = $0 }
    }
    // And the relay knows of an app's new token, or that it has none; a virtual clock settles.
    if clock == nil { await registrations[phone]?.value }
    return answer(line, ["lines": Self.bounded(phones[phone].orders.lines ?? [])])
  }

  private func answer(_ line: OrderLine, _ told: some Encodable) -> DoneLine {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let json = (try? encoder.encode(told)).map(Array.init) ?? Array("{}".utf8)
    guard json.count < Limits.orderAnswerBytes / 2 else {
      return DoneLine(number: line.number, .failed("the phone has more to tell than fits"))
    }
    return DoneLine(number: line.number, .told(json))
  }

  private static func bounded(_ lines: [String]) -> [String] {
    var room = OrderBook.toldBytes
    let told = lines.prefix { line in
      room -= line.utf8.count
      return room >= 0
    }
    let left = lines.count - told.count
    return told + (left == 0 ? [] : ["and \(left) more"])
  }

  func noteForOrders(_ lines: [TraceLine]) {
    for line in lines {
      guard let phone = simulation.place(ofPhone: line.phone), phones[phone].orders.lines != nil,
        let text = line.liveText(isVerbose: false)
      else { continue }
      phones[phone].orders.lines?.append(text)
    }
  }

  func linkDecided(_ phone: Int) {
    let waiting = phones[phone].orders.awaitsLink
    phones[phone].orders.awaitsLink = nil
    waiting?.resume()
  }
}
