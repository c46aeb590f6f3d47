import Primitives
import Testing

@testable import DeviceModel

/// Transfers whose bytes the driver moves: the phone decides when, and hears what became of them.
@Suite struct PerformedTransferTests {
  private func request(
    _ name: String = "film", _ direction: TransferRequest.Direction = .download,
    resumes: Bool = true
  ) -> TransferRequest {
    TransferRequest(
      name: name, direction: direction, bytes: 100, resumes: resumes,
      url: "https://files.example/\(name)", authorization: "Bearer key")
  }

  private func steps(_ bench: Bench) -> [TransferStep] {
    bench.actions.compactMap {
      if case .transfer(_, _, let step) = $0 { step } else { nil }
    }.filter { if case .queued = $0 { false } else { true } }
  }

  /// A bench where an app in the foreground has queued one, and its id.
  private func queued(
    _ request: TransferRequest, mode: TransferMode = .performed,
    _ change: (inout AppScript) -> Void = { _ in }
  ) throws -> (Bench, TransferID) {
    var bench = Bench([.ordinary("app", change)], transferMode: mode)
    bench.send(.unlocked, .appOpened(mail), .transferQueued(mail, request))
    return (bench, try #require(bench.phone.service.transfers.first?.id))
  }

  @Test func theyAreReportedFromOutside() throws {
    var (bench, id) = try queued(request())
    #expect(steps(bench) == [.started(offset: 0)])
    bench.wait(.days(1))
    #expect(bench.phone.service[id]?.phase == .active)
    bench.send(.transferProgressed(id, bytes: 60), .networkChanged(.none))
    #expect(steps(bench).last == .held(.noNetwork))
    bench.clear()
    // What was on its way when the phone stopped it counts no more.
    bench.send(.transferProgressed(id, bytes: 70), .transferEnded(id, .finished))
    bench.send(.transferChallenged(id))
    #expect(bench.actions == Array(repeating: .ignored(.unknownTransfer), count: 3))
    bench.send(.networkChanged(.wifi))
    #expect(steps(bench).last == .started(offset: 60))
    bench.send(.transferEnded(id, .failed))
    bench.wait(.minutes(1))
    #expect(steps(bench).last == .ended(.failed))
    #expect(bench.callbackSteps(of: mail) == [.began(.transfers), .completed(.newData)])
    bench.clear()
    bench.send(.transferProgressed(id, bytes: 1))
    #expect(bench.actions == [.ignored(.unknownTransfer)])
  }

  /// Per transfer: a mode, and whether it has an address.
  @Test func onlyThoseWithAnAddressAreLeftToTheDriver() throws {
    for (mode, hasAddress) in [
      (TransferMode.modelled, true), (.modelled, false), (.performed, true), (.performed, false),
    ] {
      var request = request()
      if !hasAddress { request.url = nil }
      var (bench, id) = try queued(request, mode: mode)
      let isPerformed = mode == .performed && hasAddress
      #expect(bench.phone.service[id]?.isPerformed == isPerformed)
      bench.send(.transferProgressed(id, bytes: 10), .transferEnded(id, .failed))
      #expect(bench.actions.contains(.ignored(.unknownTransfer)) != isPerformed)
      bench.wait(.minutes(1))
      #expect(steps(bench).contains(.ended(.finished)) != isPerformed)
    }
  }

  @Test func bothKindsGoSideBySide() throws {
    var (bench, id) = try queued(request())
    // 25 MB at 2.5 MB/s: the modelled network is not shared with what the driver moves.
    bench.send(.transferQueued(mail, TransferRequest(session: "b", name: "b", bytes: 25_000_000)))
    bench.wait(.seconds(9))
    #expect(!steps(bench).contains(.ended(.finished)))
    bench.wait(.seconds(1))
    #expect(steps(bench).last == .ended(.finished))
    #expect(bench.phone.service[id]?.phase == .active)
  }

  @Test func theServerKnowsTheSize() throws {
    var (bench, id) = try queued(request())
    bench.send(.transferProgressed(id, bytes: 5000))
    #expect(bench.phone.service[id]?.done == 5000)
    // It started over.
    bench.send(.transferProgressed(id, bytes: 0))
    #expect(bench.phone.service[id]?.done == 0)
    bench.send(.transferProgressed(id, bytes: .min), .transferProgressed(id, bytes: .max))
    #expect(bench.phone.service[id]?.done == .max)
  }

  @Test func dataIsChargedAsReportedAndTheRadioByTime() throws {
    var (bench, id) = try queued(request())
    let limits = bench.phone.limits
    bench.send(.transferEnded(id, .finished))
    bench = Bench([.ordinary("app")], transferMode: .performed)
    bench.send(.unlocked, .networkChanged(.cellular), .appOpened(mail))
    bench.send(.transferQueued(mail, request()))
    id = try #require(bench.phone.service.transfers.first?.id)
    bench.send(.transferProgressed(id, bytes: 3000), .transferProgressed(id, bytes: 0))
    bench.send(.transferProgressed(id, bytes: 4000))
    #expect(limits.phoneDataPerDay - bench.phone.data.level(at: bench.now) == 7000)
    #expect(limits.phoneEnergyPerDay == bench.phone.energy.level(at: bench.now))
    bench.wait(.seconds(10))
    bench.send(.transferEnded(id, .finished))
    // Ten seconds and the tail of five.
    let spent = limits.phoneEnergyPerDay - bench.phone.energy.level(at: bench.now)
    #expect(spent == 15 * limits.cellularMilliwatts)
  }

  /// A download goes on where it was, an upload starts over, as does what cannot be resumed.
  @Test func interruptions() throws {
    for direction in [TransferRequest.Direction.download, .upload] {
      for resumes in [true, false] {
        let offset: Int64 = direction == .download && resumes ? 60 : 0
        var (bench, id) = try queued(request("film", direction, resumes: resumes))
        bench.send(.transferProgressed(id, bytes: 60), .networkChanged(.airplane))
        bench.send(.networkChanged(.wifi))
        #expect(steps(bench).last == .started(offset: offset))
        bench.clear()
        bench.send(.transferProgressed(id, bytes: 60), .rebooted)
        #expect(steps(bench) == [.started(offset: offset)])
        bench.send(.transferProgressed(id, bytes: 60), .transferChallenged(id), .unlocked)
        bench.wait(.minutes(1))
        #expect(steps(bench).last == .started(offset: offset))
      }
    }
  }

  @Test func aServerThatAsksGetsTheAppsAnswer() throws {
    for isProvided in [true, false] {
      var (bench, id) = try queued(request()) {
        if !isProvided { $0.onAuthentication = .cancels(after: .seconds(1)) }
      }
      bench.send(.locked, .transferProgressed(id, bytes: 0))
      bench.wait(.minutes(1))
      #expect(bench.phone.wakefulness == .asleep)
      bench.send(.transferChallenged(id))
      #expect(bench.phone.service[id]?.phase == .awaitingCredentials)
      #expect(bench.callbackSteps(of: mail) == [.began(.authentication)])
      bench.wait(.minutes(1))
      guard isProvided else {
        #expect(steps(bench).last == .ended(.notAuthenticated))
        #expect(bench.callbackSteps(of: mail).contains(.began(.transfers)))
        continue
      }
      #expect(bench.phone.service[id]?.hasCredentials == true)
      #expect(bench.phone.service[id]?.request.authorization == "Bearer key")
      #expect(
        steps(bench) == [.started(offset: 0), .credentialsDemanded, .started(offset: 0)])
      // The second time it is the answer that is wrong.
      bench.send(.transferChallenged(id))
      #expect(steps(bench).last == .ended(.notAuthenticated))
      bench.wait(.minutes(1))
      #expect(bench.callbackSteps(of: mail).contains(.began(.transfers)))
      #expect(bench.phone.service.transfers.isEmpty)
    }
  }

  /// Whether it will ask is the server's affair, not the script's.
  @Test func nobodyIsAskedBeforeTheServer() throws {
    var request = request()
    request.demandsCredentials = true
    let (bench, _) = try queued(request)
    #expect(steps(bench) == [.started(offset: 0)])
  }

  @Test func aSwipeCancelsWhatTheDriverMoves() throws {
    var (bench, id) = try queued(request())
    bench.send(.appSwipedAway(mail))
    #expect(steps(bench).last == .ended(.cancelled))
    bench.send(.transferChallenged(id))
    #expect(bench.actions.last == .ignored(.unknownTransfer))
    bench.wait(.hours(1))
    #expect(bench.callbackSteps(of: mail).isEmpty)
    bench.send(.appOpened(mail))
    bench.wait(.minutes(1))
    #expect(bench.callbackSteps(of: mail) == [.began(.transfers), .completed(.newData)])
  }

  /// The place of one whose server asked is free for others meanwhile.
  @Test func whoeverIsAskedMakesRoom() throws {
    var limits = PhoneLimits()
    limits.transfersAtOnce = 1
    var bench = Bench([.ordinary()], limits: limits, transferMode: .performed)
    bench.send(.unlocked, .appOpened(mail))
    bench.send(.transferQueued(mail, request("a")), .transferQueued(mail, request("b")))
    let ids = bench.phone.service.transfers.map(\.id)
    bench.send(.transferChallenged(ids[0]))
    #expect(bench.phone.service[ids[1]]?.phase == .active)
    bench.wait(.minutes(1))
    // Then it has the place that it had in the queue.
    #expect(bench.phone.service[ids[0]]?.phase == .active)
    #expect(bench.phone.service[ids[1]]?.phase == .waiting(.queue))
    bench.send(.transferEnded(ids[0], .finished))
    #expect(bench.phone.service[ids[1]]?.phase == .active)
  }

  /// The sync service's own downloads have no address: the model moves their bytes in any mode.
  @Test func theContentOfADocumentComesInAnyMode() throws {
    for mode in [TransferMode.modelled, .performed] {
      var bench = Bench([.ordinary("files")], transferMode: mode)
      bench.send(.unlocked, .appOpened(mail))
      let film = DocumentEvent.elsewhere(
        .announced(in: mail, name: "film", DocumentBody(bytes: 100), modifiedAt: Bench.start))
      bench.send(.document(film), .document(.contentRequested(DocumentID(1), by: mail)))
      let transfer = try #require(bench.phone.service.transfers.first?.id)
      #expect(bench.phone.documents.documents[DocumentID(1)]?.content == .coming(transfer))
      bench.send(.transferEnded(transfer, .failed), .transferChallenged(transfer))
      #expect(bench.actions.suffix(2) == [.ignored(.unknownTransfer), .ignored(.unknownTransfer)])
      bench.wait(.seconds(1))
      #expect(bench.phone.documents.documents[DocumentID(1)]?.content == .local)
      #expect(bench.phone.service.transfers.isEmpty)
    }
  }
}
