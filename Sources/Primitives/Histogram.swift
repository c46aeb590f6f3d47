/// Counts of values in classes that double: up to 1, 2, 4, 8 and so on. The owner defines the unit.
public struct Histogram: Hashable, Sendable {
  /// The last class has no upper end.
  public static let classCount = 24

  /// Values in each class, not cumulative.
  public private(set) var counts = [Int](repeating: 0, count: Self.classCount)
  public private(set) var sum: Int64 = 0

  public init() {}

  public var count: Int { counts.reduce(0, +) }

  /// The largest value of a class; nil for the last.
  public static func bound(_ index: Int) -> Int64? {
    index < classCount - 1 ? Int64(1) << Int64(index) : nil
  }

  /// Adds a value; negative ones, which only a clock that was set gives, count as zero.
  public mutating func add(_ value: Int64) {
    let value = max(0, value)
    let index = value <= 1 ? 0 : Int64.bitWidth - (value - 1).leadingZeroBitCount
    counts[min(index, Self.classCount - 1)] += 1
    sum = sum &+ value
  }

  public static func + (left: Histogram, right: Histogram) -> Histogram {
    var total = left
    for index in total.counts.indices { total.counts[index] += right.counts[index] }
    total.sum = left.sum &+ right.sum
    return total
  }
}
