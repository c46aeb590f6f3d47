import Primitives
import Testing

@Suite struct InOneLineTests {
  @Test(arguments: [
    ("Lunch? 🍜 ä", "Lunch? 🍜 ä"), ("a\nb", "a\\u{a}b"), ("a\r\nb", "a\\u{d}\\u{a}b"),
    ("\u{1B}[2J", "\\u{1b}[2J"), ("\u{9B}2J", "\\u{9b}2J"), ("\u{7F}", "\\u{7f}"),
    ("a\u{2028}b", "a\\u{2028}b"), ("\u{202E}x\u{2069}", "\\u{202e}x\\u{2069}"), ("", ""),
  ])
  func nothingActsOnATerminal(text: String, shown: String) {
    #expect(text.inOneLine == shown)
  }
}
