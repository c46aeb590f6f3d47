import Primitives
import RelayClient

/// All phones, some on one connection each.
struct CrashFleet: Sendable {
  let ledger: CrashLedger
  private let phones: [CrashPhone]
  private let phonesPerConnection: Int

  init(
    of count: Int = 40, perConnection: Int = 4, ledger: CrashLedger, random: inout SeededRandom
  ) {
    self.ledger = ledger
    phonesPerConnection = perConnection
    var phones: [CrashPhone] = []
    for number in 0..<count {
      phones.append(CrashPhone(number: number, ledger: ledger, random: random.branch()))
    }
    self.phones = phones
  }

  private var connections: [[CrashPhone]] {
    stride(from: 0, to: phones.count, by: phonesPerConnection).map { first in
      Array(phones[first..<min(phones.count, first + phonesPerConnection)])
    }
  }

  /// The phones do as they like until the life winds down or ends.
  func live(_ life: CrashLife, _ random: SeededRandom) async {
    var random = random
    await withTaskGroup { group in
      for some in connections {
        let pause = random.chance(25) ? random.milliseconds(50...800) : nil
        group.addTask {
          repeat {
            await connect(life, some, closingAfter: pause)
            guard life.weather == .rough else { return }
            do { try await Task.sleep(for: .milliseconds(50)) } catch { return }
          } while !life.isEnding
        }
      }
    }
  }

  /// All phones come and take what is held for them; returns how many did.
  @discardableResult
  func drain(_ life: CrashLife) async -> Int {
    await withTaskGroup { group in
      for some in connections {
        group.addTask {
          var rest = some
          repeat {
            rest = await drain(life, rest)
            guard life.weather == .clearing, !rest.isEmpty else { break }
            do { try await Task.sleep(for: .milliseconds(100)) } catch { break }
          } while !life.isEnding
          for phone in rest where life.weather == .clearing {
            ledger.violated("device \(phone.number) is not done: \(await phone.trouble)")
          }
          return some.count - rest.count
        }
      }
      return await group.reduce(0, +)
    }
  }

  /// On one connection; returns those that were not done.
  private func drain(_ life: CrashLife, _ phones: [CrashPhone]) async -> [CrashPhone] {
    var rest = phones
    await look(life) {
      let client = try await life.connectToDevicePort()
      let api = DeviceAPI(client)
      while let phone = rest.first {
        guard await look(life, { try await phone.drain(life, on: api) }) else { break }
        rest.removeFirst()
      }
      await client.close()
    }
    return rest
  }

  /// One connection, perhaps closed in the midst of it all and opened anew.
  private func connect(
    _ life: CrashLife, _ phones: [CrashPhone], closingAfter pause: Duration?
  ) async {
    if let pause {
      await connected(life) { api in
        await withTaskGroup(of: Void.self) { group in
          for phone in phones {
            group.addTask { await look(life) { try await phone.live(life, on: api) } }
          }
          group.addTask {
            try? await Task.sleep(for: pause)
            await api.client.close()
          }
        }
      }
    }
    guard !life.isEnding, !Task.isCancelled else { return }
    await connected(life) { api in
      await withTaskGroup(of: Void.self) { group in
        for phone in phones {
          group.addTask { await look(life) { try await phone.live(life, on: api) } }
        }
      }
    }
  }

  private func connected(_ life: CrashLife, _ body: (DeviceAPI) async -> Void) async {
    await look(life) {
      let client = try await life.connectToDevicePort()
      await body(DeviceAPI(client))
      await client.close()
    }
  }

  /// Nothing may go wrong but by a death or by our own doing; returns whether nothing did.
  @discardableResult
  private func look(_ life: CrashLife, _ body: () async throws -> Void) async -> Bool {
    do {
      try await body()
      return true
    } catch ClientError.refused(let refusal) {
      // Nobody else may say that it cannot be done now.
      if life.weather == .calm || refusal.status != 503 {
        ledger.violated("a device is refused: \(refusal)")
      }
    } catch {
      let isOurs =
        switch error {
        case is CancellationError, ClientError.cancelled, ClientError.closed: true
        default: false
        }
      if !isOurs, !life.mayBreak { ledger.violated("a device's connection broke: \(error)") }
    }
    return false
  }
}
