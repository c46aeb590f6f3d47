package import Primitives
package import RelayCore

/// Why a request of the admin API was refused; as JSON, the body of the answer.
package struct Refusal: Error, Codable, Equatable, Sendable {
  private enum CodingKeys: CodingKey {
    case reason, message, field, waitingFor, nearest, missingNodes
  }

  /// Of HTTP.
  package var status = 0
  /// Whether nothing more is read from its connection.
  package var endsConnection = false
  /// One word for programs.
  package var reason: String
  /// What to do, for people.
  package var message: String
  /// The member of the body that is meant.
  package var field: String?
  /// Who has not come to an end.
  package var waitingFor: [String]?
  /// What there is instead of what was wanted.
  package var nearest: [NotificationLife]?
  /// Nodes that were asked and have not answered.
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

/// What the answer of a cluster's node lacks, where others have not answered: their names, and the
/// stripes that nobody has, whose devices are not in it.
package struct Lacks: Codable, Sendable {
  package var missingNodes: [String]?
  package var missingStripes: [Int]?

  package init(nodes: [String], stripes: [Int]) {
    missingNodes = nodes.isEmpty ? nil : nodes
    missingStripes = stripes.isEmpty ? nil : stripes
  }
}

/// A request of a provider that was refused: of `GET /v1/refusals`.
package struct RefusedPush: Codable, Sendable {
  package var time: Int64
  package var uniqueId: String
  package var status: Int
  package var reason: String
  /// Exactly why, for people.
  package var cause: String

  package init(at moment: Instant, _ id: UniqueID, _ rejection: Rejection, cause: String) {
    time = moment.milliseconds
    uniqueId = id.description
    status = Int(rejection.status)
    reason = rejection.reason
    self.cause = cause
  }
}

/// The answer to `GET /v1/refusals`.
package struct RefusalList: Codable, Sendable {
  package var cursor: String
  package var hasMore: Bool
  package var refusals: [RefusedPush]

  package init(cursor: String, hasMore: Bool, refusals: [RefusedPush]) {
    (self.cursor, self.hasMore, self.refusals) = (cursor, hasMore, refusals)
  }
}
