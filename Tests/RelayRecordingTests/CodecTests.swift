import Primitives
import RelayCore
import Testing

@testable import RelayRecording

/// Every case of every enum that is recorded comes back; what is cut or changed is an error, or
/// another value, and never a trap.
@Suite struct CodecTests {
  private func bytes(_ value: some BinaryCodable, _ redactor: Redactor? = nil) -> [UInt8] {
    var writer = ByteWriter(redactor: redactor)
    writer.put(value)
    return writer.bytes
  }

  private func value<Value: BinaryCodable>(_ bytes: [UInt8]) throws -> Value {
    var reader = ByteReader(bytes)
    let value = try reader.read(Value.self)
    try reader.finish()
    return value
  }

  /// The numbers of the cases stand at the beginning: all must have been seen. Those of cases that
  /// are gone are given to no other.
  private func check<Value: BinaryCodable & Equatable>(
    _ values: [Value], cases: Int, gone: Set<UInt8> = []
  ) throws {
    var tags: Set<UInt8> = []
    for original in values {
      let written = bytes(original)
      tags.insert(written[0])
      #expect(try value(written) == original)
      for count in 0..<written.count {
        #expect(throws: CodecError.self, "\(original), \(count) bytes") {
          let _: Value = try value(Array(written[..<count]))
        }
      }
      for index in written.indices {
        for bit in 0..<8 {
          var changed = written
          changed[index] ^= 1 << UInt8(bit)
          let _: Value? = try? value(changed)
        }
      }
    }
    #expect(tags == Set(1...UInt8(cases)).subtracting(gone))
  }

  @Test func everyEventComesBack() throws {
    try check(Samples.events, cases: 33, gone: [17, 27, 28])
  }
  @Test func everyEffectComesBack() throws { try check(Samples.effects, cases: 14, gone: [12]) }
  @Test func aWholeShardComesBack() throws {
    let written = bytes(Samples.shard)
    let read: Shard = try value(written)
    #expect(bytes(read) == written)
    for count in written.indices {
      #expect(throws: CodecError.self) { let _: Shard = try value(Array(written[..<count])) }
    }
  }

  @Test func everyAliasEventComesBack() throws { try check(Samples.aliasEvents, cases: 10) }
  @Test func everyRestoredRecordComesBack() throws { try check(Samples.restored, cases: 8) }
  @Test func everyRecordComesBack() throws { try check(Samples.contents, cases: 11) }
  @Test func everyStepComesBack() throws { try check(Samples.steps, cases: 10) }

  /// A relay on its own writes what it wrote before there were nodes: the loop, as one number.
  @Test func addressesOfAllNodesComeBack() throws {
    for node in [0, 1, .max] as [UInt16] {
      for loop in [0, 3, 300, .max] as [UInt16] {
        let address = StreamAddress(loop: loop, connection: 9, stream: 5, node: node)
        let written = bytes(address)
        #expect(try value(written) == address)
        var before = ByteWriter()
        before.put(UInt32(node) << 16 | UInt32(loop), UInt32(9), Int32(5))
        #expect(written == before.bytes)
      }
    }
    var alone = ByteWriter()
    alone.put(UInt16(300), UInt32(9), Int32(5))
    #expect(bytes(StreamAddress(loop: 300, connection: 9, stream: 5)) == alone.bytes)
  }

  /// What is digested tells addresses of two nodes apart.
  @Test func digestsTellNodesApart() {
    func digest(_ effect: Effect) -> UInt64 {
      var digest = EffectDigest()
      digest.add([effect].span)
      return digest.value
    }
    for make in [
      { Effect.hello($0) }, { .respond($0, .accepted(uniqueID: Samples.id)) },
    ] as [(StreamAddress) -> Effect] {
      let digests = [0, 1, 2].map { node in
        digest(make(StreamAddress(loop: 1, connection: 9, stream: 5, node: node)))
      }
      #expect(Set(digests).count == 3)
    }
  }

  @Test func plainEnumsComeBack() throws {
    func all<Value: BinaryCodable & CaseIterable & Equatable>(_ type: Value.Type) throws {
      for one in Value.allCases { #expect(try value(bytes(one)) == one) }
      let last = UInt8.max
      #expect(throws: CodecError.self) { let _: Value = try value([last]) }
    }
    try all(Rejection.self)
    try all(PushType.self)
    try all(Priority.self)
    try all(Via.self)
    try all(DeviceRefusal.self)
    try all(CloseReason.self)
    try all(BudgetLimit.self)
    try all(NotificationClass.self)
    try all(Power.self)
    try all(Network.self)
    try all(Screen.self)
    try all(RecordingEnd.self)
    try all(RecordedPayloads.self)
  }

  /// Random bytes, and random bytes behind each number of a case.
  @Test func anyBytesAreSafeToRead() {
    var random = SeededRandom(seed: 7)
    for round in 0..<20_000 {
      var input = (0..<Int.random(in: 0...80, using: &random)).map { _ in
        UInt8(truncatingIfNeeded: random.below(random.below(4) == 0 ? 256 : 24))
      }
      if !input.isEmpty { input[0] = UInt8(round % 23) }
      let _: Event? = try? value(input)
      let _: Effect? = try? value(input)
      let _: Shard? = try? value(input)
      let _: ShardStart? = try? value(input)
      let _: RecordingHeader? = try? value(input)
    }
  }

  /// What a recording must not hold is in none of its bytes.
  @Test func noSecretAndNoTokenIsWritten() throws {
    let redactor = Redactor(key: (3, 4), payloads: .none)
    func holds(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
      bytes.indices.contains { bytes[$0...].starts(with: part) }
    }
    let secret = bytes(Samples.secret)
    let token = Array(Samples.token.bytes.prefix(24))
    let payload = Array("hello".utf8)
    for written in Samples.events.map({ bytes($0, redactor) })
      + Samples.effects.map({ bytes($0, redactor) })
    {
      #expect(!holds(written, secret) && !holds(written, token) && !holds(written, payload))
    }
    let plain = Samples.events.map { bytes($0) }
    #expect(plain.contains { holds($0, secret) } && plain.contains { holds($0, token) })
    #expect(plain.contains { holds($0, payload) })
  }
}
