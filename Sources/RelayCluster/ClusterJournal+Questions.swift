package import Primitives
import RelayCore
package import RelayRecording
package import RelayStore
import Synchronization

extension ClusterJournal {
  /// The other nodes at work, and whether all stripes have an owner.
  struct Peers: Sendable {
    var numbers: [UInt16] = []
    var isComplete = false
  }

  package func feedback(
    since position: Int64, limit: Int, isWanted: @escaping @Sendable () -> Bool
  ) async throws(StoreError) -> [FeedbackItem] {
    guard isWanted() else { return [] }
    guard core.withLock({ $0.peers.isComplete }) else {
      throw .engineRefuses(reason: "some stripes have no node at the moment")
    }
    let limit = max(0, limit)
    var parts = [await ownListing(after: position, limit: limit)]
    parts += try await askAll(.feedback(after: position, limit: limit))
    let end = parts.map(\.end).min() ?? .max
    let items = parts.flatMap(\.items).filter { $0.position <= end }
      .sorted { $0.position < $1.position }.prefix(limit)
    // A token listed on one node may have been registered again on another.
    var owned: Set<DeviceToken> = []
    for tokens: [DeviceToken] in try await askAll(.owned(items.map(\.token))) {
      owned.formUnion(tokens)
    }
    return items.filter { !owned.contains($0.token) }
  }

  func ownListing(after position: Int64, limit: Int) async -> ListingPart {
    await onQueue { $0.feedback(after: position, limit: limit) }
  }

  /// Numbers of the other nodes at work.
  package var peerNumbers: [UInt16] { core.withLock { $0.peers.numbers } }

  /// Asks another node's relay, in a form; nil when no answer comes in time.
  package func ask(
    relayOf node: UInt16, _ question: [UInt8], form: UInt8, within patience: Interval
  ) async -> ByteReader? {
    await ask(node, .relay(question), form: form, within: patience)
  }

  /// Whether another node's loops know this one, and send it what is for a stripe. A node of an
  /// earlier version does not understand the question.
  func standing(at node: UInt16) async -> (isKnown: Bool, isSentTo: Bool) {
    guard var reader = await ask(node, .knows(port.number)) else { return (false, true) }
    let isKnown = reader.isAtEnd || (try? reader.read(Bool.self)) == true
    return (isKnown, (try? reader.read(Bool.self)) == true)
  }

  /// Each task ends when its node knows it, or has not answered in time.
  func tellOthers(_ news: ClusterQuestion) -> [Task<Void, Never>] {
    peerNumbers.map { node in Task { _ = await ask(node, news) } }
  }

  private func askAll<Answer: BinaryCodable>(
    _ question: ClusterQuestion
  ) async throws(StoreError) -> [Answer] {
    var answers: [Answer] = []
    for node in peerNumbers {
      var reader = await ask(node, question)
      guard let answer = try? reader?.read(Answer.self) else {
        throw .engineRefuses(reason: "node \(node) does not answer")
      }
      answers.append(answer)
    }
    return answers
  }

  private func ask(
    _ node: UInt16, _ question: ClusterQuestion, form: UInt8? = nil,
    within patience: Interval = Limits.hopAge
  ) async -> ByteReader? {
    var writer = ByteWriter(form: form ?? port.form.written)
    writer.put(question)
    return await port.ask(node, writer, within: patience)
  }
}
