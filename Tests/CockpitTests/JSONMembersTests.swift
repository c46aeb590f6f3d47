import AdminAPI
import Testing

@testable import Cockpit

@Suite struct JSONMembersTests {
  /// One of two values would decide in silence.
  @Test(arguments: [#"{"n":1,"n":1}"#, #"{"m":{"n":1,"o":2,"n":1}}"#])
  func aMemberStandsThereOnce(text: String) throws {
    let refusal = #expect(throws: Refusal.self) {
      let members = try JSONMembers(Array(text.utf8), known: ["m", "n"])
      _ = try members.object("m", known: ["n", "o"])
    }
    #expect(refusal?.status == 400 && refusal?.field?.hasSuffix("n") == true)
  }

  /// However it is written, and exactly: a double cannot hold each of them.
  @Test(
    arguments: [
      ("0", 0), ("-3", -3), ("2e0", 2), ("1.0", 1), ("12e-1", nil), ("1.5", nil),
      ("9007199254740993", 9_007_199_254_740_993), ("9223372036854775807", .max),
      ("9223372036854775808", nil), ("-9223372036854775808", .min), ("-9223372036854775809", nil),
      ("1e30", nil), ("true", nil), (#""1""#, nil),
    ] as [(String, Int64?)])
  func wholeNumbersAreReadExactly(text: String, number: Int64?) throws {
    let members = try JSONMembers(Array(#"{"n":\#(text)}"#.utf8), known: ["n"])
    if let number {
      #expect(try members.integer("n") == number)
    } else {
      let refusal = #expect(throws: Refusal.self) { try members.integer("n") }
      #expect(refusal?.status == 400 && refusal?.field == "n")
    }
    #expect(try members.integer("m") == nil)
  }
}
