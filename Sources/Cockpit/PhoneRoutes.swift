import AdminAPI
import Hummingbird
import NIOCore
import Primitives
import RelayCore
import RelayServer
import ServiceLifecycle

/// A test's phone over plain HTTP/1.1, for any client that can `fetch`. Like the device API
/// (docs/PROTOCOL.md), but without a device's secret.
struct PhoneRoutes {
  let relay: Relay

  func add(to router: Router<AdminContext>) {
    router.post("/v1/devices") { request, _ in
      let members = try JSONMembers(try await request.bytes(), known: ["name"])
      let name = try members.text("name")
      guard name.map(DeviceNames.isUsable) ?? true else {
        throw Refusal.body(DeviceNames.words, field: "name")
      }
      guard let enrolled = await relay.enrol(name: name) else { throw Refusal.notReady }
      guard case .enrolled(let device) = enrolled.answer else { throw Refusal(enrolled.answer) }
      let body = ["device": device.description, "secret": enrolled.secret, "name": enrolled.name]
      return try Response(.created, json: body.compactMapValues(\.self))
    }
    router.delete("/v1/devices/:id") { _, context in
      let device = try context.device()
      guard let report = try await relay.report(of: device) else { throw DeviceRoutes.unknown }
      for app in report.apps { _ = try await relay.unregister(app.topic, on: device) }
      guard try await relay.forget(device) else {
        throw Refusal.conflict(
          "Busy", "the journal still has to answer for the device, or it got an app; try again")
      }
      return Response(status: .noContent)
    }
    router.put("/v1/devices/:id/apps/:topic") { request, context in
      let members = try JSONMembers(try await request.bytes(), known: ["token", "environment"])
      let (token, service) = (try members.text("token"), try members.text("environment"))
      let wanted: WantedToken
      do throws(WantedToken.Problem) {
        wanted = try WantedToken(token: token, environment: service)
      } catch {
        throw Refusal.body(
          error.description, field: error == .environment ? "environment" : "token")
      }
      let answer = try await relay.register(
        try context.topic(), on: try context.device(), token: wanted)
      guard case .registered(let token) = answer else { throw Refusal(answer) }
      return try Response(json: ["token": token.hexadecimal])
    }
    router.delete("/v1/devices/:id/apps/:topic") { _, context in
      let answer = try await relay.unregister(try context.topic(), on: try context.device())
      guard case .unregistered = answer else { throw Refusal(answer) }
      return Response(status: .noContent)
    }
    // Not made of what follows, which would connect a phone that nobody writes to.
    router.head("/v1/devices/:id/stream") { _, context in
      guard try await relay.report(of: try context.device()) != nil else {
        throw DeviceRoutes.unknown
      }
      return Response(status: .ok, headers: Self.streamFields)
    }
    router.get("/v1/devices/:id/stream") { request, context in
      guard let stream = try await relay.listen(as: try context.device()) else {
        throw DeviceRoutes.unknown
      }
      var response = Response(
        status: .ok, headers: Self.streamFields,
        body: ResponseBody { writer in
          var end = writer
          await Self.write(stream, of: relay, while: request, to: &end)
          try await end.finish(nil)
        })
      response.endConnection()
      return response
    }
  }

  private static let streamFields: HTTPFields = [
    .contentType: "application/x-ndjson", .cacheControl: "no-store",
  ]

  private static func write(
    _ stream: AdminStream, of relay: Relay, while request: Request,
    to writer: inout any ResponseBodyWriter
  ) async {
    do {
      // Notices a phone that has gone even when there is nothing to send.
      try await request.body.consumeWithCancellationOnInboundClose { _ in
        for await line in stream.lines.cancelOnGracefulShutdown() {
          try await writer.write(ByteBuffer(bytes: line.bytes))
          await relay.wrote(line, of: stream)
        }
      }
    } catch {
      // The phone has gone.
    }
    await relay.hangUp(stream)
  }
}

extension Refusal {
  /// The refusal that a device would get.
  fileprivate init(_ answer: DeviceAnswer?) {
    guard let answer else {
      self = DeviceRoutes.unknown
      return
    }
    guard case .refused(let refusal) = answer else {
      self = .conflict("Unexpected", "the relay answered something else; look at its log")
      return
    }
    let row = refusal.row
    self.init(Int(row.status), row.reason, row.text)
  }
}

extension RequestContext {
  fileprivate func topic() throws(Refusal) -> Topic {
    guard let topic = parameters.get("topic").flatMap({ Topic($0) }) else {
      throw Refusal(
        400, "BadTopic", "a topic is 1 to 255 letters, digits, dots, hyphens and underscores")
    }
    return topic
  }
}
