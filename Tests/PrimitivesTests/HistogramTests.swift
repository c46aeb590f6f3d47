import Primitives
import Testing

@Suite struct HistogramTests {
  @Test(
    arguments: [
      (-5, 0), (0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (1 << 22, 22),
      (1 << 22 + 1, 23), (.max, 23),
    ] as [(Int64, Int)])
  func valuesLieInTheirClass(value: Int64, index: Int) {
    var histogram = Histogram()
    histogram.add(value)
    #expect(histogram.counts[index] == 1 && histogram.count == 1, "\(histogram.counts)")
    if let bound = Histogram.bound(index) { #expect(value <= bound) }
    if index > 0, let below = Histogram.bound(index - 1) { #expect(value > below) }
  }

  @Test func sumsAreOfBoth() {
    var (left, right) = (Histogram(), Histogram())
    left.add(3)
    right.add(5)
    right.add(100)
    let sum = left + right
    #expect(sum.count == 3 && sum.sum == 108)
    #expect(Histogram.bound(Histogram.classCount - 1) == nil)
  }
}
