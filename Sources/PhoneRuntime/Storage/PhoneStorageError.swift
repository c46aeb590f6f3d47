/// Why a phone's files cannot be used. The description says what to do about it.
package enum PhoneStorageError: Error, Equatable, Sendable, CustomStringConvertible {
  case locked
  case wrongPasscode(keybag: String)
  /// An app's name that makes no file name.
  case name(String)
  case archive(app: String, problem: String)
  /// A file system error, in the system's words.
  case unusable(path: String, reason: String)
  /// Missing or changed; what is wrong and what to do.
  case damaged(path: String, problem: String, advice: String)
  /// The cryptography failed; no file or user can cause this.
  case keys(problem: String)
  /// From an earlier version, whose phones this one cannot continue.
  case outdated(path: String)
  /// From another version of this program.
  case unknownFormat(path: String, found: Int)

  /// One line for standard error.
  package var description: String {
    switch self {
    case .locked:
      "the phone is locked, so its archives can be neither read nor written: unlock it first"
    case .wrongPasscode(let keybag):
      "the passcode does not open \(keybag): give the one of the phone's first unlock "
        + "(\(PhoneStorage.defaultPasscode) unless it was chosen)"
    case .name(let name):
      "\"\(name)\" cannot be the name of an app's archive: use 1 to "
        + "\(ArchiveName.most) letters, digits, dots, hyphens and underscores"
    case .archive(let app, let problem):
      "the state of \(app) is not kept, the last one stays: \(problem)"
    case .unusable(let path, let reason):
      "\(path): \(reason); check that there is space and that this user may read and write it"
    case .damaged(let path, let problem, let advice): "\(path) \(problem); \(advice)"
    case .keys(let problem):
      "the phone's keys cannot be used: \(problem); try again, and report it if it stays so"
    case .outdated(let path):
      "\(path) is of an earlier version: this phone begins as a new one, its files are removed"
    case .unknownFormat(let path, let found):
      "\(path) has the format \(found), which this version does not know: use the version that "
        + "wrote it, or remove the phone's directory to begin anew"
    }
  }
}
