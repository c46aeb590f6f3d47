package import Primitives

/// A line about checkpoints to phones that follow a virtual clock (docs/CLOCK.md, "Back to where it
/// was"), such as `{"type":"rewound","number":3,"epoch":7,"time":1790000000000}`.
package enum CheckpointLine: Hashable, Sendable {
  /// The phone keeps its current state.
  case saved(number: UInt32)
  /// The phone returns to the kept state and time; the epoch identifies this return.
  case rewound(number: UInt32, epoch: UInt32, time: Instant)
  case dropped(number: UInt32)

  init?(_ type: String, _ members: LineMembers, _ line: Span<UInt8>) {
    guard let number = members.number("number", line).flatMap({ UInt32(exactly: $0) }) else {
      return nil
    }
    switch type {
    case "checkpoint": self = .saved(number: number)
    case "rewound":
      guard let epoch = members.number("epoch", line).flatMap({ UInt32(exactly: $0) }),
        let time = members.time("time", line)
      else { return nil }
      self = .rewound(number: number, epoch: epoch, time: time)
    case "checkpoint-dropped": self = .dropped(number: number)
    default: return nil
    }
  }

  func write(_ object: inout ObjectWriter, to bytes: inout [UInt8]) {
    let (type, number) =
      switch self {
      case .saved(let number): ("checkpoint", number)
      case .rewound(let number, _, _): ("rewound", number)
      case .dropped(let number): ("checkpoint-dropped", number)
      }
    object.member("type", type, to: &bytes)
    object.member("number", Int64(number), to: &bytes)
    guard case .rewound(_, let epoch, let time) = self else { return }
    object.member("epoch", Int64(epoch), to: &bytes)
    object.member("time", time.milliseconds, to: &bytes)
  }
}
