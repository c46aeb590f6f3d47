internal import CVersion

/// The version of push-relay (docs/RELEASING.md).
public enum Version {
  /// The only definition; a test compares the places that cannot read it.
  public static let number = "0.9.0"

  /// The commit of the build: twelve hexadecimal digits, `+` if there were other changes; `unknown`
  /// outside a package build.
  public static let commit = String(
    decoding: (0..<64 as Range<UInt32>).lazy.map { UInt8(bitPattern: pushrelay_commit($0)) }
      .prefix { $0 != 0 }, as: UTF8.self)
}
