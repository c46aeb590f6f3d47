internal import CVersion

/// Which version of push-relay this is (docs/RELEASING.md).
public enum Version {
  /// The one place that says it; a test compares what cannot ask.
  public static let number = "0.9.0"

  /// The commit that it was built from: twelve hexadecimal digits, with `+` behind them when there
  /// were changes besides; `unknown` when no package was made of it.
  public static let commit = String(
    decoding: (0..<64 as Range<UInt32>).lazy.map { UInt8(bitPattern: pushrelay_commit($0)) }
      .prefix { $0 != 0 }, as: UTF8.self)
}
