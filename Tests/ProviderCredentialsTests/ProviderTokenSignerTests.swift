import Foundation
import ProviderCredentials
import TLS
import TestSupport
import Testing

@Suite struct ProviderTokenSignerTests {
  @Test func tokensVerify() throws {
    let key = P256.PrivateKey()
    let signer = try ProviderTokenSigner(
      keyID: TestProvider.keyID, teamID: TestProvider.team, privateKey: key)
    let text = try signer.token(issuedAtSeconds: TestProvider.issuedAt)
    let bytes = Array(text.utf8)
    let token = try ProviderToken(parsing: bytes.span)
    #expect(token.keyID == TestProvider.keyID)
    #expect(token.teamID == TestProvider.team)
    #expect(token.issuedAtSeconds == TestProvider.issuedAt)
    #expect(token.isSigned(by: key.publicKey))
    #expect(text.utf8.count < 300)
    let header = try #require(text.split(separator: ".").first)
    let padded = String(header) + String(repeating: "=", count: (4 - header.utf8.count % 4) % 4)
    #expect(
      Data(base64Encoded: padded)
        == Data(#"{"alg":"ES256","kid":"ABC123DEFG","typ":"JWT"}"#.utf8))
  }

  @Test func unusableValuesAreNamed() throws {
    let key = P256.PrivateKey()
    let directory = try TemporaryDirectory()
    let broken = try directory.write("-----BEGIN PRIVATE KEY-----", to: "broken.p8")
    #expect(
      fileProblem { () throws(CredentialFileError) in
        _ = try ProviderTokenSigner(keyID: "SHORT", teamID: TestProvider.team, privateKey: key)
      }?.contains("key ID \"SHORT\"") == true)
    #expect(
      fileProblem { () throws(CredentialFileError) in
        _ = try ProviderTokenSigner(keyID: TestProvider.keyID, teamID: "\"", privateKey: key)
      }?.contains("team ID") == true)
    for (path, expected) in [
      (directory.path + "/none.p8", "does not exist"), (broken, "no private P-256 key"),
      (directory.path, "cannot be read"),
    ] {
      let text = fileProblem { () throws(CredentialFileError) in
        _ = try ProviderTokenSigner(
          keyID: TestProvider.keyID, teamID: TestProvider.team, keyFile: path)
      }
      #expect(text?.hasPrefix(path) == true && text?.contains(expected) == true, "\(text ?? "")")
    }
  }

  /// `openssl` makes the key, reads ours, and verifies the signature in its ASN.1 form.
  @Test(.enabled(if: OpenSSL.isInstalled, "needs the openssl program"))
  func opensslAgrees() throws {
    let directory = try TemporaryDirectory()
    let keyFile = directory.path + "/key.p8"
    let publicFile = directory.path + "/key.pub"
    let made = try OpenSSL.run(
      "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", keyFile)
    #expect(made.status == 0, "\(made.output)")
    let exported = try OpenSSL.run("pkey", "-in", keyFile, "-pubout", "-out", publicFile)
    #expect(exported.status == 0, "\(exported.output)")
    let signer = try ProviderTokenSigner(
      keyID: TestProvider.keyID, teamID: TestProvider.team, keyFile: keyFile)
    let text = try signer.token(issuedAtSeconds: TestProvider.issuedAt)
    let parts = text.split(separator: ".")
    let raw = Array(try TestProvider.decodeBase64URL(String(parts[2])))
    let signature = try #require(P256.Signature(raw: raw))
    let signed = try directory.write("\(parts[0]).\(parts[1])", to: "signed")
    let signatureFile = directory.path + "/signature"
    try Data(signature.der).write(to: URL(fileURLWithPath: signatureFile))
    let verified = try OpenSSL.run(
      "dgst", "-sha256", "-verify", publicFile, "-signature", signatureFile, signed)
    #expect(verified.output.contains("Verified OK"), "\(verified.output)")
  }
}
