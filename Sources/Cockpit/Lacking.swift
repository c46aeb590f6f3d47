import AdminAPI
import RelayServer

/// An answer with the nodes and stripes of a cluster that it lacks.
struct Lacking<Body: Encodable>: Encodable {
  let body: Body
  let missing: Missing

  init(_ body: Body, _ missing: Missing) {
    self.body = body
    self.missing = missing
  }

  func encode(to encoder: any Encoder) throws {
    try body.encode(to: encoder)
    try Lacks(nodes: missing.nodes, stripes: missing.stripes).encode(to: encoder)
  }
}

extension Refusal {
  /// 503: a node that has the answer, or has to act, did not answer.
  init(_ missing: Missing) {
    let nodes = missing.nodes.map { "node \($0) does not answer" }
    let stripes = missing.stripes.map { "stripe \($0) has no node" }
    self.init(503, "NodeAway", (nodes + stripes).joined(separator: ", ") + "; try again")
    if !missing.nodes.isEmpty { missingNodes = missing.nodes }
  }
}

extension Relay.DevicePlace {
  init(cursor text: String) throws(Refusal) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 3, let node = UInt16(parts[0]), let loop = Int(parts[1]),
      let place = Int32(parts[2]), loop >= 0, place >= 0
    else { throw .body("after is the cursor of a page of devices", field: "after") }
    self.init(node: node, position: Relay.DevicePosition(loop: loop, place: place))
  }

  /// The node's number, its loop and the place there, with hyphens between them.
  var cursor: String { "\(node)-\(position?.loop ?? 0)-\(position?.place ?? 0)" }
}
