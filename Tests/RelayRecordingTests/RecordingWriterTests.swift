import Primitives
import RelayCore
import Testing

@testable import RelayRecording

@Suite struct RecordingWriterTests {
  /// A push is written in one run where its payload is that of the one before: with the same bytes
  /// as field by field.
  @Test(arguments: RecordedPayloads.allCases)
  func aPushInOneRunHasTheSameBytes(_ payloads: RecordedPayloads) throws {
    let redactor = Redactor(key: (1, 2), payloads: payloads)
    let other = try #require(Topic("com.example.other"))
    let pushes = [
      Samples.stored, Samples.stored, Samples.visible, Samples.visible, Samples.push(.once),
      Samples.push(.once), Samples.stored.with(topic: other),
      Samples.stored,
    ]
    var writer = RecordingWriter(shard: 3, redactor: redactor)
    var expected = ByteWriter(redactor: redactor)
    expected.put(UInt16(3), UInt64(0), UInt64(0), Samples.now)
    var digest = EffectDigest(redactor: redactor)
    var last = Samples.now
    for (index, push) in pushes.enumerated() {
      let request = index % 2 == 0 ? Samples.request : Samples.otherRequest
      let event = Event.submitted(push, from: request)
      let now = Samples.now + .milliseconds(Int64(index * index))
      let effects = [Effect.forget(UInt64(index))]
      writer.record(event, at: now, effects.span)
      digest.add(effects.span)
      expected.put(event, now - last, digest.check)
      last = now
    }
    _ = writer.endBatch()
    expected.put(tag: Event.noTag)
    expected.put(word: digest.value)
    #expect(writer.finishChunk()?.body == expected.bytes)
    #expect(writer.finishChunk() == nil)
  }
}
