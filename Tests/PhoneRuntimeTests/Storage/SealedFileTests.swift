import TLS
import Testing

@testable import PhoneRuntime

@Suite struct SealedFileTests {
  private let key = SymmetricKey()

  private func open(
    _ bytes: [UInt8], _ kind: SealedFile.Kind
  ) throws(PhoneStorageError) -> (name: String, content: [UInt8]) {
    try SealedFile.open(bytes, kind, under: key, path: "p", advice: "a")
  }

  @Test func whatWasSealedIsThereAgain() throws {
    for size in [0, 1, 15, 16, 17, 5000] {
      let content = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
      for kind in SealedFile.Kind.allCases {
        let sealed = try SealedFile.seal(content, kind, name: "näme", under: key)
        #expect(SealedFile.isOne(sealed, kind))
        let opened = try open(sealed, kind)
        #expect(opened.name == "näme" && opened.content == content)
        // Each sealing takes another nonce.
        #expect(try SealedFile.seal(content, kind, name: "näme", under: key) != sealed)
      }
    }
  }

  @Test func oneKindIsNotTheOther() throws {
    let sealed = try SealedFile.seal([1], .memory, under: key)
    #expect(throws: PhoneStorageError.self) { try open(sealed, .archive) }
    let renamed = Array("PRPA".utf8) + sealed.dropFirst(4)
    #expect(throws: PhoneStorageError.self) { try open(renamed, .archive) }
  }

  @Test func theFormatIsChecked() throws {
    var sealed = try SealedFile.seal([1], .memory, under: key)
    sealed[4] = 2
    #expect(throws: PhoneStorageError.unknownFormat(path: "p", found: 2)) {
      try open(sealed, .memory)
    }
  }

  @Test func aNameMustFit() {
    #expect(throws: PhoneStorageError.self) {
      try SealedFile.seal([], .archive, name: String(repeating: "a", count: 256), under: key)
    }
  }
}
