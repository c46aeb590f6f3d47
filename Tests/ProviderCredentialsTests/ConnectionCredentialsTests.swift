import Primitives
import ProviderCredentials
import RelayCore
import TLS
import Testing

@Suite struct ConnectionCredentialsTests {
  typealias Signer = CredentialScene.Signer
  typealias Event = CredentialScene.Event
  typealias World = CredentialScene.World

  static func binding(of signer: Signer) -> ConnectionCredentials.Binding {
    signer.topics == nil
      ? .teamKey(teamID: signer.teamID, environment: nil)
      : .topicKey(
        teamID: signer.teamID, keyID: signer.rawValue, relatedKeyID: signer.relatedKeyID)
  }

  /// What a connection bound by `first` says to `event`: the table of Apple, "Establishing a
  /// token-based connection to APNs".
  static func expected(_ first: Signer?, _ event: Event) -> CredentialError? {
    let second: Signer
    switch event {
    case .expired: return .expired
    case .forged: return .wrongSignature
    case .missing: return .missing
    case .token(let signer): second = signer
    }
    switch (first, second) {
    case (nil, _): return nil
    case (.team, .team), (.team, .secondTeam), (.secondTeam, .team), (.secondTeam, .secondTeam):
      return nil
    case (.topic, .topic), (.topic, .related), (.related, .topic), (.related, .related):
      return nil
    case (.unrelated, .unrelated), (.otherTeam, .otherTeam), (.otherTopic, .otherTopic):
      return nil
    case (.some(let first), _):
      return first.teamID == second.teamID ? .unrelatedKeyOnConnection : .otherTeamOnConnection
    }
  }

  /// Every state with every event: the answer, and the state afterwards.
  @Test(arguments: [nil] + Signer.allCases.map(Optional.some), Event.all)
  func pinning(first: Signer?, event: Event) throws {
    var world = World()
    #expect(world.connection.binding == .unbound)
    #expect(!world.connection.isAuthorized)
    if let first { #expect(try world.apply(.token(first)) == nil) }
    let before = world.connection.binding
    let expected = Self.expected(first, event)
    #expect(try world.apply(event) == expected)
    if let first {
      #expect(world.connection.binding == Self.binding(of: first))
    } else if case .token(let signer) = event {
      #expect(world.connection.binding == Self.binding(of: signer))
    } else {
      #expect(world.connection.binding == before)
    }
    #expect(world.connection.isAuthorized == (first != nil || expected == nil))
    #expect(world.connection.impliedTopic == nil)
  }

  /// Behind a team key for one service, one for the other does not do (Apple, "Establishing a
  /// token-based connection to APNs").
  @Test(arguments: ProviderEnvironment.allCases + [nil], ProviderEnvironment.allCases + [nil])
  func aTeamKeyBindsItsService(first: ProviderEnvironment?, second: ProviderEnvironment?) throws {
    let keys = [("TEAMKEY001", first), ("TEAMKEY002", second)].map { ($0, $1, P256.PrivateKey()) }
    var verifier = ProviderTokenVerifier(
      keys: ProviderKeys(
        keys: keys.map { keyID, environment, key in
          ProviderKeys.Key(
            .init(keyID: keyID, teamID: "TEAM123456", environment: environment),
            publicKey: key.publicKey)
        }))
    let headers = try keys.map { keyID, _, key in
      let signer = try ProviderTokenSigner(keyID: keyID, teamID: "TEAM123456", privateKey: key)
      return Array("bearer \(try signer.token(issuedAtSeconds: TestProvider.now / 1000))".utf8)
    }
    let (own, other) = (headers[0], headers[1])
    var connection = ConnectionCredentials()
    try connection.authorize(own.span, verifier: &verifier, now: TestProvider.now)
    var problem: CredentialError?
    do throws(CredentialError) {
      try connection.authorize(other.span, verifier: &verifier, now: TestProvider.now)
    } catch {
      problem = error
    }
    #expect(connection.onlyEnvironment(in: verifier.keys) == (problem == nil ? second : first))
    let isOther = first != nil && second != nil && first != second
    #expect(problem == (isOther ? .keyOfOtherEnvironment : nil))
  }

  @Test func certificatesAndOpenConnectionsIgnoreTokens() throws {
    let identity = try DevelopmentAuthority(now: TestProvider.now).issueProvider(
      topics: [.init(name: "com.example.app", kind: "app")], now: TestProvider.now)
    let certificate = try ProviderCertificate(derEncoded: TestProvider.der(identity.certificate))
    for event in Event.all {
      var world = World(ConnectionCredentials(certificate: certificate))
      #expect(try world.apply(event) == nil, "\(event)")
      #expect(world.connection.binding == .certificate(certificate))
      #expect(world.connection.isAuthorized)
      #expect(world.connection.impliedTopic == "com.example.app")
      #expect(world.topicProblem("com.example.app") == nil)
      #expect(world.topicProblem("com.example.app", isLocationPush: true) == .topicNotCovered)
      #expect(world.topicProblem("com.example.other") == .topicNotCovered)

      world.connection = .open
      #expect(try world.apply(event) == nil, "\(event)")
      #expect(world.connection.isAuthorized && world.connection.impliedTopic == nil)
      #expect(world.topicProblem("anything", isLocationPush: true) == nil)
    }
  }

  /// What saves a look at a request that says the same again: not without a proof, not longer than
  /// the token lasts, not with other keys.
  @Test func theSameAgainStandsAsLongAsItsProof() throws {
    var world = World()
    let generation = world.verifier.generation
    let stands = { (generation: UInt64, now: Int64) in
      world.connection.stillStands(generation: generation, now: now)
    }
    #expect(!stands(generation, TestProvider.now))
    let header = try world.header(.team)
    #expect(world.authorize(header) == nil)
    let end = (TestProvider.issuedAt + VerifiedToken.lifetimeSeconds) * 1000
    #expect(stands(generation, TestProvider.now) && stands(generation, end))
    #expect(!stands(generation, end + 1) && !stands(generation + 1, TestProvider.now))
    // The clock was set back.
    let begin = (TestProvider.issuedAt - VerifiedToken.lifetimeSeconds) * 1000
    #expect(stands(generation, begin) && !stands(generation, begin - 1))
    // The same keys are read again: the proof is new, and no other token was shown.
    world.verifier.replaceKeys(World.keys(world.privateKeys))
    let next = world.verifier.generation
    #expect(next != generation && !stands(next, TestProvider.now))
    #expect(world.authorize(header) == nil)
    #expect(stands(next, TestProvider.now) && !stands(generation, TestProvider.now))
    #expect(ConnectionCredentials.open.stillStands(generation: 7, now: .max))
  }

  /// Not even when it names one: location pushes need a token, whatever the push type says.
  @Test func aCertificateSendsToNoLocationTopic() throws {
    let location = "com.example.app.location-query"
    let identity = try DevelopmentAuthority(now: TestProvider.now).issueProvider(
      topics: [.init(name: "com.example.app", kind: "app"), .init(name: location, kind: "app")],
      now: TestProvider.now)
    let certificate = try ProviderCertificate(derEncoded: TestProvider.der(identity.certificate))
    var world = World(ConnectionCredentials(certificate: certificate))
    #expect(world.topicProblem("com.example.app") == nil)
    for isLocationPush in [false, true] {
      #expect(world.topicProblem(location, isLocationPush: isLocationPush) == .topicNotCovered)
    }
    let covers = { (topic: String) in world.connection.covers(topic: Array(topic.utf8).span) }
    #expect(covers("com.example.app") && !covers(location))
  }

  @Test func topicsOfKeys() throws {
    var world = World()
    #expect(world.topicProblem("com.example.app") == .topicNotCovered)
    #expect(world.authorize(try world.header(.topic)) == nil)
    #expect(world.topicProblem("com.example.app") == nil)
    #expect(world.topicProblem("com.example.app.location-query", isLocationPush: true) == nil)
    #expect(world.topicProblem("com.example.other") == .topicNotCovered)
    #expect(world.topicProblem("com.example.app") == nil)
    #expect(world.topicProblem("com.example.app") == nil)
    #expect(world.topicProblem("com.example.apq") == .topicNotCovered)
    #expect(world.topicProblem("") == .topicNotCovered)
    world = World()
    #expect(world.topicProblem("") == .topicNotCovered)
    #expect(world.authorize(try world.header(.team)) == nil)
    #expect(world.topicProblem("com.example.other") == nil)
  }

  /// The topic that passed last is forgotten when another key, with other topics, takes over.
  @Test func theLastTopicGoesWithItsToken() throws {
    var world = World()
    world.verifier.replaceKeys(
      ProviderKeys(
        keys: try [(Signer.topic, "com.example.one"), (.related, "com.example.two")].map {
          ProviderKeys.Key(
            .init(
              keyID: $0.rawValue, teamID: TestProvider.team, topics: [$1],
              relatedKeyID: $0.relatedKeyID),
            publicKey: try #require(world.privateKeys[$0]).publicKey)
        }))
    let first = try world.header(.topic)
    let second = try world.header(.related)
    for _ in 0..<3 {
      #expect(world.authorize(first) == nil)
      #expect(world.topicProblem("com.example.one") == nil)
      #expect(world.authorize(second) == nil)
      #expect(world.topicProblem("com.example.one") == .topicNotCovered)
      #expect(world.topicProblem("com.example.two") == nil)
    }
  }

  /// Of a reload with fewer keys, before the next request.
  @Test func keysThatHaveGoneAreNobodys() throws {
    var world = World()
    #expect(world.authorize(try world.header(.team)) == nil)
    #expect(world.connection.currentKey(in: world.verifier.keys)?.teamID == TestProvider.team)
    #expect(world.connection.currentKey(in: ProviderKeys()) == nil)
  }

  /// A topic-specific key and its related one have tokens of their own.
  @Test func relatedKeysAreUpdatedEach() throws {
    var world = World()
    let steps: [(minute: Int64, signer: Signer, token: Int64, problem: CredentialError?)] = [
      (0, .topic, 0, nil), (0, .related, 0, nil), (25, .topic, 1, nil), (25, .related, 1, nil),
      (26, .topic, 2, .tooManyUpdates), (26, .related, 2, .tooManyUpdates),
    ]
    for (minute, signer, token, problem) in steps {
      let header = try world.header(signer, issuedAt: TestProvider.issuedAt + token)
      let found = world.authorize(header, now: TestProvider.now + minute * 60_000)
      #expect(found == problem, "\(signer) \(token)")
    }
  }

  /// At most one change in 20 minutes; the first token is none; the two latest may alternate.
  @Test func updates() throws {
    var world = World()
    let tokens = try (0..<5).map {
      try world.header(.team, issuedAt: TestProvider.issuedAt + Int64($0))
    }
    let minute: Int64 = 60_000
    let steps: [(minute: Int64, token: Int, problem: CredentialError?)] = [
      (0, 0, nil), (1, 0, nil), (2, 1, nil), (3, 0, nil), (4, 1, nil), (5, 0, nil),
      (6, 2, .tooManyUpdates), (7, 0, nil), (8, 1, nil), (21, 2, .tooManyUpdates),
      (22, 2, nil), (23, 1, nil), (24, 2, nil), (25, 0, .tooManyUpdates),
      (41, 3, .tooManyUpdates), (42, 3, nil), (62, 1, .expired), (62, 4, .expired),
    ]
    for (index, step) in steps.enumerated() {
      let problem = world.authorize(
        tokens[step.token], now: TestProvider.now + step.minute * minute)
      #expect(problem == step.problem, "step \(index)")
    }
    #expect(world.verifier.signatureChecks == 5)
  }

  /// A token is the same however its scheme and the blanks before it are written.
  @Test func aTokenSpeltOtherwiseIsNoUpdate() throws {
    var world = World()
    let header = try world.header(.team, issuedAt: TestProvider.issuedAt)
    let token = header.split(separator: " ").last ?? ""
    for scheme in ["bearer ", "Bearer ", "BEARER ", "bearer   ", "bearer "] {
      #expect(world.authorize(scheme + token) == nil, "\(scheme)")
    }
    let other = try world.header(.team, issuedAt: TestProvider.issuedAt + 1)
    #expect(world.authorize(other) == nil, "the first update")
  }

  @Test func theTwentyMinutesEndOnTheMillisecond() throws {
    var world = World()
    let tokens = try (0..<3).map {
      try world.header(.team, issuedAt: TestProvider.issuedAt + Int64($0))
    }
    let interval = ConnectionCredentials.updateIntervalMilliseconds
    #expect(interval == 1_200_000)
    #expect(world.authorize(tokens[0]) == nil)
    #expect(world.authorize(tokens[1], now: TestProvider.now + 5) == nil)
    #expect(
      world.authorize(tokens[2], now: TestProvider.now + 4 + interval) == .tooManyUpdates)
    #expect(world.authorize(tokens[2], now: TestProvider.now + 5 + interval) == nil)
  }

  /// The fast path must not outlive the token.
  @Test func theSameBytesExpire() throws {
    var world = World()
    let token = try world.header(.team)
    for (now, expected) in [(0, nil), (3_600_000, nil), (3_600_001, .expired)]
      as [(Int64, CredentialError?)]
    {
      #expect(world.authorize(token, now: TestProvider.now + now) == expected)
    }
    let fresh = try world.header(.team, issuedAt: TestProvider.issuedAt + 3600)
    #expect(world.authorize(fresh, now: TestProvider.now + 3_600_002) == nil)
  }

  /// After a reload the same bytes are verified anew, and are no update.
  @Test func reloadedKeys() throws {
    var world = World()
    let token = try world.header(.topic)
    #expect(world.authorize(token) == nil)
    let remaining = world.privateKeys.filter { $0.key != .team }
    world.verifier.replaceKeys(World.keys(remaining))
    #expect(world.authorize(token) == nil)
    #expect(world.topicProblem("com.example.app") == nil)
    #expect(world.topicProblem("com.example.other") == .topicNotCovered)
    #expect(world.verifier.signatureChecks == 2)
    #expect(world.authorize(try world.header(.related)) == nil)
    world.verifier.replaceKeys(ProviderKeys())
    #expect(world.authorize(token) == .unknownKey)
    #expect(world.authorize(try world.header(.related)) == .unknownKey)
  }

  /// Random tokens at random times: the binding of the first good one stays, and between two
  /// accepted changes to a token that is neither of the two latest lie 20 minutes.
  @Test func invariantsOverRandomRuns() throws {
    var world = World()
    var tokens: [String] = []
    for signer in Signer.allCases {
      for second in 0..<3 {
        tokens.append(
          try world.header(signer, issuedAt: TestProvider.issuedAt + 1800 + Int64(second)))
      }
    }
    for seed in UInt64(1)...200 {
      var generator = SeededRandom(seed: seed)
      world.connection = ConnectionCredentials()
      var now = TestProvider.now
      var bound: ConnectionCredentials.Binding?
      var latest: [String] = []
      var lastChanges: [Int: Int64] = [:]
      for _ in 0..<60 {
        now += Int64.random(in: 0...300_000, using: &generator)
        let index = Int.random(in: tokens.indices, using: &generator)
        let token = tokens[index]
        let problem = world.authorize(token, now: now)
        if problem == nil, !latest.contains(token) {
          // A connection of topic-specific keys has two of them.
          let key = [Signer.topic, .related].contains(Signer.allCases[index / 3]) ? index / 3 : -1
          if let last = lastChanges[key] { #expect(now - last >= 1_200_000, "seed \(seed)") }
          if !latest.isEmpty { lastChanges[key] = now }
          latest = [token] + latest.prefix(1)
        } else if problem == nil, latest.first != token {
          latest.swapAt(0, 1)
        }
        if let bound {
          #expect(world.connection.binding == bound, "seed \(seed)")
        } else if problem == nil {
          bound = world.connection.binding
        }
      }
    }
    #expect(world.verifier.signatureChecks == tokens.count)
  }
}
