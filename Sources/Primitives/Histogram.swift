/// How often something took how long, in classes that double: up to 1 unit, 2, 4, 8 and so on. What
/// a unit is, is the owner's to say.
public struct Histogram: Hashable, Sendable {
  /// The last class holds everything beyond the one before.
  public static let classCount = 24

  /// How many values lie in each class, not in those below.
  public private(set) var counts = [Int](repeating: 0, count: Self.classCount)
  /// The sum of all values.
  public private(set) var sum: Int64 = 0

  public init() {}

  /// How many values there are.
  public var count: Int { counts.reduce(0, +) }

  /// The largest value of a class; nil for the last, which has no end.
  public static func bound(_ index: Int) -> Int64? {
    index < classCount - 1 ? Int64(1) << Int64(index) : nil
  }

  /// Takes in a value; one below zero, which only a clock that was set gives, counts as zero.
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
