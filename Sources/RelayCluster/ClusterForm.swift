import FoundationEssentials
import RelayRecording
import Synchronization

/// The form of all that nodes store and tell each other: messages of stripes, nodes' keys, settings
/// in the bucket, hops, questions. A version reads its newest form and the one before, and writes
/// the one that the cluster is at, which rises by one once every node reads the next
/// (`Membership.nextForm`).
///
/// Another form is another number for `released` and a `Fields.and(since:)`. A case of an enum that
/// an older form lacks must not be made before `written` has it.
package final class ClusterForm: Sendable {
  /// It had a number of its own in each place.
  package static let first: UInt8 = 5
  private static let released: UInt8 = 5

  #if DEBUG
    /// By how many forms a test has a node be ahead of this version.
    @TaskLocal package static var lead =
      ProcessInfo.processInfo.environment["RELAY_TEST_FORM_LEAD"].flatMap { UInt8($0) } ?? 0
    package static var newest: UInt8 { released + lead }
    /// Since which stamps have one more field.
    static let trial = released + 1
  #else
    package static let newest = released
  #endif

  /// Messages of other forms are as good as damaged.
  package static var readable: ClosedRange<UInt8> { max(first, newest - 1)...newest }

  private let number = Atomic<UInt8>(ClusterForm.newest)

  package init() {}

  /// The form to write.
  package var written: UInt8 {
    get { number.load(ordering: .relaxed) }
    set { number.store(newValue, ordering: .relaxed) }
  }

  /// The first form's number where it is called `first`, any other form's own.
  static func number(of form: UInt8, first: UInt8) -> UInt8 { form == Self.first ? first : form }

  /// The opposite; nil for a number that no version writes.
  static func form(_ number: UInt8, first: UInt8) -> UInt8? {
    number == first ? Self.first : number > Self.first ? number : nil
  }
}

extension ByteWriter {
  /// Begins a message.
  mutating func putForm(first: UInt8) { put(byte: ClusterForm.number(of: form, first: first)) }
}

extension ByteReader {
  /// Reads what a message begins with, and by which form the rest is read.
  mutating func readForm(
    first: UInt8, oldest: UInt8 = ClusterForm.readable.lowerBound
  ) throws(CodecError) {
    guard let form = ClusterForm.form(try byte(), first: first), form >= oldest,
      form <= ClusterForm.newest
    else { throw invalid(ClusterForm.self) }
    self.form = form
  }
}
