import Testing

@Suite("Payload files") struct PayloadTests {
  @Test func thePageSaysWhatTheManifestSays() throws {
    let page = try #require(tableLines(ofPage: Repository.text(of: "payloads/README.md")))
    let found = try pageDifferences(page: page, manifest: .load())
    #expect(found.isEmpty, "payloads/README.md differs:\n\(found.joined(separator: "\n"))")
  }

  @Test func everyFileHasARowAndEveryRowAFile() throws {
    // scenarios/ is a folder with tests of its own.
    let files = Set(Repository.names(in: "payloads"))
      .subtracting(["README.md", "manifest.json", "scenarios"])
    let rows = Set(try PayloadManifest.load().groups.flatMap(\.payloads).map(\.file))
    #expect(files.subtracting(rows).sorted() == [], "no row in manifest.json")
    #expect(rows.subtracting(files).sorted() == [], "no file in payloads/")
  }

  @Test func expectationsAreWhole() throws {
    for payload in try PayloadManifest.load().groups.flatMap(\.payloads) {
      let expect = payload.expect
      if expect.status == 200 {
        #expect(expect.reason == nil && ["visible", "silent"].contains(expect.class), "\(payload)")
      } else {
        #expect(expect.reason != nil && expect.class == nil, "\(payload)")
        #expect(expect.wakesApp == nil && expect.mismatch == nil, "\(payload)")
      }
      // Only a visible push can wake the app besides being shown.
      if expect.wakesApp == true { #expect(expect.class == "visible", "\(payload)") }
    }
  }

  /// An editor or a line-ending filter that touched a file would turn a limit test into nothing.
  @Test func filesNamedAfterTheirSizeHaveIt() throws {
    let sized = Repository.names(in: "payloads").compactMap { name in
      name.firstMatch(of: /(?:size-(\d+)|(\d+)-bytes)/).flatMap { Int($0.1 ?? $0.2 ?? "") }
        .map { (name, $0) }
    }
    #expect(sized.count >= 7)
    for (name, size) in sized {
      #expect(try Repository.bytes(of: "payloads/\(name)").count == size, "\(name)")
    }
    #expect(try Repository.bytes(of: "payloads/empty.json").isEmpty)
    #expect(try Repository.bytes(of: "payloads/whitespace.json").contains(UInt8(ascii: "\r")))
    let latin = try Repository.bytes(of: "payloads/invalid-utf8.json")
    #expect(String(validating: latin, as: UTF8.self) == nil)
  }

  @Test func aChangeOnOneSideOnlyIsFound() throws {
    let manifest = try PayloadManifest.load()
    let page = manifest.page()
    #expect(pageDifferences(page: page, manifest: manifest).isEmpty)

    var changed = manifest
    changed.groups[0].payloads[0].expect.status = 201
    #expect(pageDifferences(page: page, manifest: changed).count == 2)
    changed = manifest
    changed.groups[1].payloads.removeLast()
    #expect(pageDifferences(page: page, manifest: changed).count == 1)
    changed = manifest
    changed.groups[0].payloads[0].collapseID = "new"
    #expect(pageDifferences(page: page, manifest: changed).count == 2)
    #expect(!pageDifferences(page: page + ["| stray |"], manifest: manifest).isEmpty)
    #expect(tableLines(ofPage: "no marks") == nil)
  }
}
