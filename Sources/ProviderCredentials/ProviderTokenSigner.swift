package import TLS

/// Makes provider tokens, for `pushrelay jwt`, this project's clients and tests.
package struct ProviderTokenSigner: Sendable {
  /// The `kid` of the tokens.
  package let keyID: String
  /// The `iss` of the tokens.
  package let teamID: String

  private let privateKey: P256.PrivateKey

  package init(
    keyID: String, teamID: String, privateKey: P256.PrivateKey
  ) throws(CredentialFileError) {
    guard ProviderToken.isIdentifier(keyID) else { throw .badKeyID(keyID) }
    guard ProviderToken.isIdentifier(teamID) else { throw .badTeamID(teamID) }
    self.keyID = keyID
    self.teamID = teamID
    self.privateKey = privateKey
  }

  /// Reads the key from a `.p8` file (PKCS#8 in PEM).
  package init(keyID: String, teamID: String, keyFile path: String) throws(CredentialFileError) {
    guard let text = try CredentialFiles.readText(path) else {
      throw .file(
        path: path, problem: "does not exist",
        advice: "only a key whose .p8 file is there can sign; `pushrelay key new` makes one")
    }
    guard let key = try? P256.PrivateKey(pem: text) else {
      throw .file(
        path: path, problem: "holds no private P-256 key in PEM",
        advice: "a .p8 file as Apple issues it is wanted")
    }
    try self.init(keyID: keyID, teamID: teamID, privateKey: key)
  }

  /// - Parameter issuedAtSeconds: UNIX seconds. The token is valid for an hour from then.
  package func token(issuedAtSeconds: Int64) throws(CredentialFileError) -> String {
    // The identifiers are letters and digits: nothing to escape.
    let header = #"{"alg":"ES256","kid":"\#(keyID)","typ":"JWT"}"#
    let claims = #"{"iss":"\#(teamID)","iat":\#(issuedAtSeconds)}"#
    let signed = Base64URL.encode(header.utf8) + "." + Base64URL.encode(claims.utf8)
    do {
      let signature = try privateKey.signature(for: Array(signed.utf8))
      return signed + "." + Base64URL.encode(signature.raw)
    } catch {
      throw .value(name: "key", value: keyID, advice: "it does not sign; make a new one")
    }
  }
}

extension CredentialFileError {
  static func badKeyID(_ keyID: String) -> Self {
    .value(name: "key ID", value: keyID, advice: "ten letters or digits are wanted")
  }

  static func badTeamID(_ teamID: String) -> Self {
    .value(name: "team ID", value: teamID, advice: "ten letters or digits are wanted")
  }
}
