import Foundation
import Primitives
import Testing

@testable import DeviceModel
@testable import PhoneRuntime

/// Apple, "Encrypting Your App's Files" and WWDC 2013 session 222: what can be had while the phone
/// is locked.
@Suite struct PhoneStorageTests {
  private let mail = "com.example.mail"

  @Test func aLockedPhonesArchivesAreOutOfReach() throws {
    let scratch = try StorageScratch()
    var storage = try PhoneStorage(directory: scratch.phone)
    #expect(throws: PhoneStorageError.locked) { try storage.save(sampleArchive(), of: mail) }
    #expect(throws: PhoneStorageError.locked) { try storage.archive(of: mail) }
    try storage.unlock()
    #expect(try storage.archive(of: mail) == nil)
    try storage.save(sampleArchive(), of: mail)
    #expect(try storage.archive(of: mail) == sampleArchive())
    try storage.save(sampleArchive(row: 6), of: mail)
    #expect(try storage.archive(of: mail) == sampleArchive(row: 6))
    storage.lock()
    #expect(throws: PhoneStorageError.locked) { try storage.archive(of: mail) }
    #expect(throws: PhoneStorageError.locked) { try storage.save(sampleArchive(), of: mail) }
    // To delete takes no key.
    let archives = scratch.phone + "/archives"
    #expect(try PhoneFiles.names(in: archives) == ["\(mail).archive"])
    try storage.deleteArchive(of: mail)
    try storage.deleteArchive(of: mail)
    #expect(try PhoneFiles.names(in: archives) == [])
  }

  @Test func theNextRunFindsWhatTheLastOneLeft() throws {
    let scratch = try StorageScratch()
    let phone = samplePhone()
    var first = try PhoneStorage(directory: scratch.phone)
    #expect(try first.memory() == nil)
    try first.unlock(passcode: "2580")
    try first.save(sampleArchive(), of: mail)
    // What lasts can be kept at any time.
    first.lock()
    try first.save(phone.memory())
    var second = try PhoneStorage(directory: scratch.phone)
    #expect(try restored(second).apps == phone.memory().phone.apps)
    #expect(
      throws: PhoneStorageError.wrongPasscode(keybag: scratch.phone + "/keybag.json")
    ) { try second.unlock() }
    #expect(throws: PhoneStorageError.locked) { try second.archive(of: mail) }
    try second.unlock(passcode: "2580")
    #expect(try second.archive(of: mail) == sampleArchive())
    // A wrong passcode does not lock what is unlocked.
    #expect(throws: PhoneStorageError.self) { try second.unlock(passcode: "") }
    #expect(try second.archive(of: mail) == sampleArchive())
  }

  @Test func filesAreForTheirOwnerAndSealed() throws {
    let scratch = try StorageScratch()
    try FileManager.default.createDirectory(
      atPath: scratch.phone, withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o755])
    var storage = try PhoneStorage(directory: scratch.phone)
    try storage.unlock(passcode: "open sesame")
    try storage.save(sampleArchive(), of: mail)
    try storage.save(samplePhone().memory())
    for directory in ["", "/archives"] { #expect(try scratch.mode(directory) == 0o700) }
    for (file, secret) in [
      ("phone.sealed", "example"), ("archives/com.example.mail.archive", "private"),
      ("keybag.json", "sesame"),
    ] {
      #expect(try scratch.mode("/" + file) == 0o600, "\(file)")
      let text = String(decoding: try scratch.bytes(file), as: UTF8.self)
      #expect(!text.contains(secret), "\(file)")
    }
    // Nothing temporary is left.
    let names = try FileManager.default.contentsOfDirectory(atPath: scratch.phone)
    #expect(Set(names) == ["keybag.json", "phone.sealed", "archives"])
  }

  @Test func everyChangedByteIsFound() throws {
    let scratch = try StorageScratch()
    var storage = try PhoneStorage(directory: scratch.phone)
    try storage.unlock()
    try storage.save(sampleArchive(), of: mail)
    try storage.save(samplePhone().memory())
    for (file, step) in [("archives/com.example.mail.archive", 1), ("phone.sealed", 97)] {
      let whole = try scratch.bytes(file)
      var damaged = stride(from: 0, to: whole.count, by: step).map { place in
        var bytes = whole
        bytes[place] ^= 1 << UInt8(place % 8)
        return bytes
      }
      damaged += stride(from: 0, to: whole.count, by: step * 3).map { Array(whole.prefix($0)) }
      damaged += [whole + [0], Array("garbage".utf8), [UInt8](repeating: 0xFF, count: 300)]
      for (number, bytes) in damaged.enumerated() {
        try scratch.write(bytes, to: file)
        do throws(PhoneStorageError) {
          let isArchive = file.hasSuffix(".archive")
          let found: Any? = isArchive ? try storage.archive(of: mail) : try storage.memory()
          Issue.record("\(file), damage \(number): \(String(describing: found))")
        } catch {
          switch error {
          case .damaged(let path, _, let advice):
            #expect(path == scratch.phone + "/" + file && advice.contains("remove it"))
          case .unknownFormat: break
          default: Issue.record("\(file), damage \(number): \(error)")
          }
        }
      }
      try scratch.write(whole, to: file)
    }
    #expect(try storage.archive(of: mail) == sampleArchive())
    #expect(try restored(storage).apps == samplePhone().memory().phone.apps)
  }

  @Test func oneAppsArchiveIsNotAnothers() throws {
    let scratch = try StorageScratch()
    var storage = try PhoneStorage(directory: scratch.phone)
    try storage.unlock()
    try storage.save(sampleArchive(), of: mail)
    let archives = scratch.phone + "/archives/"
    try FileManager.default.moveItem(
      atPath: archives + "com.example.mail.archive", toPath: archives + "other.archive")
    #expect {
      try storage.archive(of: "other")
    } throws: { error in
      "\(error)".contains("is the archive of com.example.mail, not of other")
    }
    // Neither does it open on another phone, whose passcode is the same.
    let elsewhere = try StorageScratch()
    var other = try PhoneStorage(directory: elsewhere.phone)
    try other.unlock()
    try elsewhere.write(scratch.bytes("archives/other.archive"), to: "archives/other.archive")
    #expect {
      try other.archive(of: "other")
    } throws: { "\($0)".contains("sealed under another key") }
  }

  @Test func whatCouldNotBeReadAgainIsNotKept() throws {
    let scratch = try StorageScratch()
    var storage = try PhoneStorage(directory: scratch.phone)
    try storage.unlock()
    try storage.save(sampleArchive(), of: mail)
    var graph = StateGraph()
    let window = graph.add("Window", identifier: "window")
    graph.set(window, "big", .data([UInt8](repeating: 1, count: PhoneLimits.archiveBytes)))
    let tooLarge = StateArchive(
      of: graph, appVersion: "1", systemVersion: "7", at: Instant(milliseconds: 0))
    #expect {
      try storage.save(tooLarge, of: mail)
    } throws: { "\($0)".hasPrefix("the state of com.example.mail is not kept") }
    #expect(try storage.archive(of: mail) == sampleArchive())
  }

  @Test func whatTheSystemRefusesIsSaidWithItsPath() throws {
    let scratch = try StorageScratch()
    try Data().write(to: URL(filePath: scratch.phone))
    for directory in [scratch.phone, scratch.phone + "/below", "/proc/phone"] {
      do throws(PhoneStorageError) {
        _ = try PhoneStorage(directory: directory)
        Issue.record("\(directory) was opened")
      } catch {
        guard case .unusable(let path, let reason) = error else {
          Issue.record("\(error)")
          continue
        }
        #expect(path.hasPrefix(directory) && !reason.isEmpty)
        #expect("\(error)".contains("check that"), "\(error)")
      }
    }
    // A directory where a file should be.
    let other = try StorageScratch()
    let storage = try PhoneStorage(directory: other.phone)
    try FileManager.default.createDirectory(
      atPath: other.phone + "/phone.sealed/full", withIntermediateDirectories: true)
    #expect {
      try storage.save(samplePhone().memory())
    } throws: { "\($0)".contains("phone.sealed: ") }
    #expect { try storage.memory() } throws: { "\($0)".contains("phone.sealed: ") }
  }

  /// A phone of an earlier version begins as a new one, under its old keys.
  @Test func whatAnEarlierVersionKeptIsRemoved() throws {
    let scratch = try StorageScratch()
    var storage = try PhoneStorage(directory: scratch.phone)
    try storage.unlock(passcode: "2580")
    try storage.save(sampleArchive(), of: mail)
    let file = try storage.transferFile(number: 1, name: "film")
    try Data([1]).write(to: URL(filePath: file))
    let keybag = try Keybag(scratch.bytes("keybag.json"), path: "k")
    let old = try SealedFile.seal(
      Array(#"{"format":1,"savedAt":{"milliseconds":1}}"#.utf8), .memory, under: keybag.deviceKey)
    try scratch.write(old, to: "phone.sealed")
    #expect(throws: PhoneStorageError.outdated(path: scratch.phone + "/phone.sealed")) {
      try storage.memory()
    }
    try storage.clear()
    #expect(try storage.memory() == nil)
    #expect(try PhoneFiles.names(in: scratch.phone + "/archives") == [])
    #expect(!FileManager.default.fileExists(atPath: file))
    #expect(throws: PhoneStorageError.self) { try storage.unlock() }
    try storage.unlock(passcode: "2580")
  }

  private func restored(_ storage: PhoneStorage) throws -> Phone {
    try #require(try storage.memory()).phone
  }

  // MARK: One archive by itself

  @Test func anArchiveIsReadFromItsFileAlone() throws {
    let scratch = try StorageScratch()
    var storage = try PhoneStorage(directory: scratch.phone)
    try storage.unlock(passcode: "1234")
    try storage.save(sampleArchive(), of: mail)
    let path = scratch.phone + "/archives/com.example.mail.archive"
    let found = try PhoneStorage.readArchive(file: path, passcode: "1234")
    #expect(found.app == mail && found.archive == sampleArchive())
    let copy = scratch.path + "/copy"
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let keybag = scratch.phone + "/keybag.json"
    let copied = try PhoneStorage.readArchive(file: copy, keybag: keybag, passcode: "1234")
    #expect(copied.app == mail && copied.archive == sampleArchive())
    let plain = scratch.path + "/plain"
    try JSONEncoder().encode(sampleArchive()).write(to: URL(filePath: plain))
    let bare = try PhoneStorage.readArchive(file: plain)
    #expect(bare.app == nil && bare.archive == sampleArchive())

    func problem(_ path: String, keybag: String? = nil, passcode: String = "1234") -> String {
      do throws(PhoneStorageError) {
        _ = try PhoneStorage.readArchive(file: path, keybag: keybag, passcode: passcode)
        return "none"
      } catch {
        return "\(error)"
      }
    }
    #expect(problem(path, passcode: "0000").contains("passcode does not open"))
    #expect(problem(copy).contains("keybag.json is not there; name the keybag.json"))
    #expect(problem(scratch.path + "/nothing").contains("nothing is not there; give"))
    #expect(problem(keybag).contains("is no state archive"))
    #expect(problem(scratch.phone).hasPrefix(scratch.phone + ": "))
  }

  @Test func filesOfEarlierVersionsOpen() throws {
    let scratch = try StorageScratch()
    _ = try PhoneStorage(directory: scratch.phone)
    let archive = try #require(Data(base64Encoded: EarlierPhone.archive))
    try scratch.write(Array(EarlierPhone.keybag.utf8), to: "keybag.json")
    try scratch.write(Array(archive), to: "archives/com.example.app.archive")
    var storage = try PhoneStorage(directory: scratch.phone)
    #expect(throws: PhoneStorageError.wrongPasscode(keybag: scratch.phone + "/keybag.json")) {
      try storage.unlock(passcode: "0001")
    }
    try storage.unlock()
    // Opened, but of another form.
    #expect {
      try storage.archive(of: "com.example.app")
    } throws: { "\($0)".contains("is no state archive") }
    // What is sealed now is under the same keys.
    try storage.save(sampleArchive(), of: "com.example.mail")
    #expect(try storage.archive(of: "com.example.mail") == sampleArchive())
  }
}
