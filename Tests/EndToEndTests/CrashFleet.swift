import Primitives
import RelayClient

/// All phones, some on one connection each.
struct CrashFleet: Sendable {
  static let phones = 40
  static let phonesPerConnection = 4

  let ledger: CrashLedger
  private let phones: [CrashPhone]

  init(ledger: CrashLedger, random: inout SeededRandom) {
    self.ledger = ledger
    var phones: [CrashPhone] = []
    for number in 0..<Self.phones {
      phones.append(CrashPhone(number: number, ledger: ledger, random: random.branch()))
    }
    self.phones = phones
  }

  /// The phones do as they like until the life winds down or ends.
  func live(_ life: CrashLife, _ random: SeededRandom) async {
    var random = random
    await withTaskGroup { group in
      for first in stride(from: 0, to: phones.count, by: Self.phonesPerConnection) {
        let some = Array(phones[first..<min(phones.count, first + Self.phonesPerConnection)])
        let pause = random.chance(25) ? random.milliseconds(50...800) : nil
        group.addTask { await connect(life, some, closingAfter: pause) }
      }
    }
  }

  /// All phones come and take what is held for them.
  func drain(_ life: CrashLife) async {
    await withTaskGroup { group in
      for first in stride(from: 0, to: phones.count, by: Self.phonesPerConnection) {
        let some = Array(phones[first..<min(phones.count, first + Self.phonesPerConnection)])
        group.addTask {
          await connected(life) { api in
            for phone in some { await look(life) { try await phone.drain(life, on: api) } }
          }
        }
      }
    }
  }

  /// One connection, perhaps closed in the midst of it all and opened anew.
  private func connect(
    _ life: CrashLife, _ phones: [CrashPhone], closingAfter pause: Duration?
  ) async {
    if let pause {
      await connected(life) { api in
        await withTaskGroup { group in
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
      await withTaskGroup { group in
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

  /// Nothing may go wrong but by the relay's death or by our own doing.
  private func look(_ life: CrashLife, _ body: () async throws -> Void) async {
    do {
      try await body()
    } catch DeviceAPIError.refused(let refusal) {
      ledger.violated("a device is refused: \(refusal)")
    } catch {
      let isOurs =
        switch error {
        case is CancellationError, ClientError.cancelled, ClientError.closed: true
        case DeviceAPIError.connection(.cancelled), DeviceAPIError.connection(.closed): true
        default: false
        }
      if !isOurs, !life.hasEnded { ledger.violated("a device's connection broke: \(error)") }
    }
  }
}
