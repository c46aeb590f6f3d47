import Primitives

/// Documents that sync (Apple, "File System Programming Guide"). What apps do with them stands in
/// Phone+DocumentUse.swift.
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
      demandContent(id, &effects)
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
    case .bookmarkKept(let id, let app, let path, let key):
      guard mayUse(id, app, &effects) else { return }
      let value = StateValue.bookmark(documents.grant(id, to: app).data)
      apps[app.number].process.interface.apply(.set(path, key: key, value))
    case .used(let use, let app):
      begin(use, by: app, for: nil, &effects)
    case .listed(let app):
      list(for: app, &effects)
    case .changedElsewhere(let id, let bytes):
      changedElsewhere(id, DocumentBody(bytes: bytes), &effects)
    case .rewrittenElsewhere(let id, let text):
      changedElsewhere(id, DocumentBody(text: text), &effects)
    case .uploaded(let id, let revision):
      sent(id, revision, &effects)
    }
  }

  /// The service has a version that was written here.
  mutating func sent(_ id: DocumentID, _ revision: Int, _ effects: inout [PhoneEffect]) {
    guard let document = documents.documents[id] else { return ignore(.unknownDocument, &effects) }
    if document.revision == revision { documents.documents[id]?.isUnsent = false }
    documents.documents[id]?.remoteRevision = max(document.remoteRevision, revision)
  }

  private func list(for app: AppID, _ effects: inout [PhoneEffect]) {
    guard isAppRunning(app, &effects) else { return }
    let references = apps[app.number].process.references
    for document in documents.listing(for: app, references: references) {
      emit(.document(document.id, .listed(by: app, document.listing)), &effects)
    }
  }

  func isAppRunning(_ app: AppID, _ effects: inout [PhoneEffect]) -> Bool {
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
  func mayUse(_ id: DocumentID, _ app: AppID, _ effects: inout [PhoneEffect]) -> Bool {
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
    add(name, DocumentBody(bytes: bytes), to: app, &effects)
  }

  /// A document that was made here; nil if there are too many.
  @discardableResult
  mutating func add(
    _ name: String, _ body: DocumentBody, to app: AppID, _ effects: inout [PhoneEffect]
  ) -> DocumentID? {
    guard documents.documents.count < limits.documents else {
      ignore(.limitReached, &effects)
      return nil
    }
    let id = documents.nextID()
    documents.documents[id] = Document(
      id: id, container: app, name: name, bytes: body.bytes, modifiedAt: now,
      hasThumbnail: true, content: .local, revision: 1, remoteRevision: 0, isUnsent: true,
      text: body.text)
    emit(.document(id, .appeared(.local)), &effects)
    needUpload(id, &effects)
    return id
  }

  /// The service has to hear of what is here; a provider of the container is called for that.
  mutating func needUpload(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    guard let document = documents.documents[id] else { return }
    emit(.document(id, .uploadNeeded(revision: document.revision)), &effects)
    callProvider(id, &effects)
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
    giveUpWaiting(for: id, &effects)
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

  mutating func request(
    _ id: DocumentID, _ party: Coordination.Party, _ kind: Coordination.Kind,
    _ effects: inout [PhoneEffect]
  ) {
    let access = Coordination.Access(id: documents.nextAccess(), party: party, kind: kind)
    request(id, access, &effects)
  }

  mutating func request(
    _ id: DocumentID, _ access: Coordination.Access, _ effects: inout [PhoneEffect]
  ) {
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
    if let use = usesOfAccesses[access.id] { workOn(access.id, use) }
  }

  private mutating func accessEnded(
    _ id: DocumentID, _ accessID: AccessID, _ bytes: Int64, _ effects: inout [PhoneEffect]
  ) {
    guard let access = documents.documents[id]?.coordination.held(accessID),
      case .app(let app) = access.party, isRunning(app.number)
    else { return ignore(.notAllowed, &effects) }
    if access.kind == .write { write(id, DocumentBody(bytes: bytes), &effects) }
    end(id, &effects) { $0.id == accessID }
  }

  /// A new version of an app's; of two versions the later stands, and the other is kept.
  mutating func write(_ id: DocumentID, _ body: DocumentBody, _ effects: inout [PhoneEffect]) {
    guard let document = documents.documents[id] else { return }
    let revision = max(document.revision, document.remoteRevision) + 1
    documents.documents[id]?.revision = revision
    documents.documents[id]?.body = body
    documents.documents[id]?.modifiedAt = now
    documents.documents[id]?.content = .local
    documents.documents[id]?.isUnsent = true
    emit(.document(id, .changed(revision: revision, bytes: body.bytes)), &effects)
    needUpload(id, &effects)
    guard document.isStale else { return }
    let other = DocumentVersion(
      revision: document.remoteRevision, body: document.remoteBody ?? document.body,
      modifiedAt: document.modifiedAt, isFromHere: false)
    conflict(id, keeping: other, &effects)
  }

  private mutating func conflict(
    _ id: DocumentID, keeping other: DocumentVersion, _ effects: inout [PhoneEffect]
  ) {
    documents.documents[id]?.keep(other, atMost: limits.documentVersions)
    emit(.document(id, .conflict(kept: other)), &effects)
  }

  mutating func end(
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
    dropUses(of: AppID(index), &effects)
    for id in busyDocuments { end(id, &effects) { $0.party == .app(AppID(index)) } }
  }

  // MARK: The sync service

  private mutating func changedElsewhere(
    _ id: DocumentID, _ body: DocumentBody, _ effects: inout [PhoneEffect]
  ) {
    guard let document = documents.documents[id] else {
      return ignore(.unknownDocument, &effects)
    }
    documents.documents[id]?.remoteRevision =
      max(document.revision, document.remoteRevision) + 1
    documents.documents[id]?.remoteBytes = body.bytes
    documents.documents[id]?.remoteText = body.text
    guard document.content == .placeholder else { return }
    // Its metadata are the other's.
    documents.documents[id]?.bytes = body.bytes
    documents.documents[id]?.modifiedAt = now
  }

  /// Has the content brought by the transfer service, at its user's wish and so not discretionary.
  mutating func fetchContent(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    guard let document = documents.documents[id], document.isStale else {
      return ignore(.alreadySo, &effects)
    }
    if case .coming = document.content { return ignore(.alreadySo, &effects) }
    guard service.transfers.count < limits.transfers else { return ignore(.limitReached, &effects) }
    let request = TransferRequest(
      session: "documents", name: document.name,
      bytes: document.remoteBody?.bytes ?? document.bytes, document: id)
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
      return contentFailed(id, &effects)
    }
    documents.documents[id]?.arrivedBytes =
      transfer.isPerformed ? transfer.done : transfer.request.bytes
    request(id, .syncService, .write, &effects)
  }

  /// Before a start: every process ends, so nobody's turn comes but the service's.
  mutating func endAllAccesses(_ effects: inout [PhoneEffect]) {
    uses = [:]
    usesOfAccesses = [:]
    for id in busyDocuments {
      end(id, &effects) { $0.party != .syncService }
    }
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
    let body = document.remoteBody ?? DocumentBody(bytes: document.arrivedBytes)
    documents.documents[id]?.body = body
    documents.documents[id]?.remoteBytes = nil
    documents.documents[id]?.remoteText = nil
    documents.documents[id]?.modifiedAt = now
    for index in apps.indices { apps[index].process.undo[id] = nil }
    if document.isUnsent {
      let own = DocumentVersion(
        revision: document.revision, body: document.body, modifiedAt: document.modifiedAt,
        isFromHere: true)
      conflict(id, keeping: own, &effects)
    }
    documents.documents[id]?.isUnsent = false
    emit(.document(id, .changed(revision: revision, bytes: body.bytes)), &effects)
    end(id, &effects) { $0.id == access.id }
    contentCame(id, &effects)
  }
}
