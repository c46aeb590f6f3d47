import Primitives
import Testing

@testable import RelayCore

@Suite struct BinaryConversationTests {
  private typealias Frame = BinaryFrame
  private let start = Instant(unixSeconds: 1_767_225_600)

  private func awaiting(_ frames: [UInt8]...) -> BinaryConversation {
    var conversation = BinaryConversation(at: start)
    for frame in frames { conversation.receive(frame) }
    return conversation
  }

  private func identifier(_ step: BinaryConversation.Step) -> UInt32? {
    if case .judge(let request) = step { request.identifier } else { nil }
  }

  /// However much has come, one is taken at a time.
  @Test func aFrameIsTakenAfterTheVerdictOnTheOneBefore() {
    var conversation = awaiting(Frame.full(1), Frame.enhanced(2), Frame.full(3))
    for number in UInt32(1)...3 {
      #expect(identifier(conversation.next(at: start)) == number)
      #expect(conversation.next(at: start) == .wait)
      #expect(conversation.judged(nil, at: start) == nil)
    }
    #expect(conversation.next(at: start) == .wait)
    // Nothing waits for a verdict, so none is taken.
    #expect(conversation.judged(.badDeviceToken, at: start) == nil)
  }

  @Test func nothingIsTakenBehindARefusedOne() {
    var conversation = awaiting(Frame.full(1), Frame.full(2), Frame.full(3))
    _ = conversation.next(at: start)
    #expect(conversation.judged(nil, at: start) == nil)
    #expect(identifier(conversation.next(at: start)) == 2)
    #expect(conversation.judged(.badDeviceToken, at: start)?.packet == [8, 8, 0, 0, 0, 2])
    #expect(conversation.next(at: start) == .wait)
    conversation.receive(Frame.full(4))
    #expect(conversation.next(at: start) == .wait)
    #expect(conversation.shutDown() == nil)
  }

  @Test func everyReasonHasItsStatus() {
    for rejection in Rejection.allCases {
      var conversation = awaiting(Frame.full(1), Frame.full(0x0102_0304))
      _ = conversation.next(at: start)
      #expect(conversation.judged(nil, at: start) == nil)
      _ = conversation.next(at: start)
      let packet = conversation.judged(rejection, at: start)?.packet
      let status = BinaryStatus(rejection).rawValue
      // At the relay's end the packet names the last one that was accepted, not this one.
      let expected: [UInt8] =
        rejection == .shutdown ? [8, 10, 0, 0, 0, 1] : [8, status, 1, 2, 3, 4]
      #expect(packet == expected, "\(rejection)")
    }
  }

  /// Every status of Apple's table can be heard, but the one that says that all is well.
  @Test func everyStatusHasAReason() {
    let heard =
      Rejection.allCases.map { BinaryStatus($0) } + BinaryFrameError.allCases.map(\.row.status)
    #expect(Set(heard) == Set(BinaryStatus.allCases).subtracting([.noErrors]))
    #expect(
      BinaryStatus.allCases.map(\.rawValue) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 128, 255])
  }

  @Test func aMalformedFrameIsNamed() {
    var conversation = awaiting(Frame.full(6, token: [1]), Frame.full(7))
    guard case .refuse(let refusal, let ending) = conversation.next(at: start) else {
      Issue.record("it was taken")
      return
    }
    #expect(refusal == BinaryRefusal(identifier: 6, problem: .tokenSize))
    #expect(ending.packet == [8, 5, 0, 0, 0, 6])
    #expect(conversation.next(at: start) == .wait)
  }

  /// Command 0 has no identifier: its mistakes end the connection without a word.
  @Test func theOldestFormatIsToldNothing() {
    var conversation = awaiting(Frame.simple())
    _ = conversation.next(at: start)
    #expect(conversation.judged(.badDeviceToken, at: start)?.packet == [])
    conversation = awaiting(Frame.simple(token: [1]))
    guard case .refuse(_, let ending) = conversation.next(at: start) else {
      Issue.record("it was taken")
      return
    }
    #expect(ending.packet == [])
  }

  @Test func aShutdownNamesTheLastThatWasAccepted() {
    var conversation = awaiting()
    #expect(conversation.shutDown()?.packet == [8, 10, 0, 0, 0, 0])
    conversation = awaiting(Frame.full(5), Frame.full(6))
    _ = conversation.next(at: start)
    // What was taken still gets its verdict, and no other is taken.
    #expect(conversation.shutDown() == nil)
    #expect(conversation.judged(nil, at: start)?.packet == [8, 10, 0, 0, 0, 5])
    #expect(conversation.next(at: start) == .wait)
    // A refusal comes first: the provider would otherwise send it again.
    conversation = awaiting(Frame.full(5))
    _ = conversation.next(at: start)
    #expect(conversation.shutDown() == nil)
    #expect(conversation.judged(.badDeviceToken, at: start)?.packet == [8, 8, 0, 0, 0, 5])
  }

  @Test func whatWasSentBeforeTheEndIsTaken() {
    var conversation = awaiting(Frame.full(1), Frame.full(2), [1, 0])
    conversation.peerClosed()
    for _ in 1...2 {
      guard case .judge = conversation.next(at: start) else {
        Issue.record("it was not taken")
        return
      }
      #expect(conversation.judged(nil, at: start) == nil)
    }
    guard case .end(let ending) = conversation.next(at: start) else {
      Issue.record("it goes on")
      return
    }
    #expect(ending.packet == [])
  }

  @Test func silenceHasItsLimits() {
    let (request, idle) = (Interval.seconds(30), Interval.hours(1))
    func sweep(_ conversation: inout BinaryConversation, _ seconds: Int64) -> [UInt8]? {
      conversation.sweep(
        at: start + .seconds(seconds), requestTimeout: request, idleTimeout: idle)?.packet
    }
    var quiet = awaiting()
    #expect(sweep(&quiet, 3600) == nil)
    #expect(sweep(&quiet, 3601) == [8, 10, 0, 0, 0, 0])
    var half = awaiting(Frame.full(1), [2, 0])
    _ = half.next(at: start)
    // While a verdict is awaited the silence is ours.
    #expect(sweep(&half, 9999) == nil)
    #expect(half.judged(nil, at: start + .seconds(10)) == nil)
    #expect(half.next(at: start + .seconds(10)) == .wait)
    // A byte now and then does not help.
    half.receive([0])
    #expect(half.next(at: start + .seconds(39)) == .wait)
    #expect(sweep(&half, 40) == nil)
    #expect(sweep(&half, 41) == [8, 10, 0, 0, 0, 1])
  }

  /// Behind a frame without a verdict no more is read than a frame may have.
  @Test func whoIsAheadIsNotReadFurther() {
    var conversation = awaiting(Frame.full(1))
    #expect(conversation.wantsBytes)
    _ = conversation.next(at: start)
    #expect(conversation.wantsBytes)
    conversation.receive([UInt8](repeating: 2, count: Limits.binaryFrameBytes - 1))
    #expect(conversation.wantsBytes)
    conversation.receive([2])
    #expect(!conversation.wantsBytes)
    #expect(conversation.judged(nil, at: start) == nil)
    #expect(conversation.wantsBytes)
  }
}
