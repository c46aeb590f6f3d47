import AdminAPI
import Hummingbird
import NIOCore
import RelayCore
import RelayServer

/// Orders to simulated phones, and how they are.
struct OrderRoutes {
  let relay: Relay

  func add(to router: Router<AdminContext>) {
    router.post("/v1/devices/:id/do") { request, context in
      let order = try await request.bytes()
      guard order.count <= Limits.orderBytes else {
        throw Refusal(413, "BodyTooLarge", "an order has at most \(Limits.orderBytes) bytes")
      }
      guard (try? JSONTree.read(order)) != nil else {
        throw Refusal.body(#"the body is one JSON object, such as {"do":"lock"}"#)
      }
      let told = try await ask(order, try context.device())
      return try Response(json: OrderDone(time: relay.now, told: told))
    }
    router.get("/v1/devices/:id/phone") { _, context in
      let told = try await ask(nil, try context.device())
      return Response(
        status: .ok, headers: [.contentType: "application/json"],
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: told + [UInt8(ascii: "\n")])))
    }
  }

  private func ask(_ order: [UInt8]?, _ device: DeviceID) async throws -> [UInt8] {
    guard relay.mayFail else {
      throw Refusal(403, "OrdersDisabled", "in the production profile no phone takes orders")
    }
    let answer: PhoneAnswer
    do {
      answer = try await relay.order(order, to: device)
    } catch {
      // Only behind what was done.
      var refusal = Refusal(error)
      refusal.message = "the phone has done it, but " + refusal.message
      throw refusal
    }
    switch answer {
    case .told(let json): return json
    case .failed(let why): throw Refusal(400, "BadOrder", why)
    case .missing:
      throw Refusal.conflict("NoAnswer", "the phone has gone, or has not answered in time")
    case .tooMany:
      throw Refusal(
        503, "TooManyOrders", "\(Limits.openOrders) orders of a loop are not carried out yet")
    case .takesNone:
      guard let report = try await relay.report(of: device) else { throw DeviceRoutes.unknown }
      guard report.isConnected else {
        throw Refusal.conflict(
          "NotConnected", "no program plays this phone: 'pushrelay device NAME' does")
      }
      throw Refusal.conflict(
        "TakesNoOrders",
        "the device is no simulated phone: 'pushrelay device' without --light plays one")
    }
  }
}
