import FoundationEssentials
import Primitives
import RelayCore

/// The only place where the server asks what time it is. Once per batch is often enough; the core
/// sees to it that time does not run backwards when the machine's clock is set.
enum RelayClock {
  static func now() -> Instant {
    Instant(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
  }
}
