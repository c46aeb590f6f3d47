import DeviceModel
import DeviceSimulator

/// The files of a driver's phones, opened and sealed as the phones are unlocked and locked.
struct PhoneKeeper: Sendable {
  /// One for each phone; none when nothing is kept.
  private var storages: [PhoneStorage] = []
  private let names: [String]
  private let passcode: String

  init(
    phones names: [String], directory: String?, passcode: String
  ) throws(PhoneStorageError) {
    self.names = names
    self.passcode = passcode
    guard let directory else { return }
    for name in names {
      storages.append(try PhoneStorage(directory: "\(directory)/\(name)"))
    }
  }

  var isKeeping: Bool { !storages.isEmpty }

  /// What is left from the last run. For a moment the passcode opens the archives; their phones put
  /// them where they cannot be read until they are unlocked.
  func lastingPhones() throws(PhoneStorageError) -> [String: LastingPhone] {
    var last: [String: LastingPhone] = [:]
    for (name, storage) in zip(names, storages) {
      guard let memory = try storage.memory() else { continue }
      var open = storage
      try open.unlock(passcode: passcode)
      var archives: [String: StateArchive] = [:]
      for app in try open.archives() { archives[app] = try open.archive(of: app) }
      last[name] = LastingPhone(memory: memory, archives: archives)
    }
    return last
  }

  mutating func unlock(_ phone: Int) throws(PhoneStorageError) {
    guard isKeeping else { return }
    try storages[phone].unlock(passcode: passcode)
  }

  mutating func lock(_ phone: Int) {
    if isKeeping { storages[phone].lock() }
  }

  /// What a phone says of an app's archive.
  func take(_ step: ArchiveStep, of app: String, _ phone: Int) throws(PhoneStorageError) {
    guard isKeeping else { return }
    switch step {
    case .saved(let archive): try storages[phone].save(archive, of: app)
    case .deleted: try storages[phone].deleteArchive(of: app)
    case .kept, .transformed, .encoded, .step, .row: break
    }
  }

  /// Where a transfer's bytes are kept; nil when nothing is.
  func file(for transfer: Transfer, of phone: Int) throws(PhoneStorageError) -> String? {
    guard isKeeping else { return nil }
    return try storages[phone].transferFile(
      number: transfer.id.number, name: transfer.request.name)
  }

  func save(_ memory: PhoneMemory, of phone: Int) throws(PhoneStorageError) {
    if isKeeping { try storages[phone].save(memory) }
  }
}
