import Foundation

/// The seeds of a property's histories: `usual` in the suite; with `RELAY_TEST_ROUND`, which
/// `scripts/simulate-forever` sets, as many that no other round has. Those are counted on standard
/// output.
package func seeds(_ usual: Range<UInt64>) -> Range<UInt64> {
  let environment = ProcessInfo.processInfo.environment
  guard let round = environment["RELAY_TEST_ROUND"].flatMap({ UInt64($0) }) else { return usual }
  let count = UInt64(usual.count)
  print("seeds \(count)")
  return usual.lowerBound + round * count..<usual.upperBound + round * count
}
