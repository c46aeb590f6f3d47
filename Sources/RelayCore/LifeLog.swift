/// The latest steps of notifications' lives, in a ring of bounded size: what `pushrelay log` and
/// `GET /v1/notifications/{id}` show.
///
/// Looking one up reads the whole ring; people ask seldom, and pushes come all the time, so adding
/// a step is one store and nothing is indexed.
package struct LifeLog: Sendable {
  private var events: [LifeEvent] = []
  /// The oldest event, once the ring is full.
  private var oldest = 0
  private let capacity: Int

  /// Steps that a life takes on the average, to turn notifications into steps: received, stored or
  /// sent, and its end, with one to spare.
  package static let stepsPerNotification = 4

  /// - Parameter notifications: about how many of the last notifications are remembered.
  package init(notifications: Int) {
    capacity = max(1, notifications) * Self.stepsPerNotification
  }

  /// How many steps are held.
  package var count: Int { events.count }

  package mutating func append(_ event: consuming LifeEvent) {
    if events.count < capacity {
      events.append(event)
    } else {
      events[oldest] = event
      oldest += 1
      if oldest == capacity { oldest = 0 }
    }
  }

  /// The steps of the notification with this unique id, oldest first; or else of the latest one
  /// that its provider called so (`apns-id`).
  package func steps(of id: UniqueID) -> [LifeEvent] {
    var unique: [LifeEvent] = []
    var named: UniqueID?
    for event in inOrder {
      if event.uniqueID == id { unique.append(event) }
      if case .received(_, let apnsID, _) = event.step, apnsID == id { named = event.uniqueID }
    }
    guard unique.isEmpty, let named else { return unique }
    return inOrder.filter { $0.uniqueID == named }
  }

  /// Oldest first.
  private var inOrder: [LifeEvent] { Array(events[oldest...]) + events[..<oldest] }
}
