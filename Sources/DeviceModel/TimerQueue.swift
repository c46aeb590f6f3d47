import HeapModule
import Primitives

/// What may fall due. Timers are not cancelled: each names its subject, and one whose subject is
/// gone or has a later moment now does nothing.
enum TimerKind: Hashable, Sendable {
  case workEnds(CallbackID)
  case handlerCalled(CallbackID)
  case deadline(CallbackID)
  case graceEnds(AppID)
  case taskSliceEnds(AppID)
  case sleepDue
  case foregroundContent(AppID)
  case heldPush(AppID)
  case bannerDue(CallbackID)
  case fetchesDue
  case transfersDue
  case documentWritten(DocumentID)
  case documentUse(AccessID)
}

/// The phone's timers: earliest first, and among equals the one set first.
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

  /// Takes the earliest timer that is due.
  mutating func popDue(at moment: Instant) -> Entry? {
    guard let first = heap.min, first.at <= moment else { return nil }
    return heap.popMin()
  }
}
