import RelayCore
import Testing

@testable import RelayRecording

@Suite struct RedactorTests {
  private let redactor = Redactor(key: (1, 2), payloads: .none)

  @Test func pseudonymsKeepTheRoutingKeyAndNothingElse() throws {
    let token = DeviceToken(random: (1, 2, 3), routingKey: 4)
    let other = DeviceToken(random: (1, 2, 5), routingKey: 4)
    let pseudonym = redactor.pseudonym(of: token)
    #expect(pseudonym.routingKey == 4 && pseudonym.count == 16)
    #expect(pseudonym == redactor.pseudonym(of: token))
    #expect(pseudonym != redactor.pseudonym(of: other))
    let underAnotherKey = Redactor(key: (2, 1), payloads: .none).pseudonym(of: token)
    #expect(pseudonym != underAnotherKey)
    #expect(Set(pseudonym.bytes.prefix(8)).count > 4)
    let long = try #require(DeviceToken(hexadecimal: String(repeating: "ab", count: 100)))
    #expect(redactor.pseudonym(of: long).routingKey == long.routingKey)
    let (short, longer) = (DeviceToken(hexadecimal: "0102"), DeviceToken(hexadecimal: "000102"))
    let pseudonyms = [short, longer].compactMap { $0.map { redactor.pseudonym(of: $0) } }
    #expect(pseudonyms.count == 2 && pseudonyms[0] != pseudonyms[1])
    // Each word of the token counts.
    let words = [(9, 2, 3), (1, 9, 3), (1, 2, 9), (1, 2, 3)].map {
      DeviceToken(random: $0, routingKey: 4)
    }
    #expect(Set(words.map { redactor.pseudonym(of: $0) }).count == 4)
  }

  @Test func secretsAreReplacedConsistently() {
    let (secret, other) = (SecretHash(words: (1, 2, 3, 4)), SecretHash(words: (1, 2, 3, 5)))
    #expect(redactor.pseudonym(of: secret) == redactor.pseudonym(of: secret))
    #expect(redactor.pseudonym(of: secret) != redactor.pseudonym(of: other))
    #expect(redactor.pseudonym(of: secret) != secret)
  }

  @Test func payloadsAreWhatWasAskedFor() {
    let payload = Array(#" {"name":"Ann","aps": {"alert":"hi"}, "x":[{"aps":1}]} "#.utf8)
    func left(_ payloads: RecordedPayloads, _ bytes: [UInt8]) -> String {
      let redactor = Redactor(key: (0, 0), payloads: payloads)
      var writer = ByteWriter(redactor: redactor)
      writer.put(payload: bytes)
      var reader = ByteReader(writer.bytes)
      return String(decoding: (try? reader.payload()) ?? [1], as: UTF8.self)
    }
    #expect(left(.none, payload) == "")
    #expect(left(.aps, payload) == #"{"aps":{"alert":"hi"}}"#)
    #expect(left(.all, payload) == String(decoding: payload, as: UTF8.self))
    #expect(left(.aps, Array(#"{"a":1}"#.utf8)) == "")
    #expect(left(.aps, Array("{".utf8)) == "")
  }

  /// What a repetition is known by is there, and nobody learns what was said.
  @Test(arguments: RecordedPayloads.allCases)
  func whatIsLeftOutHasAFingerprint(_ payloads: RecordedPayloads) throws {
    func played(
      _ payload: String, _ collapseID: String = "", id: UniqueID = UniqueID(high: 7, low: 7)
    ) throws -> Notification {
      let push = Notification(
        uniqueID: Samples.id, apnsID: id, token: Samples.token, topic: Samples.topic,
        notificationClass: .visible, pushType: .alert, priority: .immediate, wakesApp: false,
        collapseID: Array(collapseID.utf8), expiration: .once, payload: Array(payload.utf8))
      var writer = ByteWriter(redactor: Redactor(key: (1, 2), payloads: payloads))
      writer.put(push)
      var reader = ByteReader(writer.bytes)
      let played = try reader.read(Notification.self)
      try reader.finish()
      // Written again, it is the same.
      var again = ByteWriter(redactor: Redactor(key: (3, 4), payloads: payloads))
      again.put(played)
      var rereader = ByteReader(again.bytes)
      #expect(try rereader.read(Notification.self).fingerprint == played.fingerprint)
      return played
    }
    let first = try played(#"{"aps":{"alert":"a"},"x":1}"#)
    #expect(try played(#"{"aps":{"alert":"a"},"x":1}"#) == first)
    #expect((first.fingerprint == 0) == (payloads == .all))
    for (payload, collapseID) in [
      (#"{"aps":{"alert":"a"},"x":2}"#, ""), (#"{"aps":{"alert":"b"},"x":1}"#, ""),
      (#"{"aps":{"alert":"a"},"x":1} "#, ""), (#"{"aps":{"alert":"a"},"x":1}"#, "c"),
    ] {
      #expect(try played(payload, collapseID) != first, "\(payload) \(collapseID)")
    }
    #expect(try played("{}", id: Samples.id).fingerprint == 0, "nobody asks")
    let other = try played(#"{"aps":{"alert":"a"},"x":1}"#, id: UniqueID(high: 7, low: 8))
    #expect(payloads == .all || other.fingerprint != first.fingerprint)
  }

  @Test(arguments: RecordedPayloads.allCases)
  func aPayloadThatIsTheSameIsWrittenOnce(_ payloads: RecordedPayloads) throws {
    let texts = [
      #"{"aps":{"alert":"hi"},"to":1}"#, #"{"aps":{"alert":"hi"},"to":1}"#,
      #"{"aps":{"alert":"hi"},"to":2}"#, #"{"aps":{"alert":"ho"},"to":2}"#, "{}", "{}", "",
      #"{"aps":{"alert":"ho"},"to":2}"#,
    ]
    var writer = ByteWriter(redactor: Redactor(key: (0, 0), payloads: payloads))
    var sizes: [Int] = []
    var whole: [[UInt8]] = []
    for text in texts {
      let before = writer.count
      writer.put(payload: Array(text.utf8))
      sizes.append(writer.count - before)
      var alone = ByteWriter(redactor: Redactor(key: (0, 0), payloads: payloads))
      alone.put(payload: Array(text.utf8))
      var reader = ByteReader(alone.bytes)
      whole.append(try reader.payload())
    }
    var reader = ByteReader(writer.bytes)
    for (index, payload) in whole.enumerated() {
      #expect(try reader.payload() == payload)
      let isSame = payload == (index == 0 ? [] : whole[index - 1])
      #expect((sizes[index] == 1) == (isSame || payload.isEmpty))
    }
    try reader.finish()
  }

  /// Compared in runs: each byte counts, whatever the length.
  @Test func aPayloadWithOneOtherByteIsAnother() {
    for count in Array(0...100) + [4096] {
      let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      var writer = ByteWriter()
      writer.put(payload: payload)
      #expect(writer.isLast(payload: payload) && !writer.isLast(payload: payload + [0]))
      for index in payload.indices {
        var other = payload
        other[index] ^= 0x10
        #expect(!writer.isLast(payload: other), "\(count) bytes, \(index)")
      }
    }
  }

  /// One form for each value: a payload that is the same as the one before is not written again.
  @Test func aPayloadHasOneForm() throws {
    var reader = ByteReader([2, 65, 2, 66, 0, 2, 66])
    for text in ["A", "B", "B"] { #expect(try reader.payload() == Array(text.utf8)) }
    #expect(throws: CodecError(offset: 7, problem: .invalid("Notification"))) {
      _ = try reader.payload()
    }
  }

  /// The example of the paper (appendix A), with one round and three in place of two and four: the
  /// value is that of Rust's core tests (`test_siphash_1_3`, 15 bytes).
  @Test func itIsSipHash() {
    // 15 bytes 00, 01, … 0e under the key 00, 01, … 0f; the length goes into the last byte.
    var hash = SipHash(key: (0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908))
    hash.add(0x0706_0504_0302_0100)
    hash.add(0x0F0E_0D0C_0B0A_0908)
    #expect(hash.next() == 0xD320_D86D_2A51_9956)
  }
}
