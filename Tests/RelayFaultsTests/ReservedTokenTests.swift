import RelayCore
import Testing

@testable import RelayFaults

@Suite struct ReservedTokenTests {
  @Test func everyRefusalHasATokenOfItsOwn() {
    let tokens = Rejection.allCases.map { ReservedToken.token(answering: $0) }
    #expect(Set(tokens).count == Rejection.allCases.count)
    for (token, rejection) in zip(tokens, Rejection.allCases) {
      #expect(token.count == 64 && token.hasPrefix("7265736572766564"), "\(token)")
      #expect(DeviceToken(hexadecimal: token).map(ReservedToken.rejection) == rejection)
      #expect(token.dropLast(2).hasSuffix(String(rejection.status)), "\(token)")
    }
    #expect(ReservedToken.token(answering: .serviceUnavailable).hasSuffix("00050301"))
  }

  @Test func othersAreNotReserved() {
    let zeros = String(repeating: "0", count: 40)
    for token in [
      String(repeating: "0", count: 64), "7265736572766564" + zeros + "00000000",
      "7265736572766564" + String(repeating: "1", count: 40) + "00050301",
    ] {
      #expect(DeviceToken(hexadecimal: token).flatMap(ReservedToken.rejection) == nil, "\(token)")
    }
  }
}
