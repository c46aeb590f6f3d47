import Testing

@testable import PhoneRuntime

@Suite struct ProgressReporterTests {
  private func reports(
    every interval: Duration, _ body: (ProgressReporter) -> Void
  ) async -> [TransferReport] {
    let (reports, channel) = AsyncStream.makeStream(
      of: TransferReport.self, bufferingPolicy: .bufferingNewest(ProgressReporter.most))
    body(ProgressReporter(to: channel, every: interval))
    var all: [TransferReport] = []
    for await report in reports { all.append(report) }
    return all
  }

  @Test func seldomButTheFirstAndTheLast() async {
    let all = await reports(every: .seconds(3600)) { progress in
      progress.began(at: 5)
      for bytes in Int64(6)...1000 { progress.moved(to: bytes) }
      progress.began(at: 0)
      progress.moved(to: 1)
      progress.end(.finished(bytes: 1001))
      progress.moved(to: 2000)
      progress.end(.challenged)
    }
    #expect(
      all == [.progressed(bytes: 5), .progressed(bytes: 0), .finished(bytes: 1001)])
  }

  /// Who reads slowly gets the newest.
  @Test func boundedWithTheNewest() async {
    let all = await reports(every: .zero) { progress in
      progress.began(at: 0)
      for bytes in Int64(1)...1000 { progress.moved(to: bytes) }
      progress.end(.failed("why"))
    }
    #expect(all.count == ProgressReporter.most)
    #expect(all.suffix(2) == [.progressed(bytes: 1000), .failed("why")])
  }

  @Test func nothingAfterACancellation() async {
    let all = await reports(every: .zero) { progress in
      progress.end(nil)
      progress.moved(to: 1)
    }
    #expect(all.isEmpty)
  }
}
