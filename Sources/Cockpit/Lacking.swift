import AdminAPI
import RelayCore
import RelayServer

/// One JSON object with the members of both.
struct Joined<First: Encodable, Second: Encodable>: Encodable {
  let first: First
  let second: Second

  init(_ first: First, _ second: Second) { (self.first, self.second) = (first, second) }

  func encode(to encoder: any Encoder) throws {
    try first.encode(to: encoder)
    try second.encode(to: encoder)
  }
}

/// An answer with the nodes and stripes of a cluster that it lacks.
typealias Lacking<Body: Encodable> = Joined<Body, Lacks>

extension Joined where Second == Lacks {
  init(_ body: First, _ missing: Missing) {
    self.init(body, Lacks(nodes: missing.nodes, stripes: missing.stripes))
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
    self.init(node: node, position: .init(loop: loop, place: .init(place)))
  }

  /// The node's number, its loop and the place there, with hyphens between them.
  var cursor: String { "\(node)-\(position?.loop ?? 0)-\(position?.place.number ?? 0)" }
}
