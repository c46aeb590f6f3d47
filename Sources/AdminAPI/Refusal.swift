package import Primitives
package import RelayCore

/// A refusal of an admin API request; as JSON, the body of the answer.
package struct Refusal: Error, Codable, Equatable, Sendable {
  private enum CodingKeys: CodingKey {
    case reason, message, field, waitingFor, nearest, nearestRequest, difference, missingNodes
  }

  package var status = 0
  /// True if nothing more is read from its connection.
  package var endsConnection = false
  /// One word for programs.
  package var reason: String
  /// Tells people what to do.
  package var message: String
  /// The body member at fault.
  package var field: String?
  /// Those that have not settled.
  package var waitingFor: [String]?
  /// The nearest lives to what was wanted.
  package var nearest: [NotificationLife]?
  /// The request that was nearest to the wanted, and how it first differs.
  package var nearestRequest: RequestStatus?
  package var difference: String?
  /// Nodes that did not answer.
  package var missingNodes: [String]?

  package init(
    _ status: Int, _ reason: String, _ message: String, field: String? = nil,
    waitingFor: [String]? = nil
  ) {
    self.status = status
    self.reason = reason
    self.message = message
    self.field = field
    self.waitingFor = waitingFor
  }
}

/// The gaps in a cluster node's answer: the nodes that did not answer, and the stripes without a
/// node, whose devices are missing.
package struct Lacks: Codable, Sendable {
  package var missingNodes: [String]?
  package var missingStripes: [Int]?

  package init(nodes: [String], stripes: [Int]) {
    missingNodes = nodes.isEmpty ? nil : nodes
    missingStripes = stripes.isEmpty ? nil : stripes
  }
}

/// A refused request of a provider, in `GET /v1/refusals`.
package struct RefusedPush: Codable, Sendable {
  package var time: Int64
  package var uniqueId: String
  /// The client's address and port; absent for the admin API.
  package var peer: String?
  package var status: Int
  package var reason: String
  /// The exact cause, for people.
  package var cause: String

  package init(
    at moment: Instant, _ id: UniqueID, peer: String, status: Int, reason: String, cause: String
  ) {
    self.peer = peer.isEmpty ? nil : peer
    time = moment.milliseconds
    uniqueId = id.description
    (self.status, self.reason) = (status, reason)
    self.cause = cause
  }
}

package struct RefusalList: Codable, Sendable {
  package var cursor: String
  package var hasMore: Bool
  package var refusals: [RefusedPush]

  package init(cursor: String, hasMore: Bool, refusals: [RefusedPush]) {
    (self.cursor, self.hasMore, self.refusals) = (cursor, hasMore, refusals)
  }
}
