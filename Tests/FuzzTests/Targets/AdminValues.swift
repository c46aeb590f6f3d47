@testable import RelayCore
@testable import RelayRequests

/// Values of the admin API: JSON as a tree, policies and conditions on payloads, which are the same
/// when they are read from their own text; redacted payloads, which are JSON without the value.
///
/// The first byte of an input says what the rest is; a condition ends with a zero, and what follows
/// is a payload.
enum AdminValues {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    guard let first = input.first else { return }
    let bytes = [UInt8](input.dropFirst())
    switch first % 3 {
    case 0: try checkTree(bytes)
    case 1: try checkPolicy(String(decoding: bytes, as: UTF8.self))
    default:
      let parts = bytes.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
      try checkCondition(String(decoding: parts[0], as: UTF8.self), Array(parts.last ?? []))
    }
  }

  private static func checkTree(_ bytes: [UInt8]) throws(Finding) {
    guard let tree = try? JSONTree.read(bytes) else { return }
    try check(tree, again: try? JSONTree.read(tree.source))
  }

  private static func check(_ tree: JSONTree, again: JSONTree?) throws(Finding) {
    let text = String(decoding: tree.source, as: UTF8.self)
    guard again?.isEqual(to: tree) == true else {
      throw Finding("its own text is another: \(text)")
    }
    let parts: [JSONTree] =
      switch tree.value {
      case .object(let members): members.map(\.value)
      case .list(let items): items
      case .text, .number, .flag, .null: []
      }
    for part in parts {
      let text = String(decoding: part.source, as: UTF8.self)
      try check(part, again: JSONTree.reading(value: text))
    }
  }

  private static func checkPolicy(_ text: String) throws(Finding) {
    guard let policy = try? SilentPolicy(text: text) else { return }
    guard let again = try? SilentPolicy(text: policy.text), again.perApp == policy.perApp,
      again.perDevice == policy.perDevice
    else { throw Finding("its own text is another policy: \(policy.text)") }
  }

  private static func checkCondition(_ text: String, _ payload: [UInt8]) throws(Finding) {
    let condition = PayloadCondition(text)
    guard PayloadCondition(condition.text).text == condition.text else {
      throw Finding("its own text is another condition: \(condition.text)")
    }
    let redacted = Redaction([condition.path]).redacted(payload)
    guard let tree = try? JSONTree.read(payload) else { return }
    _ = condition.difference(in: tree)
    guard condition.path.find(in: tree) != nil else {
      guard redacted == payload else { throw Finding("redacted without a reason") }
      return
    }
    let text = String(decoding: redacted, as: UTF8.self)
    // The whole becomes a text.
    let rest =
      condition.path.names.isEmpty ? JSONTree.reading(value: text) : try? JSONTree.read(redacted)
    guard let rest, let kept = condition.path.find(in: rest)?.text, kept.hasPrefix("["),
      kept.hasSuffix("]")
    else { throw Finding("redacted it is \(text)") }
  }
}
