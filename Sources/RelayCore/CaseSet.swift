/// A set of enum cases in one machine word: which keys a payload holds, which warning notes apply.
///
/// The case's raw value is its bit, so an enum used here has raw values below 32 (tests check it).
package struct CaseSet<Case>: Hashable, Sendable
where Case: CaseIterable & RawRepresentable & Sendable, Case.RawValue == UInt8 {
  /// Bit `n` is set when the case with raw value `n` is a member.
  @usableFromInline
  package internal(set) var bits: UInt32

  /// The empty set.
  @inlinable
  package init() { bits = 0 }

  /// The set of one case.
  @inline(__always)
  package init(_ member: Case) { bits = Self.bit(member) }

  /// Whether no case is a member.
  @inlinable
  package var isEmpty: Bool { bits == 0 }

  /// The members in the order in which the enum declares them. Allocates: for logs and tests.
  package var members: [Case] { Case.allCases.filter(contains) }

  /// Whether `member` is in the set.
  @inline(__always)
  package func contains(_ member: Case) -> Bool {
    bits & Self.bit(member) != 0
  }

  /// Whether the sets share a member.
  package func intersects(_ other: CaseSet) -> Bool {
    bits & other.bits != 0
  }

  /// Adds `member`.
  @inline(__always)
  package mutating func insert(_ member: Case) {
    bits |= Self.bit(member)
  }

  /// Adds or removes `member`, so that it is in the set exactly when `isMember`.
  @inline(__always)
  package mutating func set(_ member: Case, to isMember: Bool) {
    bits = isMember ? bits | Self.bit(member) : bits & ~Self.bit(member)
  }

  /// The members of both sets.
  package func union(_ other: CaseSet) -> CaseSet {
    var result = self
    result.bits |= other.bits
    return result
  }

  /// The members that are not in `other`.
  package func subtracting(_ other: CaseSet) -> CaseSet {
    var result = self
    result.bits &= ~other.bits
    return result
  }

  @inline(__always)
  private static func bit(_ member: Case) -> UInt32 {
    1 &<< UInt32(truncatingIfNeeded: member.rawValue)
  }
}
