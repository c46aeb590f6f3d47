/// What does not belong into our sources, whatever it is wrapped in.
enum WordingRule: CaseIterable {
  case fatalError
  case forcedTry
  case forcedCast
  case uncheckedSendable
  case printing
  case unsafeCode
  case fileAttributes

  /// A place where a rule does not hold, and why it must not.
  struct Exception {
    let rule: WordingRule
    let path: String
    let reason: String
  }

  /// The only exceptions there are. One that is no longer needed fails the test.
  static let exceptions: [Exception] = [
    Exception(
      rule: .uncheckedSendable, path: "Sources/SQLite/SQLiteConnection.swift",
      reason: "one user at a time, whom the journal's queue sees to; SQLite locks itself"),
    Exception(
      rule: .uncheckedSendable, path: "Sources/TLS/TLSContext.swift",
      reason: "the SSL_CTX is complete before anyone else sees it and then only counted and read"),
    Exception(
      rule: .uncheckedSendable, path: "Sources/TLS/TLSTicketKey.swift",
      reason: "OpenSSL counts the owners of an SSL_SESSION, and copies it before it changes it"),
    Exception(
      rule: .uncheckedSendable, path: "Sources/TLS/Cryptography/OpenSSLKey.swift",
      reason: "a parsed key, complete after init and never changed"),
    Exception(
      rule: .uncheckedSendable, path: "Sources/TLS/Cryptography/Certificate.swift",
      reason: "a parsed certificate, complete after init and never changed"),
  ]

  /// Why the rule is there, as the end of a sentence about a line.
  var explanation: String {
    switch self {
    case .fatalError: "has fatalError: nothing a peer does may end the process"
    case .forcedTry: "has try!: say what happens when it fails"
    case .forcedCast: "has as!: say what happens when it is something else"
    case .uncheckedSendable: "has @unchecked Sendable and is not among the exceptions"
    case .printing: "prints: only the command line talks to standard output"
    case .fileAttributes:
      "reads a file's attributes, whose types differ without all of Foundation: use stat()"
    case .unsafeCode: "has unsafe code: only TLS, HTTP2, NATS and SQLite may, around C libraries"
    }
  }

  /// Whether the rule holds in that target.
  func applies(to target: String) -> Bool {
    switch self {
    case .printing: target != "pushrelay"
    case .unsafeCode: !["TLS", "HTTP2", "NATS", "SQLite"].contains(target)
    default: true
    }
  }

  /// Whether a line of blanked source breaks the rule. Spacing is as swift-format leaves it.
  func isBroken(by line: Substring) -> Bool {
    switch self {
    case .fatalError: line.contains("fatalError")
    case .forcedTry: line.contains("try!")
    case .forcedCast: line.contains(" as! ")
    case .uncheckedSendable: line.contains("@unchecked Sendable")
    case .printing: ["print(", "debugPrint(", "dump("].contains { line.callsGlobal($0) }
    case .fileAttributes: line.contains("attributesOfItem")
    case .unsafeCode: line.contains("unsafe") || line.contains("Unsafe")
    }
  }
}

extension Substring {
  /// Whether it holds a call that is neither a method's nor the end of a longer name.
  fileprivate func callsGlobal(_ call: String) -> Bool {
    ranges(of: call).contains { range in
      guard range.lowerBound > startIndex else { return true }
      let before = self[index(before: range.lowerBound)]
      return !(before.isLetter || before.isNumber || before == "_" || before == ".")
    }
  }
}
