import ProviderCredentials
import RelayCore
import Testing

@Suite struct CredentialErrorTests {
  /// Exactly the reasons of authentication come out of here (Apple, "Handling notification
  /// responses from APNs"), and each does.
  @Test func rejectionsAreThoseOfAuthentication() {
    let expected: Set<Rejection> = [
      .missingProviderToken, .invalidProviderToken, .expiredProviderToken,
      .badEnvironmentKeyIDInToken, .unrelatedKeyIDInToken, .tooManyProviderTokenUpdates,
      .topicDisallowed, .badCertificate, .badCertificateEnvironment,
    ]
    #expect(Set(CredentialError.allCases.map(\.rejection)) == expected)
  }

  @Test func explanationsAreDistinctSingleLines() {
    let texts = CredentialError.allCases.map(\.explanation)
    #expect(Set(texts).count == texts.count)
    #expect(texts.allSatisfy { !$0.isEmpty && !$0.contains("\n") })
  }
}
