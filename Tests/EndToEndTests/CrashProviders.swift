import AdminAPI
import Foundation
import Primitives
import RelayClient
import RelayCore

/// Providers that post for as long as a life of the relay lasts: three connections with four
/// requests at a time each, below 2,000 posts a second in all.
struct CrashProviders: Sendable {
  static let connections = 3
  static let lanesPerConnection = 4
  static let lanes = connections * lanesPerConnection

  let ledger: CrashLedger
  let token: String
  /// Milliseconds between two posts of a lane.
  var pause = 1...14

  /// Returns when the life winds down or ends.
  func post(_ life: CrashLife, _ random: SeededRandom) async {
    var random = random
    await withTaskGroup { group in
      for connection in 0..<Self.connections {
        let branch = random.branch()
        group.addTask { await post(life, connection, branch) }
      }
    }
  }

  /// Posts, on connection after connection where these may break.
  private func post(_ life: CrashLife, _ connection: Int, _ random: SeededRandom) async {
    var random = random
    repeat {
      await postOnce(life, connection, random.branch())
      guard life.weather == .rough else { return }
      do { try await Task.sleep(for: .milliseconds(50)) } catch { return }
    } while !life.isEnding
  }

  private func postOnce(_ life: CrashLife, _ connection: Int, _ random: SeededRandom) async {
    var random = random
    do {
      let client = try await life.connectToProviderPort()
      await withTaskGroup { group in
        for lane in 0..<Self.lanesPerConnection {
          let branch = random.branch()
          let number = connection * Self.lanesPerConnection + lane
          group.addTask { await post(life, client, lane: number, branch) }
        }
      }
      await client.close()
    } catch {
      if !life.mayBreak { ledger.violated("a provider cannot connect: \(error)") }
    }
  }

  private func post(
    _ life: CrashLife, _ client: RelayClient, lane: Int, _ random: SeededRandom
  ) async {
    var random = random
    while !life.isEnding {
      // Not a wait for anything: it bounds the load.
      do { try await Task.sleep(for: random.milliseconds(pause)) } catch { return }
      guard let (number, push) = ledger.begin(lane: lane, of: Self.lanes, &random) else {
        continue
      }
      do throws(ClientError) {
        ledger.answered(number, try await client.push(push, providerToken: token))
      } catch {
        ledger.lost(number)
        if !life.mayBreak { ledger.violated("a provider's connection broke: \(error)") }
        return
      }
    }
  }

  /// What the relay says itself of the pushes of its present life: those that came have been
  /// delivered, and of those that did not it knows why.
  func compareLives(_ life: CrashLife) async throws {
    let client = try await life.connectToProviderPort()
    for (number, push) in ledger.acceptedInThisLife(limit: 300) {
      guard let uniqueID = push.uniqueID else { continue }
      let answer = try await client.life(of: uniqueID.description, providerToken: token)
      guard
        let status = try? JSONDecoder().decode(NotificationLife.self, from: Data(answer.body))
      else {
        ledger.violated("no life of push \(number), \(uniqueID): \(answer.status) \(answer.text)")
        continue
      }
      let reason = status.steps.last { $0.step == "discarded" }?.reason
      let isRight =
        switch (push.deliveries > 0 ? "" : status.state, reason) {
        case ("delivered", _): false
        case (_, "replaced"): push.isStorable
        case (_, "expired"), (_, "not stored"): push.expirationSeconds != nil
        case (_, "token unregistered"): true
        default: status.state == "delivered"
        }
      if !isRight {
        ledger.violated("push \(number) with \(push.deliveries) deliveries lived: \(status)")
      }
    }
    await client.close()
  }
}
