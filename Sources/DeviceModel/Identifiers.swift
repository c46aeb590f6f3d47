/// An app on one phone: its index in order of installation.
package struct AppID: Hashable, Codable, Sendable {
  package let number: Int

  package init(_ number: Int) { self.number = number }
}

/// A push, as its sender numbers it; the driver maps it to the relay's id.
public struct PushID: Hashable, Codable, Sendable {
  public let number: UInt64

  public init(_ number: UInt64) { self.number = number }
}

/// One call of an app, and its completion handler.
package struct CallbackID: Hashable, Codable, Sendable {
  package let number: UInt64
}

/// A banner on one phone.
package struct BannerID: Hashable, Codable, Sendable {
  /// No phone gets to so many.
  package static let unknown = BannerID(number: .max)

  package let number: UInt64
}

/// A background transfer on one phone.
package struct TransferID: Hashable, Codable, Sendable {
  package let number: UInt64
}

/// A document on one phone.
public struct DocumentID: Hashable, Codable, Sendable {
  public let number: UInt64

  public init(_ number: UInt64) { self.number = number }
}

/// A Live Activity of one app: the n-th that was started, on one phone.
package struct ActivityID: Hashable, Codable, Sendable, CustomStringConvertible {
  package let number: UInt64

  package init(_ number: UInt64) { self.number = number }

  package var description: String { "activity \(number)" }
}

/// A request for coordinated access to documents.
package struct AccessID: Hashable, Codable, Sendable {
  package let number: UInt64
}

/// Unique increasing numbers.
struct Numbering: Codable, Equatable, Sendable {
  private var last: UInt64 = 0

  /// The range of every counter: far from overflow, and exact in any JSON reader.
  static let range: ClosedRange<Int64> = 0...1 << 53

  mutating func next() -> UInt64 {
    last += 1
    return last
  }

  /// Checks decoded numbers: all were handed out before.
  func isSound(after numbers: some Sequence<UInt64>) -> Bool {
    last <= Self.range.upperBound && numbers.allSatisfy { $0 > 0 && $0 <= last }
  }
}
