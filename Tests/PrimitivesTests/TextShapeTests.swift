import Primitives
import Testing

@Suite struct TextShapeTests {
  @Test func lettersAndDigitsAreASCII() {
    let expected = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    let found = (UInt8.min...UInt8.max).filter(\.isLetterOrDigit)
    #expect(String(decoding: found, as: UTF8.self) == expected)
  }

  @Test func blanksFillUpToTheWidth() {
    #expect("ab".padded(to: 4) == "ab  ")
    #expect("abcd".padded(to: 4) == "abcd")
    #expect("abcde".padded(to: 4) == "abcde")
  }
}
