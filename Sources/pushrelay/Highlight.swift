import ArgumentParser
import DeviceSimulator
import FoundationEssentials
import SystemPackage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

enum Terminal {
  static func shows(_ file: FileDescriptor) -> Bool { isatty(file.rawValue) == 1 }

  /// How wide the terminal is that shows the output, or `COLUMNS`; nil in a pipe. Only unsafe code
  /// may ask it, and ArgumentParser has some: it wraps this text of blanks one before the end.
  static let columns: Int? = {
    struct Ruler: ParsableCommand {
      static let configuration = CommandConfiguration(
        abstract: String(repeating: " ", count: 1000), helpNames: [])
    }
    guard shows(.standardOutput) else { return nil }
    let first = Ruler.helpMessage().split(separator: "\n", maxSplits: 1).first
    return first.flatMap { $0.count > 1000 ? nil : $0.count + 1 }
  }()
}

/// Colours and marks of a timeline on a terminal, none in a pipe, unless `CLICOLOR_FORCE` wants
/// them everywhere (bixense.com/clicolors) or `NO_COLOR` nowhere (no-color.org).
enum Highlight {
  static let isOn: Bool = {
    let environment = ProcessInfo.processInfo.environment
    guard environment["NO_COLOR", default: ""].isEmpty else { return false }
    guard ["", "0"].contains(environment["CLICOLOR_FORCE", default: ""]) else { return true }
    return environment["TERM"] != "dumb" && Terminal.shows(.standardOutput)
  }()

  static func text(_ line: TraceLine, _ text: String) -> String {
    guard let style = style(of: line) else { return "  \(text)" }
    return "\u{1B}[\(style.colour)m\(style.mark) \(text)\u{1B}[0m"
  }

  private typealias Style = (mark: String, colour: Int)

  private static let styles: [TraceKind: Style] = [
    .stored: ("○", 33), .waits: ("○", 33), .discarded: ("✕", 31), .refused: ("!", 31),
    .abandoned: ("!", 31), .taskExpired: ("!", 31), .dataUnavailable: ("!", 31), .fault: ("!", 31),
    .connected: ("·", 36), .disconnected: ("·", 36), .booted: ("·", 36), .crashed: ("!", 31),
    .started: ("·", 36),
  ]
  /// By what triggered the push.
  private static let sent: [String: Style] = [
    "piggyback": ("◆", 35), "refill": ("▲", 32), "hold": ("▲", 32),
  ]

  /// nil for what is ordinary.
  private static func style(of line: TraceLine) -> Style? {
    if line.kind == .sent { return sent[line.why] }
    if line.kind == .outcome { return line.why.hasPrefix("not launched") ? ("!", 33) : nil }
    return styles[line.kind]
  }
}
