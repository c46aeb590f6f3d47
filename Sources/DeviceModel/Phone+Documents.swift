import Primitives

/// Documents that sync (Apple, "File System Programming Guide").
extension Phone {
  mutating func perform(_ event: DocumentEvent, _ effects: inout [PhoneEffect]) {
    switch event {
    case .created(let app, let name, let bytes):
      create(app, name, bytes, &effects)
    case .renamed(let id, let app, let name):
      guard mayUse(id, app, &effects) else { return }
      documents.documents[id]?.name = name
      emit(.document(id, .renamed(name)), &effects)
    case .deleted(let id, let app):
      guard mayUse(id, app, &effects) else { return }
      remove(id, &effects)
    case .deletedElsewhere(let id):
      guard documents.documents[id] != nil else { return ignore(.unknownDocument, &effects) }
      remove(id, &effects)
    case .accessRequested(let id, let app, let kind):
      requestAccess(id, app, kind, &effects)
    case .accessEnded(let id, let access, let bytes):
      accessEnded(id, access, bytes, &effects)
    case .contentRequested(let id, let app):
      guard mayUse(id, app, &effects) else { return }
      fetchContent(id, &effects)
    case .bookmarkResolved(let app, let bookmark):
      guard isAppRunning(app, &effects) else { return }
      guard let id = documents.resolve(bookmark, by: app) else {
        return ignore(.unknownDocument, &effects)
      }
      apps[app.number].process.references.insert(id)
      emit(.document(id, .referenced(by: app, bookmark)), &effects)
    case .picked(let id, let app):
      guard isAppRunning(app, &effects) else { return }
      guard documents.documents[id] != nil else { return ignore(.unknownDocument, &effects) }
      let bookmark = documents.grant(id, to: app)
      apps[app.number].process.references.insert(id)
      emit(.document(id, .referenced(by: app, bookmark)), &effects)
    case .announced(let app, let name, let bytes, let modifiedAt, let hasThumbnail):
      announce(app, name, bytes, modifiedAt, hasThumbnail, &effects)
    case .changedElsewhere(let id, let bytes):
      changedElsewhere(id, bytes, &effects)
    case .uploaded(let id, let revision):
      guard let document = documents.documents[id] else {
        return ignore(.unknownDocument, &effects)
      }
      if document.revision == revision { documents.documents[id]?.isUnsent = false }
      documents.documents[id]?.remoteRevision = max(document.remoteRevision, revision)
    }
  }

  private func isAppRunning(_ app: AppID, _ effects: inout [PhoneEffect]) -> Bool {
    guard apps.indices.contains(app.number) else {
      ignore(.unknownApp, &effects)
      return false
    }
    guard isRunning(app.number) else {
      ignore(.notRunning, &effects)
      return false
    }
    return true
  }

  /// An app may use what lies in its container, and what it has a reference to.
  private func mayUse(_ id: DocumentID, _ app: AppID, _ effects: inout [PhoneEffect]) -> Bool {
    guard isAppRunning(app, &effects) else { return false }
    guard let document = documents.documents[id] else {
      ignore(.unknownDocument, &effects)
      return false
    }
    let references = apps[app.number].process.references
    guard document.container == app || references.contains(id) else {
      ignore(.notAllowed, &effects)
      return false
    }
    return true
  }

  // MARK: Coming and going

  private mutating func create(
    _ app: AppID, _ name: String, _ bytes: Int64, _ effects: inout [PhoneEffect]
  ) {
    guard isAppRunning(app, &effects) else { return }
    guard documents.documents.count < limits.documents else {
      return ignore(.limitReached, &effects)
    }
    let id = documents.nextID()
    documents.documents[id] = Document(
      id: id, container: app, name: name, bytes: max(0, bytes), modifiedAt: now,
      hasThumbnail: true, content: .local, revision: 1, remoteRevision: 0, isUnsent: true)
    emit(.document(id, .appeared(.local)), &effects)
    emit(.document(id, .uploadNeeded(revision: 1)), &effects)
  }

  /// Another device has a document that is not here: its metadata is all there is.
  private mutating func announce(
    _ app: AppID, _ name: String, _ bytes: Int64, _ modifiedAt: Instant, _ hasThumbnail: Bool,
    _ effects: inout [PhoneEffect]
  ) {
    guard apps.indices.contains(app.number), apps[app.number].state != .uninstalled else {
      return ignore(.unknownApp, &effects)
    }
    guard documents.documents.count < limits.documents else {
      return ignore(.limitReached, &effects)
    }
    let id = documents.nextID()
    documents.documents[id] = Document(
      id: id, container: app, name: name, bytes: max(0, bytes), modifiedAt: modifiedAt,
      hasThumbnail: hasThumbnail, content: .placeholder, revision: 0, remoteRevision: 1)
    emit(.document(id, .appeared(.placeholder)), &effects)
  }

  mutating func remove(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    documents.documents[id] = nil
    busyDocuments.removeAll { $0 == id }
    documents.grants = documents.grants.filter { $0.value.document != id }
    for index in apps.indices { apps[index].process.references.remove(id) }
    emit(.document(id, .deleted), &effects)
  }

  // MARK: Coordination

  private mutating func requestAccess(
    _ id: DocumentID, _ app: AppID, _ kind: Coordination.Kind, _ effects: inout [PhoneEffect]
  ) {
    guard mayUse(id, app, &effects) else { return }
    let waiting = documents.documents[id]?.coordination.waiting.count ?? 0
    guard waiting < limits.waitingAccesses else { return ignore(.limitReached, &effects) }
    request(id, .app(app), kind, &effects)
  }

  private mutating func request(
    _ id: DocumentID, _ party: Coordination.Party, _ kind: Coordination.Kind,
    _ effects: inout [PhoneEffect]
  ) {
    let access = Coordination.Access(id: documents.nextAccess(), party: party, kind: kind)
    if !busyDocuments.contains(id) { busyDocuments.append(id) }
    if documents.documents[id]?.coordination.request(access) == true {
      granted(access, id, &effects)
    } else {
      emit(.document(id, .waits(access)), &effects)
    }
  }

  private mutating func granted(
    _ access: Coordination.Access, _ id: DocumentID, _ effects: inout [PhoneEffect]
  ) {
    emit(.document(id, .granted(access)), &effects)
    if access.party == .syncService {
      timers.set(.documentWritten(id), at: now + limits.documentWriteTime)
    }
  }

  private mutating func accessEnded(
    _ id: DocumentID, _ accessID: AccessID, _ bytes: Int64, _ effects: inout [PhoneEffect]
  ) {
    guard let access = documents.documents[id]?.coordination.held(accessID),
      case .app(let app) = access.party, isRunning(app.number)
    else { return ignore(.notAllowed, &effects) }
    if access.kind == .write, let document = documents.documents[id] {
      let revision = max(document.revision, document.remoteRevision) + 1
      documents.documents[id]?.revision = revision
      documents.documents[id]?.bytes = max(0, bytes)
      documents.documents[id]?.modifiedAt = now
      documents.documents[id]?.content = .local
      documents.documents[id]?.isUnsent = true
      emit(.document(id, .changed(revision: revision, bytes: max(0, bytes))), &effects)
      emit(.document(id, .uploadNeeded(revision: revision)), &effects)
      if document.isStale { emit(.document(id, .conflict), &effects) }
    }
    end(id, &effects) { $0.id == accessID }
  }

  private mutating func end(
    _ id: DocumentID, _ effects: inout [PhoneEffect], where isOver: (Coordination.Access) -> Bool
  ) {
    let next = documents.documents[id]?.coordination.end(where: isOver) ?? []
    for access in next { granted(access, id, &effects) }
    if documents.documents[id]?.coordination.holders == .nobody {
      busyDocuments.removeAll { $0 == id }
    }
  }

  /// A process that ends or is suspended leaves nobody waiting for it; what it had half written is
  /// dropped, the version before stands.
  mutating func endAccesses(of index: Int, _ effects: inout [PhoneEffect]) {
    for id in busyDocuments { end(id, &effects) { $0.party == .app(AppID(index)) } }
  }

  // MARK: The sync service

  private mutating func changedElsewhere(
    _ id: DocumentID, _ bytes: Int64, _ effects: inout [PhoneEffect]
  ) {
    guard let document = documents.documents[id] else {
      return ignore(.unknownDocument, &effects)
    }
    documents.documents[id]?.remoteRevision =
      max(document.revision, document.remoteRevision) + 1
    documents.documents[id]?.remoteBytes = max(0, bytes)
    if document.content == .placeholder { documents.documents[id]?.bytes = max(0, bytes) }
  }

  /// Has the content brought by the transfer service, at its user's wish and so not discretionary.
  private mutating func fetchContent(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    guard let document = documents.documents[id], document.isStale else {
      return ignore(.alreadySo, &effects)
    }
    if case .coming = document.content { return ignore(.alreadySo, &effects) }
    guard service.transfers.count < limits.transfers else { return ignore(.limitReached, &effects) }
    let request = TransferRequest(
      session: "documents", name: document.name, bytes: document.bytes, document: id)
    accountTransfers()
    let transfer = service.add(
      request, of: document.container, isDiscretionary: false, transferMode)
    if let place = service.index(of: transfer) {
      service.transfers[place].isForDocumentOnly = true
    }
    if document.content == .placeholder {
      documents.documents[id]?.content = .coming(transfer)
    }
    emit(
      .transfer(transfer, document.container, .queued(request, isDiscretionary: false)), &effects)
    emit(.document(id, .contentComing(transfer)), &effects)
    mustReviewTransfers = true
  }

  /// A download for a document has ended: the service writes it, when nobody else uses it.
  mutating func contentArrived(
    for id: DocumentID, _ transfer: Transfer, _ result: TransferResult,
    _ effects: inout [PhoneEffect]
  ) {
    guard let document = documents.documents[id] else { return }
    guard result == .finished else {
      if document.content == .coming(transfer.id) {
        documents.documents[id]?.content = .placeholder
      }
      return
    }
    documents.documents[id]?.arrivedBytes =
      transfer.isPerformed ? transfer.done : transfer.request.bytes
    request(id, .syncService, .write, &effects)
  }

  /// After a start: who uses which document is known; what the service was writing it writes anew.
  mutating func resumeCoordination() {
    busyDocuments = documents.busy
    for id in busyDocuments where documents.documents[id]?.coordination.isSyncServiceWriting == true
    {
      timers.set(.documentWritten(id), at: now + limits.documentWriteTime)
    }
  }

  /// The service has written; whoever waited may go on.
  mutating func syncServiceWrote(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    guard let document = documents.documents[id],
      case .writer(let access) = document.coordination.holders, access.party == .syncService
    else { return }
    let revision = max(document.remoteRevision, 1)
    documents.documents[id]?.revision = revision
    documents.documents[id]?.remoteRevision = revision
    documents.documents[id]?.content = .local
    let bytes = document.remoteBytes ?? document.arrivedBytes
    documents.documents[id]?.bytes = bytes
    documents.documents[id]?.remoteBytes = nil
    documents.documents[id]?.modifiedAt = now
    if document.isUnsent { emit(.document(id, .conflict), &effects) }
    documents.documents[id]?.isUnsent = false
    emit(.document(id, .changed(revision: revision, bytes: bytes)), &effects)
    end(id, &effects) { $0.id == access.id }
  }
}
