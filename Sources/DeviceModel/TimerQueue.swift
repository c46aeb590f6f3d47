import HeapModule
import Primitives

/// Timers are not cancelled: each names its subject, and does nothing if the subject is gone or now
/// has a later time.
enum TimerKind: Hashable, Sendable {
  case workEnds(CallbackID)
  case handlerCalled(CallbackID)
  case deadline(CallbackID)
  case graceEnds(AppID)
  case taskSliceEnds(AppID)
  case sleepDue
  case foregroundContent(AppID)
  case heldPush(AppID)
  case heldExpires(AppID)
  case bannerDue(CallbackID)
  case fetchesDue
  case transfersDue
  case documentWritten(DocumentID)
  case documentUse(AccessID)
  case activitiesDue
}

/// Earliest first; equal times in order of insertion.
struct TimerQueue: Sendable {
  struct Entry: Comparable, Sendable {
    let at: Instant
    let order: UInt64
    let kind: TimerKind

    static func < (left: Entry, right: Entry) -> Bool {
      left.at == right.at ? left.order < right.order : left.at < right.at
    }

    static func == (left: Entry, right: Entry) -> Bool { left.order == right.order }
  }

  private var heap = Heap<Entry>()
  private var numbering = Numbering()

  var nextMoment: Instant? { heap.min?.at }

  mutating func set(_ kind: TimerKind, at moment: Instant) {
    heap.insert(Entry(at: moment, order: numbering.next(), kind: kind))
  }

  mutating func popDue(at moment: Instant) -> Entry? {
    guard let first = heap.min, first.at <= moment else { return nil }
    return heap.popMin()
  }
}
