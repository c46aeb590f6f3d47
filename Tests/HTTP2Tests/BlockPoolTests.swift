import Primitives
import Testing

@testable import HTTP2

@Suite struct BlockPoolTests {
  private func append(_ bytes: [UInt8], _ pool: inout BlockPool, _ queue: inout ByteQueue) {
    unsafe bytes.withUnsafeBufferPointer { unsafe pool.append($0, to: &queue) }
  }

  private func read(_ count: Int, _ pool: inout BlockPool, _ queue: inout ByteQueue) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: count) { target, done in
      let room = unsafe UnsafeMutableBufferPointer(rebasing: target[..<count])
      done = unsafe pool.read(from: &queue, into: room)
    }
  }

  /// Several queues of one pool, against arrays.
  @Test func queuesAreQueues() {
    for seed in UInt64(0)..<50 {
      var random = SeededRandom(seed: seed)
      var pool = BlockPool()
      var queues = [ByteQueue](repeating: ByteQueue(), count: 5)
      var model = [[UInt8]](repeating: [], count: 5)
      for _ in 0..<400 {
        let at = Int.random(in: 0..<5, using: &random)
        switch Int.random(in: 0..<8, using: &random) {
        case 0..<4:
          let bytes = (0..<Int.random(in: 0...1_500, using: &random)).map { _ in
            UInt8.random(in: 0...255, using: &random)
          }
          append(bytes, &pool, &queues[at])
          model[at] += bytes
        case 4..<7:
          let count = Int.random(in: 1...2_000, using: &random)
          let bytes = read(count, &pool, &queues[at])
          #expect(bytes == Array(model[at].prefix(count)), "seed \(seed)")
          model[at].removeFirst(min(count, model[at].count))
        default:
          pool.release(&queues[at])
          model[at] = []
        }
        #expect(queues[at].count == model[at].count, "seed \(seed)")
      }
      for at in 0..<5 {
        #expect(read(1 << 20, &pool, &queues[at]) == model[at], "seed \(seed)")
      }
    }
  }

  /// Something always waits, so the pool is never thrown away as a whole.
  @Test func blocksAreUsedAgain() {
    var pool = BlockPool()
    var (waiting, queue) = (ByteQueue(), ByteQueue())
    append([1], &pool, &waiting)
    let bytes = [UInt8](repeating: 7, count: 3 * BlockPool.blockBytes)
    for _ in 0..<100 {
      append(bytes, &pool, &queue)
      #expect(pool.usedBytes == 4 * BlockPool.blockBytes)
      #expect(read(bytes.count, &pool, &queue) == bytes)
    }
    let blocks = Mirror(reflecting: pool).descendant("next") as? [Int32]
    #expect(blocks?.count == 4)
  }
}
