import Primitives
import Testing

@testable import DeviceModel
@testable import PhoneRuntime

/// A phone, and transfers as it orders them.
@Suite struct TransferOrderTests {
  private let request = TransferRequest(
    name: "a", direction: .upload, bytes: 50, resumes: false, url: "http://files.example/a",
    authorization: "Bearer key")

  private func phone(_ request: TransferRequest, _ mode: TransferMode) -> Phone {
    var phone = Phone(transferMode: mode, seed: 1, at: Instant(milliseconds: 0))
    send([.appInstalled(AppDefinition(name: "a")), .unlocked, .appOpened(AppID(0))], to: &phone)
    send([.transferQueued(AppID(0), request)], to: &phone)
    return phone
  }

  private func send(_ events: [PhoneEvent], to phone: inout Phone) {
    var effects: [PhoneEffect] = []
    for event in events { phone.handle(event, at: phone.now + .seconds(1), into: &effects) }
  }

  @Test func whatIsOrdered() throws {
    var phone = phone(request, .performed)
    let id = try #require(phone.service.transfers.first?.id)
    var wanted = TransferOrder(
      url: "http://files.example/a", direction: .upload, resumes: false, file: "/f", bytes: 50)
    #expect(TransferOrder(try #require(phone.service[id]), file: "/f") == wanted)
    // Credentials go along only after the server has asked.
    send(TransferReport.challenged.events(of: id) + [.tick, .tick], to: &phone)
    wanted.authorization = "Bearer key"
    #expect(TransferOrder(try #require(phone.service[id]), file: "/f") == wanted)
  }

  @Test func whatTheModelMovesIsNotOrdered() throws {
    var plain = request
    plain.url = nil
    for (request, mode) in [(request, TransferMode.modelled), (plain, .performed)] {
      let transfer = try #require(phone(request, mode).service.transfers.first)
      #expect(TransferOrder(transfer, file: "/f") == nil)
    }
  }

  @Test func whatThePhoneIsTold() throws {
    var phone = phone(request, .performed)
    let id = try #require(phone.service.transfers.first?.id)
    send(TransferReport.progressed(bytes: 20).events(of: id), to: &phone)
    #expect(phone.service[id]?.done == 20)
    #expect(TransferReport.failed("why").events(of: id) == [.transferEnded(id, .failed)])
    #expect(
      TransferReport.finished(bytes: 70).events(of: id) == [
        .transferProgressed(id, bytes: 70), .transferEnded(id, .finished),
      ])
  }
}
