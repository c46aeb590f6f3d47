/// An app on one phone: its place in the order of installation.
package struct AppID: Hashable, Codable, Sendable {
  package let number: Int

  package init(_ number: Int) { self.number = number }
}

/// A push, as its sender numbers it; the driver maps it to the relay's id.
public struct PushID: Hashable, Codable, Sendable {
  public let number: UInt64

  public init(_ number: UInt64) { self.number = number }
}

/// One call of an app by the system, and so the completion handler that was handed over with it.
package struct CallbackID: Hashable, Codable, Sendable {
  package let number: UInt64
}

/// A banner in the list of notifications.
package struct BannerID: Hashable, Codable, Sendable {
  package let number: UInt64
}

/// A transfer that the system carries out.
package struct TransferID: Hashable, Codable, Sendable {
  package let number: UInt64
}

/// A document on one phone.
public struct DocumentID: Hashable, Codable, Sendable {
  public let number: UInt64

  public init(_ number: UInt64) { self.number = number }
}

/// One request to read or write documents under coordination.
package struct AccessID: Hashable, Codable, Sendable {
  package let number: UInt64
}

/// Hands out numbers, each once.
struct Numbering: Codable, Equatable, Sendable {
  private var last: UInt64 = 0

  /// Of everything that is counted: more than can be, and far from overflow. A number in JSON is
  /// exact up to there, whoever reads it.
  static let range: ClosedRange<Int64> = 0...1 << 53

  mutating func next() -> UInt64 {
    last += 1
    return last
  }

  /// Whether it goes on after all of these: what was decoded may be anything.
  func isSound(after numbers: some Sequence<UInt64>) -> Bool {
    last <= Self.range.upperBound && numbers.allSatisfy { $0 > 0 && $0 <= last }
  }
}
