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
  case foregroundContent(AppID)
  case heldPush(AppID)
  case heldExpires(AppID)
  case bannerDue(CallbackID)
  case documentWritten(DocumentID)
  case documentUse(AccessID)
  case look(Look)
}

/// Of the whole phone, and one at a time of each: the earliest that was asked for.
enum Look: Int, CaseIterable, Sendable {
  case sleep, fetches, transfers, activities
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
  private var looks = Look.allCases.map { _ in Instant.never }

  var nextMoment: Instant? { heap.min?.at }

  mutating func set(_ kind: TimerKind, at moment: Instant) {
    heap.insert(Entry(at: moment, order: numbering.next(), kind: kind))
  }

  /// Later ones are not needed, and an earlier one takes the place of what was set.
  mutating func set(_ look: Look, at moment: Instant) {
    guard moment < looks[look.rawValue] else { return }
    looks[look.rawValue] = moment
    set(.look(look), at: moment)
  }

  mutating func popDue(at moment: Instant) -> Entry? {
    while let first = heap.min {
      guard case .look(let look) = first.kind else {
        return first.at <= moment ? heap.popMin() : nil
      }
      if looks[look.rawValue] == first.at {
        guard first.at <= moment else { return nil }
        looks[look.rawValue] = .never
        return heap.popMin()
      }
      heap.removeMin()
    }
    return nil
  }
}
