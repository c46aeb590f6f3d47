import FoundationEssentials
package import TLS

/// The keys of session tickets in a state directory, so that clients are known again after a
/// restart: `tickets.keys`, a line for each key, newest first, with the UNIX milliseconds of its
/// making and its bytes in base64. Whoever reads it can pose as the server to clients that come
/// back, as with `server.key`; unlike that, nobody needs a copy.
package struct TicketKeyFile: Sendable {
  /// A ticket is read for a week at least, as long as RFC 8446 (section 4.6.1) lets it be good.
  static let keptMilliseconds: Int64 = 8 * dayMilliseconds
  static let dayMilliseconds: Int64 = 86_400_000

  package struct Entry: Equatable {
    var madeAt: Int64
    var key: TLSTicketKey
  }

  package let path: String

  package init(directory: String) { path = directory + "/tickets.keys" }

  /// The keys as of `now` (UNIX milliseconds), newest first. When a day has passed since the last
  /// one, makes another and forgets those that are too old; what is not understood, or was open to
  /// others, is replaced.
  /// Throws when the file cannot be read, or cannot be written and there are no older keys.
  package func keys(
    now: Int64, random: inout some RandomNumberGenerator
  ) throws(CredentialFileError) -> [TLSTicketKey] {
    let contents = try CredentialFiles.read(path) ?? []
    let known = CredentialFiles.isOpenToOthers(path) ? [] : Self.entries(contents)
    let current = Self.rotated(known, now: now, random: &random)
    guard current != known else { return known.map(\.key) }
    do throws(CredentialFileError) {
      try CredentialFiles.write(Self.text(of: current), to: path)
    } catch {
      guard !known.isEmpty else { throw error }
      return known.map(\.key)
    }
    return current.map(\.key)
  }

  static func rotated(
    _ known: [Entry], now: Int64, random: inout some RandomNumberGenerator
  ) -> [Entry] {
    // A clock that was set back leaves keys of the future; they are like those of the past.
    var kept = known.filter { abs(now - $0.madeAt) < keptMilliseconds }
    if let newest = kept.first, abs(now - newest.madeAt) < dayMilliseconds { return kept }
    let bytes = (0..<TLSTicketKey.length).map { _ in UInt8.random(in: 0 ... .max, using: &random) }
    if let key = TLSTicketKey(bytes) { kept.insert(Entry(madeAt: now, key: key), at: 0) }
    return kept
  }

  /// None when a line is not what this program writes.
  static func entries(_ contents: [UInt8]) -> [Entry] {
    var entries: [Entry] = []
    for line in String(decoding: contents, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count == 2, let madeAt = Int64(words[0]), (0..<1 << 53).contains(madeAt),
        let bytes = Data(base64Encoded: String(words[1])), let key = TLSTicketKey(Array(bytes))
      else { return [] }
      entries.append(Entry(madeAt: madeAt, key: key))
    }
    return entries
  }

  static func text(of entries: [Entry]) -> [UInt8] {
    let lines = entries.map { "\($0.madeAt) \(Data($0.key.bytes).base64EncodedString())\n" }
    return Array(lines.joined().utf8)
  }
}
