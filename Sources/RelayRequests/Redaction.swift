import RelayCore

/// Places of payloads that are not kept: in their stead stand their kind and length. They are
/// personal data mostly, such as the text of an alert.
package struct Redaction: Sendable {
  package let paths: [PayloadPath]

  package init(_ paths: [PayloadPath]) { self.paths = paths }

  /// The payload to keep: byte by byte the same if it has none of the places. A body that is no
  /// JSON is replaced as a whole, as nothing is known of it.
  package func redacted(_ payload: [UInt8]) -> [UInt8] {
    guard !paths.isEmpty else { return payload }
    guard let tree = try? JSONTree.read(payload) else {
      return Array("[\(payload.count) bytes]".utf8)
    }
    var bytes: [UInt8] = []
    return write(tree, paths.map { $0.names[...] }, to: &bytes) ? bytes : payload
  }

  /// Returns false if it has none of the places. Of members with the same name each counts.
  ///
  /// - Parameter wanted: the rest of the paths that lead into this value.
  private func write(
    _ tree: JSONTree, _ wanted: [ArraySlice<String>], to bytes: inout [UInt8]
  ) -> Bool {
    if wanted.contains(where: \.isEmpty) {
      bytes += JSONTree(text: tree.kindAndLength).source
      return true
    }
    var isChanged = false
    func writePart(_ name: String, _ part: JSONTree) {
      let rest = wanted.filter { $0.first == name }.map { $0.dropFirst() }
      guard !rest.isEmpty else { return bytes += part.source }
      if write(part, rest, to: &bytes) { isChanged = true }
    }
    switch tree.value {
    case .object(let members):
      bytes.append(UInt8(ascii: "{"))
      for (place, member) in members.enumerated() {
        if place > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes += JSONTree(text: member.key).source
        bytes.append(UInt8(ascii: ":"))
        writePart(member.key, member.value)
      }
      bytes.append(UInt8(ascii: "}"))
    case .list(let items):
      bytes.append(UInt8(ascii: "["))
      for (place, item) in items.enumerated() {
        if place > 0 { bytes.append(UInt8(ascii: ",")) }
        writePart(String(place), item)
      }
      bytes.append(UInt8(ascii: "]"))
    case .text, .number, .flag, .null: bytes += tree.source
    }
    return isChanged
  }
}

extension JSONTree {
  fileprivate var kindAndLength: String {
    switch value {
    case .object(let members): "[object of \(members.count)]"
    case .list(let items): "[list of \(items.count)]"
    case .text(let text): "[text of \(text.count)]"
    case .number: "[number]"
    case .flag: "[flag]"
    case .null: "[null]"
    }
  }
}
