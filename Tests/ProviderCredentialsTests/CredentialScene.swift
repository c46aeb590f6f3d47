import ProviderCredentials
import TLS
import Testing

/// What the tests of one connection share: keys, things that may happen, and the connection.
enum CredentialScene {
  /// The registered keys; all but the last two belong to the test team.
  enum Signer: String, CaseIterable, Sendable {
    case team = "TEAMKEY001"
    case secondTeam = "TEAMKEY002"
    case topic = "TOPICKEY01"
    case related = "TOPICKEY02"
    case unrelated = "TOPICKEY03"
    case otherTeam = "OTHERKEY01"
    case otherTopic = "OTHERKEY02"

    var teamID: String {
      self == .otherTeam || self == .otherTopic ? TestProvider.otherTeam : TestProvider.team
    }
    var topics: [String]? {
      switch self {
      case .team, .secondTeam, .otherTeam: nil
      case .topic, .related, .unrelated, .otherTopic: ["com.example.app"]
      }
    }
    var relatedKeyID: String? { self == .topic ? Signer.related.rawValue : nil }
  }

  enum Event: Sendable, CustomStringConvertible {
    case token(Signer)
    case expired
    case forged
    case missing

    static let all = Signer.allCases.map(Event.token) + [.expired, .forged, .missing]

    var description: String {
      switch self {
      case .token(let signer): "token of \(signer)"
      case .expired: "expired"
      case .forged: "forged"
      case .missing: "missing"
      }
    }
  }

  /// One connection, its verifier and the means to make tokens.
  struct World {
    var verifier: ProviderTokenVerifier
    var connection: ConnectionCredentials
    let privateKeys: [Signer: P256.PrivateKey]

    init(_ connection: ConnectionCredentials = ConnectionCredentials()) {
      let privateKeys = Dictionary(
        uniqueKeysWithValues: Signer.allCases.map { ($0, P256.PrivateKey()) })
      self.privateKeys = privateKeys
      self.connection = connection
      verifier = ProviderTokenVerifier(keys: Self.keys(privateKeys))
    }

    static func keys(_ privateKeys: [Signer: P256.PrivateKey]) -> ProviderKeys {
      ProviderKeys(
        keys: Signer.allCases.compactMap { signer in
          guard let key = privateKeys[signer] else { return nil }
          return ProviderKeys.Key(
            .init(
              keyID: signer.rawValue, teamID: signer.teamID, topics: signer.topics,
              relatedKeyID: signer.relatedKeyID), publicKey: key.publicKey)
        })
    }

    func header(_ signer: Signer, issuedAt: Int64 = TestProvider.issuedAt) throws -> String {
      let key = try #require(privateKeys[signer])
      let tokens = try ProviderTokenSigner(
        keyID: signer.rawValue, teamID: signer.teamID, privateKey: key)
      return "bearer " + (try tokens.token(issuedAtSeconds: issuedAt))
    }

    mutating func authorize(
      _ header: String, now: Int64 = TestProvider.now
    ) -> CredentialError? {
      let bytes = Array(header.utf8)
      do throws(CredentialError) {
        try connection.authorize(bytes.span, verifier: &verifier, now: now)
        return nil
      } catch {
        return error
      }
    }

    mutating func apply(_ event: Event) throws -> CredentialError? {
      switch event {
      case .token(let signer):
        return authorize(try header(signer))
      case .expired:
        return authorize(try header(.team, issuedAt: TestProvider.issuedAt - 7200))
      case .forged:
        let good = try header(.team)
        return authorize(good.dropLast(8) + "AAAAAAAA")
      case .missing:
        return authorize("")
      }
    }

    mutating func topicProblem(_ topic: String, isLocationPush: Bool = false) -> CredentialError? {
      let bytes = Array(topic.utf8)
      do throws(CredentialError) {
        try connection.authorize(
          topic: bytes.span, isLocationPush: isLocationPush)
        return nil
      } catch {
        return error
      }
    }
  }
}
