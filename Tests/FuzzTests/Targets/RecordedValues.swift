import RelayCore
import RelayRecording

/// What a recording holds as replay reads it: an error, or a value that is written as the same
/// bytes again. A whole recording is taken apart, and played until it says what cannot be: what a
/// shard makes of it is for nobody to say, but it comes to an end.
///
/// The first byte of an input says what the rest is.
enum RecordedValues {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    guard let first = input.first else { return }
    let bytes = [UInt8](input.dropFirst())
    switch first % 3 {
    case 0: try check(Event.self, bytes)
    case 1: try check(Effect.self, bytes)
    default: try checkFile(bytes)
    }
  }

  static func check<Value: BinaryCodable>(
    _ type: Value.Type, _ bytes: [UInt8], form: UInt8 = .max
  ) throws(Finding) {
    var reader = ByteReader(bytes, form: form)
    guard let value = try? reader.read(Value.self) else { return }
    var writer = ByteWriter(form: form)
    writer.put(value)
    guard writer.bytes == Array(bytes[..<reader.position]) else {
      throw Finding("written again it is \(writer.bytes)")
    }
  }

  private static func checkFile(_ bytes: [UInt8]) throws(Finding) {
    guard var reader = try? RecordingReader(bytes) else { return }
    var replay = Replay(reader)
    try? replay.run()
    var last = reader.position
    while let frame = try? reader.next() {
      guard reader.position > last else { throw Finding("it stands still at \(last)") }
      last = reader.position
      if case .chunk(var chunk) = frame {
        while (try? chunk.read(Event.self)) != nil {}
      }
    }
  }
}
