/// A set of enum cases in one machine word; their raw values, the bits, must be below 32.
package struct CaseSet<Case>: Hashable, Sendable
where Case: CaseIterable & RawRepresentable & Sendable, Case.RawValue == UInt8 {
  @usableFromInline
  package internal(set) var bits: UInt32

  @inlinable
  package init() { bits = 0 }

  @inline(__always)
  package init(_ member: Case) { bits = Self.bit(member) }

  @inlinable
  package var isEmpty: Bool { bits == 0 }

  /// The members in declaration order. Allocates: for logs and tests.
  package var members: [Case] { Case.allCases.filter(contains) }

  @inline(__always)
  package func contains(_ member: Case) -> Bool {
    bits & Self.bit(member) != 0
  }

  package func intersects(_ other: CaseSet) -> Bool {
    bits & other.bits != 0
  }

  @inline(__always)
  package mutating func insert(_ member: Case) {
    bits |= Self.bit(member)
  }

  @inline(__always)
  package mutating func set(_ member: Case, to isMember: Bool) {
    bits = isMember ? bits | Self.bit(member) : bits & ~Self.bit(member)
  }

  package func union(_ other: CaseSet) -> CaseSet {
    var result = self
    result.bits |= other.bits
    return result
  }

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
