import Testing

@testable import HTTP2

@Suite struct FrameReaderTests {
  /// What a reader makes of bytes that come in pieces: what goes on, and the header blocks.
  private struct Outcome: Equatable {
    var passed: [UInt8] = []
    var blocks: [[UInt8]] = []
    /// Stream and end of stream of each block, and how much had gone on before it.
    var heads: [[Int]] = []
    var failure: FrameReader.FrameError?
  }

  private func read(_ bytes: [UInt8], preface: Int = 0, pieces: Int) -> Outcome {
    var reader = FrameReader(prefaceBytes: preface)
    var streams = StreamTable()
    var outcome = Outcome()
    func note(_ head: FrameReader.BlockHead, _ block: [UInt8]) {
      outcome.blocks.append(block)
      outcome.heads.append([Int(head.stream), head.endStream ? 1 : 0, outcome.passed.count])
    }
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      Array(bytes[start..<min(bytes.count, start + pieces)]).withUnsafeBytes { piece in
        var rest = piece
        while let step = reader.next(&rest, &streams) {
          switch step {
          case .pass(let bytes): outcome.passed += bytes
          case .passHeld: outcome.passed += reader.takeHeld()
          case .headers(let head, let block): note(head, Array(block))
          case .headersHeld:
            switch reader.joinHeldBlock() {
            case .success(let (head, block)): note(head, block)
            case .failure(let failure):
              outcome.failure = failure
              return
            }
          case .broken(let failure):
            outcome.failure = failure
            return
          }
        }
      }
      if outcome.failure != nil { return outcome }
    }
    return outcome
  }

  private func frames(_ speak: (inout RawClient) -> Void) -> [UInt8] {
    var client = RawClient(bytes: [])
    speak(&client)
    return client.bytes
  }

  @Test func blocksComeOutWholeAtEverySplit() {
    let bytes = frames { client in
      client.append(type: 4, stream: 0)
      client.append(type: 1, flags: 5, stream: 1, [1, 2, 3])
      client.append(type: 0, flags: 1, stream: 1, [UInt8](repeating: 9, count: 300))
      // Padded, with priority, continued twice.
      client.append(type: 1, flags: 0x28, stream: 3, [2, 0, 0, 0, 0, 7, 4, 5, 0, 0])
      client.append(type: 9, stream: 3, [6])
      client.append(type: 9, flags: 4, stream: 3, [7, 8])
      client.append(type: 1, flags: 4, stream: 5)
      client.append(type: 6, stream: 0, [UInt8](repeating: 1, count: 8))
    }
    let preface: [UInt8] = [1, 1, 1]
    let expected = Outcome(
      passed: preface
        + frames { client in
          client.append(type: 4, stream: 0)
          client.append(type: 0, flags: 1, stream: 1, [UInt8](repeating: 9, count: 300))
          client.append(type: 6, stream: 0, [UInt8](repeating: 1, count: 8))
        },
      blocks: [[1, 2, 3], [4, 5, 6, 7, 8], []],
      heads: [[1, 1, 12], [3, 0, 321], [5, 0, 321]], failure: nil)
    for pieces in 1...bytes.count + 3 {
      #expect(read(preface + bytes, preface: 3, pieces: pieces) == expected, "\(pieces)")
    }
  }

  @Test func priorityGoesOnAtEverySplit() {
    let bytes = frames { client in
      client.append(type: 2, stream: 3, [0, 0, 0, 1, 16])
      client.append(type: 3, stream: 1, [0, 0, 0, 8])
      client.append(type: 2, stream: 3, [0, 0])
      client.append(type: 8, stream: 0, [0, 0, 0, 1])
    }
    for pieces in 1...bytes.count {
      #expect(read(bytes, pieces: pieces) == Outcome(passed: bytes), "\(pieces)")
    }
  }

  @Test func whatIsWrongEndsTheConnection() {
    let cases: [(String, FrameReader.FrameError, (inout RawClient) -> Void)] = [
      ("PRIORITY on 0", .streamZero, { $0.append(type: 2, stream: 0, [0, 0, 0, 1, 16]) }),
      (
        "own stream", .dependsOnItself,
        { $0.append(type: 2, stream: 3, [0x80, 0, 0, 3, 16]) }
      ),
      ("stream 0", .streamZero, { $0.append(type: 1, flags: 4, stream: 0, [1]) }),
      (
        "too large", .frameTooLarge,
        { $0.append(type: 1, flags: 4, stream: 1, [UInt8](repeating: 0, count: 16_385)) }
      ),
      (
        "padding", .badPadding, { $0.append(type: 1, flags: 0xC, stream: 1, [2, 0]) }
      ),
      ("no padding length", .frameTooSmall, { $0.append(type: 1, flags: 0xC, stream: 1) }),
      ("no priority", .frameTooSmall, { $0.append(type: 1, flags: 0x24, stream: 1, [0, 0]) }),
      (
        "another frame", .continuationExpected,
        {
          $0.append(type: 1, stream: 1, [1])
          $0.append(type: 0, stream: 1, [1])
        }
      ),
      (
        "another stream", .continuationExpected,
        {
          $0.append(type: 1, stream: 1, [1])
          $0.append(type: 9, flags: 4, stream: 3, [1])
        }
      ),
      (
        "padding, continued", .badPadding,
        {
          $0.append(type: 1, flags: 8, stream: 1, [9, 0])
          $0.append(type: 9, flags: 4, stream: 1, [1])
        }
      ),
      (
        "too many", .flooded,
        {
          $0.append(type: 1, stream: 1)
          for _ in 0..<8 { $0.append(type: 9, stream: 1) }
        }
      ),
      (
        "too much", .flooded,
        {
          $0.append(type: 1, stream: 1)
          for _ in 0..<5 {
            $0.append(type: 9, stream: 1, [UInt8](repeating: 0, count: 16_384))
          }
        }
      ),
    ]
    for (name, failure, speak) in cases {
      let bytes = frames(speak)
      for pieces in [1, 7, bytes.count] {
        let outcome = read(bytes, pieces: pieces)
        #expect(outcome.failure == failure, "\(name), \(pieces)")
        #expect(outcome.blocks.isEmpty && outcome.passed.isEmpty, "\(name), \(pieces)")
      }
    }
  }
}
