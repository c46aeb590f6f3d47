import Foundation
import Testing

@testable import DeviceModel
@testable import PhoneRuntime

@Suite struct KeybagTests {
  @Test func theClassKeyComesBackWithThePasscode() throws {
    var keybag = Keybag()
    #expect(!keybag.hasPasscode)
    let key = try keybag.choose(passcode: "1234")
    let reread = try Keybag(try keybag.encoded(), path: "k")
    #expect(reread == keybag && reread.hasPasscode)
    #expect(try reread.classKey(passcode: "1234", path: "k") == key)
    for wrong in ["", "0000", "1235", "12345"] {
      #expect(throws: PhoneStorageError.wrongPasscode(keybag: "k")) {
        try reread.classKey(passcode: wrong, path: "k")
      }
    }
    #expect(Keybag().deviceKey != Keybag().deviceKey)
  }

  @Test func withoutAPasscodeThereIsNoClassKey() throws {
    let keybag = try Keybag(try Keybag().encoded(), path: "k")
    #expect(throws: PhoneStorageError.wrongPasscode(keybag: "k")) {
      try keybag.classKey(passcode: "0000", path: "k")
    }
  }

  /// A damaged key bag is told from a wrong passcode, wherever the damage is.
  @Test func damageIsSaidAsSuch() throws {
    var keybag = Keybag()
    _ = try keybag.choose(passcode: "1234")
    let whole = try keybag.encoded()
    var harmless = 0
    for place in whole.indices {
      for bit in [UInt8(1), 4, 32] {
        var bytes = whole
        bytes[place] ^= bit
        do throws(PhoneStorageError) {
          // White space and the unused bits at the end of Base64 say nothing.
          let found = try Keybag(bytes, path: "k")
          #expect(found == keybag, "byte \(place), bit \(bit)")
          harmless += 1
        } catch {
          switch error {
          case .damaged(path: "k", _, _), .unknownFormat(path: "k", _): break
          default: Issue.record("byte \(place), bit \(bit): \(error)")
          }
        }
      }
    }
    #expect(harmless < whole.count / 4)
    for length in whole.indices.dropLast() {
      #expect(throws: PhoneStorageError.self, "\(length) bytes") {
        try Keybag(Array(whole.prefix(length)), path: "k")
      }
    }
  }

  @Test func anotherFormatIsSaid() throws {
    let text = String(decoding: try Keybag().encoded(), as: UTF8.self)
    #expect(throws: PhoneStorageError.unknownFormat(path: "k", found: 7)) {
      try Keybag(Array(text.replacing("\"format\" : 1", with: "\"format\" : 7").utf8), path: "k")
    }
  }

  @Test func aPhoneThatLostItsKeysSaysSo() throws {
    let scratch = try StorageScratch()
    let storage = try PhoneStorage(directory: scratch.phone)
    try storage.save(samplePhone().memory())
    let path = scratch.phone + "/keybag.json"
    try FileManager.default.removeItem(atPath: path)
    #expect {
      _ = try PhoneStorage(directory: scratch.phone)
    } throws: { "\($0)".hasPrefix(path + " is missing; ") }
    // And makes no new ones, under which the old files would be lost for good.
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}
