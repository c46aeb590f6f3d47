import Primitives
import Testing

@testable import DeviceLink

@Suite struct OrderLineTests {
  private func order(_ line: [UInt8]) -> OrderLine? { OrderLine(line.span) }
  private func done(_ line: [UInt8]) -> DoneLine? { DoneLine(line.span) }

  private static let time = Instant(milliseconds: 1_790_000_000_000)

  @Test func ordersComeBackAsTheyWereWritten() {
    let lines = [
      OrderLine(number: 3, time: Self.time, order: bytes(#"{"do":"lock"}"#)),
      OrderLine(number: 4, time: Self.time, order: nil),
    ]
    for line in lines {
      var written: [UInt8] = []
      line.write(to: &written)
      #expect(written.last == UInt8(ascii: "\n") && written.count { $0 == 0x0A } == 1)
      #expect(order(Array(written.dropLast())) == line)
    }
    var written: [UInt8] = []
    lines[0].write(to: &written)
    let text =
      #"{"type":"order","number":3,"time":1790000000000,"order":{"do":"lock"}}"# + "\n"
    #expect(written == bytes(text))
  }

  /// An order may have been typed over several lines; it is one line all the same.
  @Test func anOrderWithLineBreaksIsOneLine() {
    var written: [UInt8] = []
    OrderLine(number: 3, time: Self.time, order: bytes("{\n\"do\":\r\n\"lock\"}"))
      .write(to: &written)
    #expect(written.count { $0 == 0x0A } == 1)
    #expect(order(Array(written.dropLast()))?.order == bytes(#"{ "do":  "lock"}"#))
  }

  @Test func answersComeBackAsTheyWereWritten() {
    let lines = [
      DoneLine(number: 3, .told(bytes(#"{"lines":["locked"]}"#))),
      DoneLine(number: 4, .failed(#"there is no "fly""#)),
    ]
    for line in lines {
      var written: [UInt8] = []
      line.write(to: &written)
      #expect(done(Array(written.dropLast())) == line)
    }
    #expect(
      done(bytes(#"{"type":"done","number":5}"#))
        == DoneLine(number: 5, .failed("the phone does not say why")))
  }

  @Test(arguments: [
    "", "nonsense", #"{"type":"done"}"#, #"{"type":"done","number":-1}"#,
    #"{"type":"done","number":1,"told":[1]}"#, #"{"type":"done","number":1,"told":"x"}"#,
    #"{"type":"order","number":1,"order":{}}"#, #"{"type":"ack","number":1,"time":1}"#,
  ])
  func whatIsNeitherIsNothing(text: String) {
    #expect(order(bytes(text)) == nil)
    #expect(done(bytes(text)) == nil)
  }
}
