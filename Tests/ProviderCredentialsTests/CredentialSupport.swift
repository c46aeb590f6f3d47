import Foundation
import TLS
import Testing

@testable import ProviderCredentials

/// The test provider: a fixed team, fixed key IDs, keys made anew in each run.
enum TestProvider {
  static let team = "TEAM123456"
  static let otherTeam = "OTHERTEAM1"
  static let keyID = "ABC123DEFG"
  /// Seconds; `now` is the same moment in milliseconds.
  static let issuedAt: Int64 = 1_700_000_000
  static let now: Int64 = issuedAt * 1000

  /// A JWT whose header and claims are given as JSON text, signed by `key`.
  static func token(
    header: String = #"{"alg":"ES256","kid":"ABC123DEFG"}"#,
    claims: String = #"{"iss":"TEAM123456","iat":1700000000}"#,
    key: P256.PrivateKey, asn1: Bool = false
  ) throws -> String {
    let signed = base64URL(Array(header.utf8)) + "." + base64URL(Array(claims.utf8))
    let signature = try key.signature(for: Array(signed.utf8))
    return signed + "."
      + base64URL(Array(asn1 ? signature.der : signature.raw))
  }

  /// Foundation's encoder, so that ours is checked against it.
  static func base64URL(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// The bytes of a part of a JWT, by Foundation's decoder.
  static func decodeBase64URL(_ text: String) throws -> Data {
    let plain = text.replacing("-", with: "+").replacing("_", with: "/")
    let padding = String(repeating: "=", count: (4 - plain.utf8.count % 4) % 4)
    return try #require(Data(base64Encoded: plain + padding))
  }

  /// The bytes between the first BEGIN and END of a PEM text.
  static func der(_ pem: String) throws -> [UInt8] {
    let lines = pem.split(separator: "\n").drop { !$0.hasPrefix("-----BEGIN") }.dropFirst()
    let body = lines.prefix { !$0.hasPrefix("-----END") }.joined()
    return Array(try #require(Data(base64Encoded: body)))
  }
}

/// The `openssl` program: a peer that shares no code with ours.
enum OpenSSL {
  static let isInstalled = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")

  struct Result {
    var status: Int32
    var output: String
  }

  static func run(_ arguments: String...) throws -> Result {
    try run(arguments)
  }

  static func run(_ arguments: [String]) throws -> Result {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Result(
      status: process.terminationStatus, output: String(decoding: output, as: UTF8.self))
  }
}

/// The problem that `body` throws, `nil` if it throws none.
func problem(_ body: () throws(CredentialError) -> Void) -> CredentialError? {
  do throws(CredentialError) {
    try body()
    return nil
  } catch {
    return error
  }
}

/// The text of the file error that `body` throws, `nil` if it throws none.
func fileProblem(_ body: () throws(CredentialFileError) -> Void) -> String? {
  do throws(CredentialFileError) {
    try body()
    return nil
  } catch {
    return error.description
  }
}
