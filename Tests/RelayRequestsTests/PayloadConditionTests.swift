import RelayCore
import RelayRequests
import Testing

@Suite("Conditions on payloads") struct PayloadConditionTests {
  private static let payload = #"""
    {"aps":{"alert":{"title":"Hello \"you\"","loc-args":["a",7]},"badge":2,"sound":"x"},
     "a.b":{"c=d":true},"id":9007199254740993,"none":null,"list":[1,{"k":[2.50]}]}
    """#

  private func difference(_ condition: String) throws -> String? {
    PayloadCondition(condition).difference(in: try JSONTree.read(Array(Self.payload.utf8)))
  }

  @Test(arguments: [
    "aps.badge=2", "aps.badge=2.0", "aps.alert", #"aps.alert.title=Hello "you""#,
    #"aps.alert.title="Hello \"you\"""#, "aps.alert.title~HELLO", "aps.alert.loc-args.1=7",
    #"aps.alert.loc-args=["a",7]"#, #"a\.b.c\=d=true"#, "id=9007199254740993", "none=null",
    #"list.1={"k":[2.5]}"#, "~you", "~loc-args", "~900719", #"aps.alert~hello"#,
  ])
  func holds(condition: String) throws {
    #expect(try difference(condition) == nil)
  }

  /// Two backslashes are one of the name, and escape nothing behind them.
  @Test func aBackslashMayBeEscaped() throws {
    let tree = try JSONTree.read(Array(#"{"a\\":1,"b=":2}"#.utf8))
    #expect(PayloadCondition(#"a\\=1"#).difference(in: tree) == nil)
    #expect(PayloadCondition(#"a\\=2"#).difference(in: tree) != nil)
    #expect(PayloadCondition(#"b\==2"#).difference(in: tree) == nil)
  }

  @Test(arguments: [
    ("aps.badge=3", "aps.badge is 2, not 3"), ("aps.badge=\"2\"", "aps.badge is 2, not \"2\""),
    ("aps.alert.title=Hello", #"aps.alert.title is "Hello \"you\"", not "Hello""#),
    ("aps.category", "there is no aps.category"),
    ("aps.sound.name=x", "there is no aps.sound.name"),
    ("aps.sound~y", #"aps.sound is "x", without "y""#),
    ("~nobody", #"nothing in it contains "nobody""#),
    ("id=9007199254740992", "id is 9007199254740993, not 9007199254740992"),
    ("aps.alert.loc-args.2", "there is no aps.alert.loc-args.2"),
    ("aps.alert.loc-args.x", "there is no aps.alert.loc-args.x"),
    ("list.1={\"k\":[2]}", #"list.1 is {"k":[2.50]}, not {"k":[2]}"#),
  ])
  func tellsTheDifference(condition: String, sentence: String) throws {
    #expect(try difference(condition) == sentence)
  }

  @Test(arguments: [#"n=1,"x":2"#, "n=1}", "n=1 2"])
  func afterTheSignComesOneValue(condition: String) throws {
    let tree = try JSONTree.read(Array(#"{"n":1}"#.utf8))
    #expect(PayloadCondition(condition).difference(in: tree) != nil)
  }

  @Test func placesOverlap() {
    func overlap(_ place: String, _ other: String) -> Bool {
      PayloadPath(place).overlaps(PayloadPath(other))
    }
    #expect(overlap("aps", "aps.alert") && overlap("aps.alert.body", "aps.alert"))
    #expect(!overlap("aps.badge", "aps.alert") && !overlap("a.b", #"a\.b"#))
    #expect(overlap("list.00", "list.0") && overlap("list.+1", "list.1.a"))
    #expect(!overlap("list.1", "list.0"))
  }

  @Test func aBodyThatIsNoJSONDiffers() {
    #expect(PayloadCondition("a").difference(in: nil) == "its body is not JSON")
  }

  @Test func aLongValueIsCut() throws {
    func difference(_ count: Int) throws -> String {
      let text = String(repeating: "x", count: count)
      let tree = try JSONTree.read(Array(#"{"a":"\#(text)"}"#.utf8))
      return try #require(PayloadCondition("a=1").difference(in: tree))
    }
    let long = try difference(500)
    #expect(long.count < 110 && long.hasSuffix("…, not 1"))
    #expect(try difference(78).hasSuffix(#"xx", not 1"#), "eighty with its quotation marks")
    #expect(try difference(79).hasSuffix("xx…, not 1"))
  }

  @Test(arguments: ["a", "a.b~c", #"a\.b=1"#, #"a\=b\~c=[1,"x"]"#, "~x=y", #"a="text""#])
  func itsTextReadsAsTheSame(text: String) {
    #expect(PayloadCondition(PayloadCondition(text).text).text == PayloadCondition(text).text)
    #expect(PayloadCondition(text).text == text)
  }

  @Test(arguments: ["", "a\u{1}\n\"\\é😀"])
  func aTextIsWrittenAsJSON(text: String) throws {
    let tree = try #require(
      JSONTree.reading(value: String(decoding: JSONTree(text: text).source, as: UTF8.self)))
    #expect(tree.text == text)
  }
}
