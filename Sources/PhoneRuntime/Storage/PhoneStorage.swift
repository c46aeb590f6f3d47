package import DeviceModel
import FoundationEssentials
import TLS

/// The files of one phone, in their own directory:
///
/// ```
/// keybag.json              the keys: see Keybag
/// phone.sealed             a PhoneMemory as JSON, under the key of the class `none`
/// archives/NAME.archive    an app's StateArchive as JSON, under the key of the class `complete`
/// ```
/// The key of `complete` is in memory only between `unlock` and `lock`, so archives of a locked
/// phone can neither be read nor written (Apple, "Encrypting Your App's Files" and WWDC 2013
/// session 222). The phone's memory is always accessible.
///
/// For one process at a time. Calls block on the file system, and `unlock` computes for a while:
/// not for event loops.
package struct PhoneStorage: Sendable {
  /// Used until the user chooses one.
  package static let defaultPasscode = "0000"

  package let directory: String
  private var keybag: Keybag
  private var classKey: SymmetricKey?

  /// Opens a phone's directory, or creates it with new keys. The phone is locked.
  package init(directory: String) throws(PhoneStorageError) {
    self.directory = directory
    try PhoneFiles.makePrivateDirectory(directory)
    try PhoneFiles.makePrivateDirectory(directory + "/archives")
    let path = directory + "/" + Keybag.fileName
    if let bytes = try PhoneFiles.read(path) {
      keybag = try Keybag(bytes, path: path)
    } else {
      let sealed =
        try PhoneFiles.names(in: directory + "/archives")
        + PhoneFiles.names(in: directory).filter { $0 == Self.memoryName }
      guard sealed.isEmpty else {
        throw .damaged(path: path, problem: "is missing", advice: Keybag.advice)
      }
      keybag = Keybag()
      try PhoneFiles.write(try keybag.encoded(), to: path)
    }
  }

  // MARK: Locked and unlocked

  /// Gets the key of class `complete`. The first unlock ever chooses the passcode. Throws
  /// `wrongPasscode` and then changes nothing.
  package mutating func unlock(
    passcode: String = PhoneStorage.defaultPasscode
  ) throws(PhoneStorageError) {
    if keybag.hasPasscode {
      classKey = try keybag.classKey(passcode: passcode, path: keybagPath)
    } else {
      var keybag = keybag
      let key = try keybag.choose(passcode: passcode)
      try PhoneFiles.write(try keybag.encoded(), to: keybagPath)
      self.keybag = keybag
      classKey = key
    }
  }

  package mutating func lock() { classKey = nil }

  private var keybagPath: String { directory + "/" + Keybag.fileName }

  // MARK: Archives

  /// Replaces the app's archive. Throws `locked`, or `archive` if it exceeds `PhoneLimits` and
  /// could not be read again.
  package func save(_ archive: StateArchive, of app: String) throws(PhoneStorageError) {
    guard let classKey else { throw .locked }
    let path = try path(of: app)
    guard archive.isSound, let bytes = try? JSONEncoder().encode(archive),
      bytes.count <= PhoneLimits.archiveBytes
    else { throw .archive(app: app, problem: "it is more than an archive holds") }
    let sealed = try SealedFile.seal(Array(bytes), .archive, name: app, under: classKey)
    try PhoneFiles.write(sealed, to: path)
  }

  /// Nil if there is none. Throws `locked`.
  package func archive(of app: String) throws(PhoneStorageError) -> StateArchive? {
    guard let classKey else { throw .locked }
    let path = try path(of: app)
    guard let bytes = try PhoneFiles.read(path) else { return nil }
    let opened = try Self.open(bytes, under: classKey, path: path)
    guard opened.app == app else {
      throw .damaged(
        path: path, problem: "is the archive of \(opened.app ?? ""), not of \(app)",
        advice: Self.archiveAdvice)
    }
    return opened.archive
  }

  /// A missing archive is no error. Needs no key.
  package func deleteArchive(of app: String) throws(PhoneStorageError) {
    try PhoneFiles.remove(try path(of: app))
  }

  private func path(of app: String) throws(PhoneStorageError) -> String {
    "\(directory)/archives/\(try ArchiveName.file(of: app))"
  }

  // MARK: Transfers

  /// The path for a transfer's bytes: `transfers/NUMBER-NAME`.
  package func transferFile(number: UInt64, name: String) throws(PhoneStorageError) -> String {
    let folder = directory + "/transfers"
    try PhoneFiles.makePrivateDirectory(folder)
    let safe = name.unicodeScalars.map { scalar -> Character in
      scalar.isASCII && ArchiveName.isPlain(UInt8(scalar.value)) ? Character(scalar) : "_"
    }
    return "\(folder)/\(number)-\(String(safe.prefix(100)))"
  }

  // MARK: What lasts

  /// Replaces the phone's memory. Needs no passcode.
  package func save(_ memory: PhoneMemory) throws(PhoneStorageError) {
    let json: Data
    do {
      json = try JSONEncoder().encode(memory)
    } catch {
      throw .damaged(
        path: memoryPath, problem: "is not written: the phone's memory makes no JSON",
        advice: "its lists of state may lie too deep in each other; the last memory stays")
    }
    let sealed = try SealedFile.seal(Array(json), .memory, under: keybag.deviceKey)
    try PhoneFiles.write(sealed, to: memoryPath)
  }

  /// Nil if nothing was saved yet.
  package func memory() throws(PhoneStorageError) -> PhoneMemory? {
    guard let bytes = try PhoneFiles.read(memoryPath) else { return nil }
    let json = try SealedFile.open(
      bytes, .memory, under: keybag.deviceKey, path: memoryPath, advice: Self.memoryAdvice
    ).content
    do {
      return try JSONDecoder().decode(PhoneMemory.self, from: Data(json))
    } catch PhoneMemoryError.unknownFormat(let found) {
      throw found < PhoneMemory.format
        ? .outdated(path: memoryPath) : .unknownFormat(path: memoryPath, found: found)
    } catch {
      let problem = (error as? PhoneMemoryError).map { ": \($0)" } ?? ""
      throw .damaged(
        path: memoryPath, problem: "does not hold a phone's memory\(problem)",
        advice: Self.memoryAdvice)
    }
  }

  /// Removes everything but the keys: the phone starts as a new one.
  package func clear() throws(PhoneStorageError) {
    for name in try PhoneFiles.names(in: directory + "/archives") {
      try PhoneFiles.remove("\(directory)/archives/\(name)")
    }
    for path in [memoryPath, directory + "/transfers"] { try PhoneFiles.remove(path) }
  }

  private static let memoryName = "phone.sealed"
  private var memoryPath: String { directory + "/" + Self.memoryName }

  private static let memoryAdvice =
    "remove it: the phone begins anew, with its archives if their apps are installed again"
}

// MARK: One archive by itself

extension PhoneStorage {
  private static let archiveAdvice = "remove it: its app starts without its state"

  /// Reads a sealed or plain archive file, for inspection. The default key bag of a sealed one is
  /// where a phone has it. A plain one does not name its app.
  package static func readArchive(
    file path: String, keybag keybagPath: String? = nil,
    passcode: String = PhoneStorage.defaultPasscode
  ) throws(PhoneStorageError) -> (app: String?, archive: StateArchive) {
    guard let bytes = try PhoneFiles.read(path) else {
      throw .damaged(
        path: path, problem: "is not there", advice: "give the path of an app's archive")
    }
    guard SealedFile.isOne(bytes, .archive) else {
      return (nil, try decode(bytes, path: path, advice: "give the path of an app's archive"))
    }
    let keybagPath = keybagPath ?? Self.keybagPath(besideArchive: path)
    guard let keybagBytes = try PhoneFiles.read(keybagPath) else {
      throw .damaged(
        path: keybagPath, problem: "is not there",
        advice: "name the \(Keybag.fileName) of the phone that sealed \(path)")
    }
    let key = try Keybag(keybagBytes, path: keybagPath)
      .classKey(passcode: passcode, path: keybagPath)
    return try open(bytes, under: key, path: path)
  }

  private static func keybagPath(besideArchive path: String) -> String {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    let directory = parts.dropLast().joined(separator: "/")
    let isBare = parts.count == 1
    return (isBare ? ".." : directory + "/..") + "/" + Keybag.fileName
  }

  private static func open(
    _ bytes: [UInt8], under key: SymmetricKey, path: String
  ) throws(PhoneStorageError) -> (app: String?, archive: StateArchive) {
    let opened = try SealedFile.open(bytes, .archive, under: key, path: path, advice: archiveAdvice)
    return (opened.name, try decode(opened.content, path: path))
  }

  private static func decode(
    _ bytes: [UInt8], path: String, advice: String = archiveAdvice
  ) throws(PhoneStorageError) -> StateArchive {
    guard bytes.count <= PhoneLimits.archiveBytes,
      let archive = try? JSONDecoder().decode(StateArchive.self, from: Data(bytes)),
      archive.isSound
    else {
      throw .damaged(path: path, problem: "is no state archive", advice: advice)
    }
    return archive
  }
}
