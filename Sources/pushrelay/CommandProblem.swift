/// Why a command cannot do what it was asked: one line for standard error that says what to do. The
/// exit status is 1.
struct CommandProblem: Error, Equatable, CustomStringConvertible {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}
