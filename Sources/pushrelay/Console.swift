import AdminAPI
import FoundationEssentials
import Primitives
import RelayCore
import Synchronization
import SystemPackage

/// Standard output and standard error, unbuffered: a line is there at once, also in a pipe.
enum Console {
  static func say(_ line: String) {
    write(Array((harmless(line) + "\n").utf8), to: .standardOutput)
  }

  /// With colours of our own; all that is not ours is in one line already.
  static func say(styled text: String) {
    write(Array((text + "\n").utf8), to: .standardOutput)
  }

  /// Names, payloads and reasons come from phones and providers.
  private static func harmless(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      line.split(separator: "\t", omittingEmptySubsequences: false).map { String($0).inOneLine }
        .joined(separator: "\t")
    }.joined(separator: "\n")
  }

  /// Writes a line of results; false if the reader has gone.
  static func tell(_ line: String) -> Bool {
    write(Array((harmless(line) + "\n").utf8), to: .standardOutput)
  }

  /// Writes JSON; escapes in it what would act on a terminal.
  static func say(bytes: [UInt8]) {
    let isPlain = bytes.allSatisfy { $0 < 0x7F }
    let text = isPlain ? bytes : String(decoding: bytes, as: UTF8.self).unicodeScalars.flatMap(json)
    write(text + [UInt8(ascii: "\n")], to: .standardOutput)
  }

  /// All of these have four digits (RFC 8259, section 7); a line feed is between values.
  private static func json(_ scalar: Unicode.Scalar) -> [UInt8] {
    guard scalar.value >= 0x7F, String.isActive(scalar) else { return Array(String(scalar).utf8) }
    return Array("\\u\(String(0x10000 + scalar.value, radix: 16).dropFirst())".utf8)
  }

  /// Writes a line to standard error.
  static func log(_ line: String) {
    write(Array((harmless(line) + "\n").utf8), to: .standardError)
  }

  static func say(object value: JSONObject) throws {
    say(bytes: try JSONText.bytes(value))
  }

  static func say(json value: some Encodable) throws {
    say(bytes: try JSONText.bytes(value))
  }

  /// Writes a line for a person at the terminal and for no log: nothing if there is no terminal.
  static func show(_ line: String) {
    let files: [FileDescriptor] = [.standardOutput, .standardError]
    guard let terminal = files.first(where: Terminal.shows) else { return }
    write(Array((line + "\n").utf8), to: terminal)
  }

  /// Writes rows in columns, two spaces apart; the last column is not padded. On a terminal it is
  /// cut at the edge in a list, on a line of its own if hardly any of it would be left, and whole
  /// in the two columns that are about one thing, or if `isWhole`: what is written there is what
  /// one asked for.
  ///
  /// - Parameter colours: of the rows; none for those without.
  static func say(
    table rows: [[String]], isWhole: Bool = false, colours: [Highlight.Colour?] = []
  ) {
    let colours = colours + Array(repeating: nil, count: rows.count - colours.count)
    let rows = rows.map { $0.map(\.inOneLine) }
    var widths: [Int] = []
    for row in rows {
      for (column, cell) in row.enumerated() {
        if column == widths.count { widths.append(0) }
        widths[column] = max(widths[column], cell.count)
      }
    }
    for (row, colour) in zip(rows, colours) {
      var line = ""
      for (column, cell) in row.enumerated() {
        line += cell
        guard column < row.count - 1 else { break }
        line += String(repeating: " ", count: widths[column] - cell.count + 2)
      }
      guard row.count > 2, !isWhole, let columns = Terminal.columns, let last = row.last else {
        say(styled: Highlight.text(line, colour))
        continue
      }
      let first = line.count - last.count
      if !last.isEmpty, columns - first < min(last.count, 24) {
        say(styled: Highlight.text(String(line.prefix(first - 2)), colour))
        line = "  " + last
      }
      while line.last == " " { line.removeLast() }
      if line.count > columns { line = line.prefix(columns - 1) + "…" }
      say(styled: Highlight.text(line, colour))
    }
  }

  /// Results could not be written: the command has failed, whatever it did.
  static var hasFailed: Bool { failure.load(ordering: .relaxed) }
  private static let failure = Atomic(false)

  /// The reader may have gone; that is no reason to fail.
  @discardableResult
  private static func write(_ bytes: [UInt8], to file: FileDescriptor) -> Bool {
    do {
      try file.writeAll(bytes)
      return true
    } catch {
      let isNews = file == .standardOutput && (error as? Errno) != .brokenPipe
      if isNews, !failure.exchange(true, ordering: .relaxed) {
        log("Error: the result cannot be written: \(error)")
      }
      return false
    }
  }
}

/// The only clock of the command line.
enum WallClock {
  static var now: Instant {
    Instant(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
  }
}

extension Instant {
  /// `09:30:00.250`, UTC.
  var timeOfDay: String { String(iso8601.dropFirst(11).dropLast(1)) }

  /// The moment, and how far away it is: `2026-11-21T09:30:00Z (in 19 min)`.
  func described(at now: Instant) -> String {
    let seconds = (milliseconds - now.milliseconds) / 1000
    guard seconds != 0 else { return "\(iso8601.prefix(19))Z (now)" }
    let amount =
      switch abs(seconds) {
      case ..<120: "\(abs(seconds)) s"
      case ..<7_200: "\(abs(seconds) / 60) min"
      case ..<172_800: "\(abs(seconds) / 3600) h"
      default: "\(abs(seconds) / 86_400) days"
      }
    let moment = "\(iso8601.prefix(19))Z"
    return seconds >= 0 ? "\(moment) (in \(amount))" : "\(moment) (\(amount) ago)"
  }
}
