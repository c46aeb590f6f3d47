import Testing

@testable import TLS

@Suite struct AddressBytesTests {
  static let zeros = [UInt8](repeating: 0, count: 16)

  @Test(
    arguments: [
      ("127.0.0.1", [127, 0, 0, 1]), ("255.255.255.255", [255, 255, 255, 255]),
      ("::", zeros), ("::1", zeros.dropLast() + [1]), ("1::", [0, 1] + zeros.dropLast(2)),
      (
        "2001:db8::ff00:42:8329",
        [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0x42, 0x83, 0x29]
      ),
      ("1:2:3:4:5:6:7:8", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]),
      ("::FFFF:1.2.3.4", zeros.dropLast(6) + [255, 255, 1, 2, 3, 4]),
      ("1:2:3:4:5:6:7::", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0]),
    ] as [(String, [UInt8])])
  func addresses(text: String, bytes: [UInt8]) {
    #expect(CertificateTemplate.addressBytes(text) == bytes)
  }

  @Test(arguments: [
    "", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.x", "1..2.3", "1.2.3.4x",
    ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "g::", "+1::", "::1%lo",
    "1.2.3.4::", "::1.2.3", "1:2:3:4:5:6:7:8::", "::1.2.3.4:5", "1:2:3:4::5:6:7:8",
  ])
  func names(text: String) {
    #expect(CertificateTemplate.addressBytes(text) == nil)
  }
}
