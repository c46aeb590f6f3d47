import DeviceSimulator
import FoundationEssentials

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Colours and marks of a timeline on a terminal; none in a pipe or where `NO_COLOR` is set
/// (no-color.org).
enum Highlight {
  static let isOn: Bool = {
    let environment = ProcessInfo.processInfo.environment
    return environment["NO_COLOR"]?.isEmpty != false && environment["TERM"] != "dumb"
      && isatty(STDOUT_FILENO) == 1
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
