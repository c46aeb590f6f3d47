import RelayCore
import TLS
import Testing

@testable import ProviderCredentials

@Suite struct ProviderTokenVerifierTests {
  let key = P256.PrivateKey()
  let stranger = P256.PrivateKey()

  func keys(environment: ProviderEnvironment? = nil) -> ProviderKeys {
    ProviderKeys(keys: [
      ProviderKeys.Key(
        .init(keyID: "OTHERKEY01", teamID: TestProvider.otherTeam),
        publicKey: stranger.publicKey),
      ProviderKeys.Key(
        .init(keyID: TestProvider.keyID, teamID: TestProvider.team, environment: environment),
        publicKey: key.publicKey),
    ])
  }

  func verify(
    _ authorization: String, with verifier: inout ProviderTokenVerifier,
    now: Int64 = TestProvider.now
  ) -> Result<VerifiedToken, CredentialError> {
    let bytes = Array(authorization.utf8)
    do throws(CredentialError) {
      return .success(try verifier.verify(bytes.span, now: now))
    } catch {
      return .failure(error)
    }
  }

  @Test(arguments: ["bearer ", "Bearer ", "BEARER ", "bEaReR   ", " bearer\t"])
  func schemeInAnyCase(scheme: String) throws {
    var verifier = ProviderTokenVerifier(keys: keys())
    let token = try TestProvider.token(key: key)
    let verified = try verify(scheme + token + " ", with: &verifier).get()
    #expect(verified.keyIndex == 1)
    #expect(verified.issuedAtSeconds == TestProvider.issuedAt)
    #expect(verified.expiresAtMilliseconds == TestProvider.now + 3_600_000)
  }

  @Test(arguments: [
    "", " ", "bearer", "bearer ", "bear x", "basic dXNlcg==", "bearerx.y.z", "x.y.z",
  ])
  func missing(authorization: String) {
    var verifier = ProviderTokenVerifier(keys: keys())
    #expect(verify(authorization, with: &verifier) == .failure(.missing))
    #expect(verifier.cachedCount == 0)
  }

  @Test func refusals() throws {
    var verifier = ProviderTokenVerifier(keys: keys())
    func refusal(_ token: String) -> CredentialError? {
      guard case .failure(let problem) = verify("bearer " + token, with: &verifier) else {
        return nil
      }
      return problem
    }
    let unknown = #"{"alg":"ES256","kid":"UNKNOWN001"}"#
    let other = #"{"alg":"ES256","kid":"OTHERKEY01"}"#
    #expect(refusal(try TestProvider.token(header: unknown, key: key)) == .unknownKey)
    #expect(refusal(try TestProvider.token(header: other, key: stranger)) == .teamMismatch)
    #expect(refusal(try TestProvider.token(key: stranger)) == .wrongSignature)
    #expect(refusal("a.b") == .notThreeParts)
    #expect(refusal(String(repeating: "x", count: 5000)) == .tooLong)
    #expect(refusal(try TestProvider.token(key: key)) == nil)
  }

  @Test(
    arguments: [
      (nil, nil, true), (nil, .sandbox, true), (.sandbox, nil, true), (.sandbox, .sandbox, true),
      (.production, .production, true), (.sandbox, .production, false),
      (.production, .sandbox, false),
    ] as [(ProviderEnvironment?, ProviderEnvironment?, Bool)])
  func environments(
    ofKey keyEnvironment: ProviderEnvironment?, ofRelay environment: ProviderEnvironment?,
    isGood: Bool
  ) throws {
    var verifier = ProviderTokenVerifier(keys: keys(environment: keyEnvironment))
    let header = "bearer " + (try TestProvider.token(key: key))
    // Whoever asks first is remembered for nobody else.
    for asked in [environment, nil, environment] {
      var problem: CredentialError?
      do throws(CredentialError) {
        _ = try verifier.verify(Array(header.utf8).span, for: asked, now: TestProvider.now)
      } catch {
        problem = error
      }
      #expect(problem == (isGood || asked == nil ? nil : .keyOfOtherEnvironment))
    }
    #expect(verifier.signatureChecks == 1)
  }

  /// One hour to either side, decided anew at each look and without a second signature check.
  @Test func timeIsNoPartOfTheCache() throws {
    var verifier = ProviderTokenVerifier(keys: keys())
    let header = "bearer " + (try TestProvider.token(key: key))
    let hour: Int64 = 3_600_000
    for (now, expected) in [
      (0, .none), (hour, .none), (hour + 1, .expired), (10 * hour, .expired), (hour, .none),
      (-hour, .none), (-hour - 1, .issuedInFuture), (-10 * hour, .issuedInFuture), (0, .none),
    ] as [(Int64, CredentialError?)] {
      let result = verify(header, with: &verifier, now: TestProvider.now + now)
      if let expected {
        #expect(result == .failure(expected), "\(now)")
      } else {
        #expect((try? result.get()) != nil, "\(now)")
      }
    }
    #expect(verifier.signatureChecks == 1)
  }

  @Test func badTokensCostOneSignatureCheck() throws {
    var verifier = ProviderTokenVerifier(keys: keys())
    let header = "bearer " + (try TestProvider.token(key: stranger))
    for _ in 0..<100 {
      #expect(verify(header, with: &verifier) == .failure(.wrongSignature))
    }
    #expect(verifier.signatureChecks == 1)
  }

  /// A flood of bad tokens stays within the limit and does not push out the good one.
  @Test func theCacheIsBounded() throws {
    var verifier = ProviderTokenVerifier(keys: keys(), cacheLimit: 10)
    let good = "bearer " + (try TestProvider.token(key: key))
    for number in 0..<200 {
      #expect((try? verify(good, with: &verifier).get()) != nil)
      #expect(verify("bearer a.b.\(number)", with: &verifier) == .failure(.notBase64URL))
      #expect(verifier.cachedCount <= 11)
    }
    #expect(verifier.signatureChecks == 1)
    for number in 0..<30 {
      let claims = #"{"iss":"TEAM123456","iat":1700000000,"n":\#(number)}"#
      let fresh = "bearer " + (try TestProvider.token(claims: claims, key: key))
      #expect((try? verify(fresh, with: &verifier).get()) != nil)
    }
    #expect(verifier.cachedCount == 20)
  }

  @Test func replacedKeysVoidTheVerdicts() throws {
    var verifier = ProviderTokenVerifier(keys: ProviderKeys())
    let header = "bearer " + (try TestProvider.token(key: key))
    #expect(verify(header, with: &verifier) == .failure(.unknownKey))
    verifier.replaceKeys(keys())
    #expect(verifier.generation == 1)
    #expect((try? verify(header, with: &verifier).get()) != nil)
    verifier.replaceKeys(ProviderKeys())
    #expect(verify(header, with: &verifier) == .failure(.unknownKey))
  }
}
