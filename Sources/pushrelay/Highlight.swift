import ArgumentParser
import DeviceSimulator
import FoundationEssentials
import Glibc
import SystemPackage

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

/// Colours and marks of lists and timelines on a terminal, none in a pipe, unless
/// `CLICOLOR_FORCE` wants them everywhere (bixense.com/clicolors) or `NO_COLOR` nowhere
/// (no-color.org).
enum Highlight {
  static let isOn: Bool = {
    let environment = ProcessInfo.processInfo.environment
    guard environment["NO_COLOR", default: ""].isEmpty else { return false }
    guard ["", "0"].contains(environment["CLICOLOR_FORCE", default: ""]) else { return true }
    return environment["TERM"] != "dumb" && Terminal.shows(.standardOutput)
  }()

  enum Colour: Int {
    case red = 31
    case green, yellow
    case magenta = 35
    case cyan
  }

  static func text(_ text: String, _ colour: Colour?) -> String {
    guard isOn, let colour else { return text }
    return "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
  }

  static func text(_ line: TraceLine, _ text: String) -> String {
    guard let style = style(of: line) else { return "  \(text)" }
    return self.text("\(style.mark) \(text)", style.colour)
  }

  private typealias Style = (mark: String, colour: Colour)

  private static let styles: [TraceKind: Style] = [
    .stored: ("○", .yellow), .waits: ("○", .yellow), .discarded: ("✕", .red),
    .refused: ("!", .red), .abandoned: ("!", .red), .taskExpired: ("!", .red),
    .dataUnavailable: ("!", .red), .fault: ("!", .red), .connected: ("·", .cyan),
    .disconnected: ("·", .cyan), .booted: ("·", .cyan), .crashed: ("!", .red),
    .started: ("·", .cyan),
  ]
  /// By what triggered the push.
  private static let sent: [String: Style] = [
    "piggyback": ("◆", .magenta), "refill": ("▲", .green), "hold": ("▲", .green),
  ]

  /// Of where a notification is, by the word for its step; nil for what is ordinary.
  static func colour(of step: String) -> Colour? {
    switch step {
    case "stored", "held": .yellow
    case "discarded", "refused": .red
    default: nil
    }
  }

  /// nil for what is ordinary.
  private static func style(of line: TraceLine) -> Style? {
    if line.kind == .sent { return sent[line.why] }
    if line.kind == .outcome { return line.why.hasPrefix("not launched") ? ("!", .yellow) : nil }
    return styles[line.kind]
  }
}
