import Testing

@testable import PhoneRuntime

@Suite struct PhoneStorageErrorTests {
  /// One line each, that names the thing and says what to do.
  @Test func everyErrorSaysWhatToDo() {
    let errors: [(PhoneStorageError, names: String, advises: String)] = [
      (.locked, "locked", "unlock it"), (.wrongPasscode(keybag: "k"), "k", "give the one"),
      (.name("a/b"), "a/b", "use 1 to"), (.archive(app: "a", problem: "p"), "a", "stays"),
      (.unusable(path: "p", reason: "No space left on device"), "No space", "check that"),
      (.damaged(path: "p", problem: "was changed", advice: "remove it"), "p was", "remove it"),
      (.keys(problem: "x"), "x", "try again"), (.outdated(path: "p"), "p is", "begins as"),
      (.unknownFormat(path: "p", found: 9), "format 9", "use the version"),
    ]
    for (error, names, advises) in errors {
      #expect("\(error)".contains(names) && "\(error)".contains(advises), "\(error)")
      #expect(!"\(error)".contains("\n"))
    }
  }
}
