import Primitives
import RelayCore
import RelayRecording
import RelayStore

@testable import RelayCluster

/// What nodes read of each other and of stripes: an error, or a message that is written as the same
/// bytes again. A stripe takes any of them, in any order.
///
/// The first byte of an input says what the rest is; a stripe's messages have their length, two
/// bytes, before them.
enum ClusterMessages {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    guard let first = input.first else { return }
    let bytes = [UInt8](input.dropFirst())
    switch first % 9 {
    case 0: try checkHop(bytes)
    case 1: try checkMessage(bytes)
    case 2: try checkStripe(bytes)
    case 3: try RecordedValues.check([ClusterQuestion].self, bytes, form: ClusterForm.first)
    case 4: try RecordedValues.check(ListingPart.self, bytes, form: ClusterForm.first)
    case 5: try checkBudgets(bytes)
    case 6: try RecordedValues.check([StoredProviderKey].self, bytes, form: ClusterForm.first)
    case 7: try RecordedValues.check([DeviceName].self, bytes, form: ClusterForm.first)
    default: try RecordedValues.check(ChannelPlace.self, bytes, form: ClusterForm.first)
    }
  }

  /// Clocks are brought within their bounds.
  private static func checkBudgets(_ bytes: [UInt8]) throws(Finding) {
    var reader = ByteReader(bytes, form: ClusterForm.first)
    guard let budgets = try? reader.read(SharedBudgets.self) else { return }
    var writer = ByteWriter(form: ClusterForm.first)
    writer.put(budgets)
    var again = ByteReader(writer.bytes, form: ClusterForm.first)
    guard (try? again.read(SharedBudgets.self)) == budgets else {
      throw Finding("written again it is \(writer.bytes)")
    }
  }

  private static func checkHop(_ bytes: [UInt8]) throws(Finding) {
    guard let message = try? HopMessage(bytes), let form = bytes.first else { return }
    var writer = ByteWriter(form: form)
    writer.put(message.head)
    for item in message.items { writer.put(item) }
    guard writer.bytes == bytes else { throw Finding("written again it is \(writer.bytes)") }
  }

  private static func checkMessage(_ bytes: [UInt8]) throws(Finding) {
    guard let message = try? StripeMessage(bytes) else { return }
    guard message.bytes == bytes else { throw Finding("written again it is \(message.bytes)") }
  }

  private static func checkStripe(_ bytes: [UInt8]) throws(Finding) {
    var contents = StripeContents(empty: StripeState(feedbackLimit: 16))
    var rest = bytes[...]
    var sequence: UInt64 = 0
    while rest.count >= 2 {
      let count = Int(rest.removeFirst()) | Int(rest.removeFirst()) << 8
      sequence += 1
      let message = [UInt8](rest.prefix(count))
      rest = rest.dropFirst(count)
      let before = contents.last
      let isRead = (try? contents.read(message, at: sequence, after: before)) != nil
      guard contents.last == (isRead ? sequence : before) else {
        throw Finding("it is at \(contents.last)")
      }
    }
  }
}
