import Foundation
import TestSupport
import Testing

@testable import ProviderCredentials

@Suite struct CredentialFilesTests {
  @Test(arguments: [0o600, 0o644]) func writesWithTheModeAndReplaces(mode: Int) throws {
    let directory = try TemporaryDirectory()
    let path = try directory.write("old and longer", to: "file")
    try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
    #expect(CredentialFiles.isOpenToOthers(path))
    try CredentialFiles.write(Array("new".utf8), to: path, mode: mode)
    #expect(try directory.read("file") == "new")
    #expect(CredentialFiles.permissions(of: path) == mode)
    #expect(CredentialFiles.isOpenToOthers(path) == (mode == 0o644))
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["file"])
  }

  @Test func problemsNameTheFileAndTheRemedy() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/none/file"
    let text = fileProblem { () throws(CredentialFileError) in
      try CredentialFiles.write([1], to: path, mode: 0o600)
    }
    #expect(text?.hasPrefix(path + ": cannot be written; check") == true, "\(text ?? "written")")
    #expect(try CredentialFiles.read(path) == nil)
    #expect(try CredentialFiles.names(inDirectory: directory.path + "/none").isEmpty)
    #expect(!CredentialFiles.isOpenToOthers(path))
    try CredentialFiles.write([0xff, 0xfe], to: directory.path + "/binary", mode: 0o600)
    let notText = fileProblem { () throws(CredentialFileError) in
      _ = try CredentialFiles.readText(directory.path + "/binary")
    }
    #expect(notText?.contains("is not text") == true)
  }

  /// Opening it would wait for a writer.
  @Test(.timeLimit(.minutes(1))) func aPipeIsNoFile() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/AuthKey_AAAAAAAAAA.p8"
    let maker = try Process.run(URL(fileURLWithPath: "/usr/bin/mkfifo"), arguments: [path])
    maker.waitUntilExit()
    let text = fileProblem { () throws(CredentialFileError) in _ = try CredentialFiles.read(path) }
    #expect(text?.contains("check that it is a file") == true, "\(text ?? "read")")
  }
}
