import Dispatch
import FoundationEssentials
import NATS
import RelayCore
import RelayStore

/// The relay's stream of stripes and bucket of leases in JetStream, made by the engine's JSON API
/// (NATS documentation, "JetStream wire API Reference").
struct EngineStream: Sendable {
  static let name = "pushrelay"
  /// The bucket of leases, a stream as key-value buckets are.
  static let bucket = "KV_pushrelay"

  static func subject(ofStripe stripe: Int) -> String { "\(name).stripe.\(stripe)" }
  static func subject(ofLease node: String) -> String { "$KV.pushrelay.lease.\(node)" }

  /// Fixed when the stream was made.
  let partitionCount: Int
  let stripeCount: Int
  let replicas: Int
  let maximumBytes: Int?
  /// Of the version that made it. Nodes have raised it since if the bucket says so.
  let form: UInt8
  /// Times, in the engine's words, at which stream and bucket began: new ones have others.
  let created: [String?]

  /// One stripe's share of it: a full stream does not even take a snapshot that would make it
  /// smaller.
  var roomBytes: Int? { maximumBytes.map { $0 / stripeCount } }

  /// Opens stream and bucket, making them with these numbers if they do not exist.
  static func open(
    _ client: EngineClient, partitions: Int, stripes: Int, replicas: Int
  ) async throws(StoreError) -> EngineStream {
    try await checkVersion(client)
    let wanted = StreamConfiguration(
      name: name, subjects: ["\(name).stripe.*"], numReplicas: replicas,
      metadata: [
        partitionsKey: "\(partitions)", stripesKey: "\(stripes)",
        formKey: "\(ClusterForm.number(of: ClusterForm.newest, first: StripeMessage.firstForm))",
      ])
    let found = try await streamMade(wanted, client)
    let leases = StreamConfiguration(
      name: bucket, subjects: ["$KV.pushrelay.>"], numReplicas: found.config?.numReplicas ?? 1,
      maxMsgsPerSubject: 1, allowRollupHdrs: true)
    return try checked(found, try await streamMade(leases, client))
  }

  /// False before the first relay, and where somebody has deleted it.
  static func hasBucket(_ client: EngineClient) async throws(StoreError) -> Bool {
    try await info(bucket, client).config != nil
  }

  static func existing(_ client: EngineClient) async throws(StoreError) -> EngineStream? {
    try await checkVersion(client)
    let answer = try await info(name, client)
    return answer.config == nil ? nil : try checked(answer, try await info(bucket, client))
  }

  /// True if the engine says that there are no stripes; false without an answer.
  static func isMissing(_ client: EngineClient) async -> Bool {
    let subject = "$JS.API.STREAM.INFO.\(name)"
    guard let message = await client.ask(subject, within: .seconds(1))?.first else { return false }
    return (try? EngineReply(message.body, to: subject))?.error?.code == 404
  }

  private static func checked(
    _ answer: EngineReply, _ bucket: EngineReply
  ) throws(StoreError) -> EngineStream {
    guard let found = answer.config else { throw refused(name, answer, "no configuration") }
    guard let partitions = found.metadata?[partitionsKey].flatMap({ Int($0) }),
      let stripes = found.metadata?[stripesKey].flatMap({ Int($0) }),
      PartitionTable.counts.contains(partitions), Limits.stripes.contains(stripes)
    else { throw .engineRefuses(reason: "the stream \(name) was not made by a relay") }
    // The oldest streams do not say theirs.
    let number = found.metadata?[formKey] ?? "2"
    let form = UInt8(number).flatMap { ClusterForm.form($0, first: StripeMessage.firstForm) }
    guard let form, form <= ClusterForm.newest else {
      throw .otherForm(of: "the stream \(name)", found: number, ClusterForm.readable)
    }
    // Messages that the engine may drop by itself were answered 200.
    guard found.retention == "limits", found.maxAge == 0, found.maxMsgs == -1,
      found.maxMsgsPerSubject == -1, found.maxBytes == -1 || found.discard == "new",
      found.allowDirect == true
    else {
      throw .engineRefuses(
        reason: "the stream \(name) was changed: it may have no max_age, max_msgs and "
          + "max_msgs_per_subject, and needs discard new and allow_direct")
    }
    return EngineStream(
      partitionCount: partitions, stripeCount: stripes, replicas: found.numReplicas,
      maximumBytes: found.maxBytes > 0 ? found.maxBytes : nil, form: form,
      created: [answer.created, bucket.created])
  }

  private static let partitionsKey = "pushrelay.partitions"
  private static let stripesKey = "pushrelay.stripes"
  private static let formKey = "pushrelay.form"

  /// The API level of nats-server 2.12 (NATS documentation, "JetStream API Levels").
  private static let oldestLevel = 2

  private static func checkVersion(_ client: EngineClient) async throws(StoreError) {
    let level = try await ask("$JS.API.INFO", client).api?.level ?? 0
    guard level >= oldestLevel else {
      throw .engineTooOld(server: client.server ?? "the engine", level: level)
    }
  }

  /// Tells of the stream; makes it when there is none.
  private static func streamMade(
    _ wanted: StreamConfiguration, _ client: EngineClient
  ) async throws(StoreError) -> EngineReply {
    var answer = try await info(wanted.name, client)
    if answer.error?.code == 404 {
      answer = try await ask("$JS.API.STREAM.CREATE.\(wanted.name)", client, wanted)
    }
    guard answer.config != nil else { throw refused(wanted.name, answer, "no configuration") }
    return answer
  }

  private static func refused(
    _ stream: String, _ answer: EngineReply, _ otherwise: String
  ) -> StoreError {
    .engineRefuses(reason: "the stream \(stream): \(answer.error?.description ?? otherwise)")
  }

  private static func info(
    _ stream: String, _ client: EngineClient
  ) async throws(StoreError) -> EngineReply {
    try await ask("$JS.API.STREAM.INFO.\(stream)", client)
  }

  static func contents(
    _ client: EngineClient
  ) async throws(StoreError) -> (messages: UInt64, last: UInt64) {
    let answer = try await info(name, client)
    guard let state = answer.state else { throw refused(name, answer, "no state") }
    return (state.messages, state.lastSeq)
  }

  /// Removes all messages before this sequence, or those of one stripe; the next message gets this
  /// sequence at least.
  static func purge(
    before sequence: UInt64, of stripe: Int? = nil, _ client: EngineClient
  ) async throws(StoreError) {
    let question = PurgeQuestion(filter: stripe.map { subject(ofStripe: $0) }, seq: sequence)
    let answer = try await ask("$JS.API.STREAM.PURGE.\(name)", client, question)
    guard answer.success == true else { throw refused(name, answer, "it cannot be purged") }
  }

  /// Deletes the stripes. The bucket stays.
  static func delete(_ client: EngineClient) async throws(StoreError) {
    let answer = try await ask("$JS.API.STREAM.DELETE.\(name)", client)
    guard answer.success == true || answer.error?.code == 404 else {
      throw refused(name, answer, "it cannot be deleted")
    }
  }

  var emptyStripe: StripeState {
    StripeState(feedbackLimit: Limits.unregisteredTokens / stripeCount)
  }

  private static func ask(
    _ subject: String, _ client: EngineClient, _ body: (any Encodable)? = nil
  ) async throws(StoreError) -> EngineReply {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    let bytes = body.flatMap { try? encoder.encode($0) }.map { [UInt8]($0) } ?? []
    let deadline = ContinuousClock.now + EngineClient.patience
    while true {
      let message = await client.ask(subject, bytes)?.first
      guard message?.status == nil else {
        throw .engineRefuses(reason: "JetStream is not switched on there (nats-server --jetstream)")
      }
      let reply = try message.map { message throws(StoreError) in
        try EngineReply(message.body, to: subject)
      }
      if let reply, reply.error?.isTemporary != true { return reply }
      guard ContinuousClock.now < deadline else {
        throw .engineRefuses(
          reason: "no answer to \(subject): its servers have no leader "
            + "(\(reply?.error?.description ?? "none answers"))")
      }
      guard (try? await Task.sleep(for: .milliseconds(200))) != nil else { throw .stopped }
    }
  }

  /// Why a message was refused, if the answer says so; of one that does not follow the subject's
  /// last, which that is by the server that leads the stream.
  static func refusal(_ body: [UInt8]) -> (reason: String?, last: UInt64?) {
    let error = try? EngineReply(body, to: "a message").error
    guard error?.errCode == wrongLastSequence else { return (error?.description, nil) }
    return (nil, error?.description?.split(separator: " ").last.flatMap { UInt64($0) })
  }

  /// `JSStreamWrongLastSequenceErrF` (nats-server, "errors.json").
  private static let wrongLastSequence = 10_071
}

/// The engine's answers, its names in Swift's form.
private struct EngineReply: Decodable {
  struct API: Decodable { var level: Int? }

  struct Problem: Decodable {
    var code: Int?
    var errCode: Int?
    var description: String?

    /// The servers have not formed their cluster yet: no leader, or too few for that many replicas
    /// (`JSClusterNoPeersErrF`).
    var isTemporary: Bool { code == 503 || errCode == 10_005 }
  }

  struct State: Decodable {
    var messages: UInt64
    var lastSeq: UInt64
  }

  var api: API?
  var config: StreamConfiguration?
  var created: String?
  var state: State?
  var success: Bool?
  var error: Problem?

  init(_ body: [UInt8], to subject: String) throws(StoreError) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do {
      self = try decoder.decode(Self.self, from: Data(body))
    } catch {
      throw .engineRefuses(reason: "an answer to \(subject) cannot be read: \(error)")
    }
  }
}

private struct PurgeQuestion: Encodable {
  var filter: String?
  var seq: UInt64
}

private struct StreamConfiguration: Codable {
  var name: String
  var subjects: [String]
  var numReplicas: Int
  var metadata: [String: String]?
  var storage = "file"
  var retention = "limits"
  var discard = "new"
  var maxAge = 0
  var maxMsgs = -1
  var maxMsgsPerSubject = -1
  var maxBytes = -1
  var allowDirect: Bool? = true
  var allowRollupHdrs: Bool?
}
