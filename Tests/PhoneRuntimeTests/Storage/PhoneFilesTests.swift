import Foundation
import Testing

@testable import PhoneRuntime

@Suite struct ArchiveNameTests {
  @Test(arguments: [
    ("com.example.mail", "com.example.mail.archive"), ("A-b_9", "A-b_9.archive"),
    ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd.archive"), ("..", "%2E..archive"),
    (".hidden", "%2Ehidden.archive"), ("app 1", "app%201.archive"), ("ä%", "%C3%A4%25.archive"),
    ("a\0b\n", "a%00b%0A.archive"),
  ])
  func aNameIsAFile(app: String, file: String) throws {
    #expect(try ArchiveName.file(of: app) == file)
  }

  @Test func namesThatMakeNoFileAreRefused() throws {
    for app in ["", String(repeating: "a", count: 201), String(repeating: "ä", count: 50)] {
      #expect(throws: PhoneStorageError.name(app)) { try ArchiveName.file(of: app) }
    }
    let longest = String(repeating: "a", count: ArchiveName.most)
    #expect(try ArchiveName.file(of: longest) == longest + ".archive")
  }

  /// No two names lead to one file.
  @Test func everyNameHasAFileOfItsOwn() throws {
    var files: [String: String] = [:]
    let letters = ["a", ".", "%", "/", "2", "E", " ", "é"]
    for first in letters {
      for second in letters {
        for third in letters {
          let app = first + second + third
          let file = try ArchiveName.file(of: app)
          #expect(files.updateValue(app, forKey: file) == nil, "\(app)")
          #expect(!file.contains("/") && !file.hasPrefix("."))
        }
      }
    }
  }
}

@Suite struct PhoneFilesTests {
  @Test func aFileIsReplacedAsAWhole() throws {
    let scratch = try StorageScratch()
    let path = scratch.path + "/file"
    #expect(try PhoneFiles.read(path) == nil)
    for content in [[UInt8](repeating: 1, count: 100_000), [2], []] {
      try PhoneFiles.write(content, to: path)
      #expect(try PhoneFiles.read(path) == content)
    }
    #expect(try PhoneFiles.names(in: scratch.path) == ["file"])
    try PhoneFiles.remove(path)
    try PhoneFiles.remove(path)
    #expect(try PhoneFiles.names(in: scratch.path) == [])
    #expect(try PhoneFiles.names(in: path) == [])
  }

  @Test func refusalsAreInTheSystemsWords() throws {
    let scratch = try StorageScratch()
    #expect(
      throws: PhoneStorageError.unusable(
        path: scratch.path + "/no/file", reason: "No such file or directory")
    ) { try PhoneFiles.write([1], to: scratch.path + "/no/file") }
    #expect(throws: PhoneStorageError.self) { try PhoneFiles.read(scratch.path) }
  }
}
