import Primitives

/// Syncing of documents (Apple, "File System Programming Guide"); Phone+DocumentUse.swift has the
/// use by apps.
extension Phone {
  mutating func perform(_ event: DocumentEvent) {
    switch event {
    case .created(let app, let name, let bytes):
      if let obstacle = obstacle(to: app) { return ignore(obstacle) }
      add(name, DocumentBody(bytes: bytes), to: app)
    case .renamed(let id, let app, let name):
      if let obstacle = obstacle(to: app, using: id) { return ignore(obstacle) }
      documents.documents[id]?.name = name
      documents.documents[id]?.hasNewPlace = true
      emit(.document(id, .renamed(name)))
      needUpload(id)
    case .deleted(let id, let app):
      if let obstacle = obstacle(to: app, using: id) { return ignore(obstacle) }
      guard let document = documents.documents[id] else { return }
      if document.remoteRevision > 0, document.isTemporary != true {
        documents.deleted = (documents.deleted ?? []) + [document]
      }
      remove(id)
    case .deletionsSent: documents.deleted = nil
    case .contentRequested(let id, let app):
      if let obstacle = obstacle(to: app, using: id) { return ignore(obstacle) }
      guard documents.documents[id]?.isStale == true, !isOnItsWay(id) else {
        return ignore(.alreadySo)
      }
      bringContent(id)
    case .bookmarkResolved(let app, let bookmark):
      if let obstacle = obstacle(to: app) { return ignore(obstacle) }
      guard let id = documents.resolve(bookmark, by: app) else { return ignore(.staleBookmark) }
      apps[app.number].process.references.insert(id)
      emit(.document(id, .referenced(by: app, bookmark)))
    case .picked(let id, let app):
      if let obstacle = obstacle(to: app, picking: id) { return ignore(obstacle) }
      refer(app, to: id)
    case .filed(let id, let app, let folder):
      if let obstacle = obstacle(to: app, using: id) { return ignore(obstacle) }
      guard documents.folder(of: id, for: app) != nil else { return ignore(.notAllowed) }
      documents.file(id, for: app, in: folder)
    case .providerSwitched(let app, let isOn):
      guard isProvider(app) else { return ignore(.notAllowed) }
      apps[app.number].isOffered = isOn
    case .bookmarkKept(let id, let app, let path, let key):
      if let obstacle = obstacle(to: app, using: id) { return ignore(obstacle) }
      let value = StateValue.bookmark(documents.grant(id, to: app).data)
      apps[app.number].process.interface.apply(.set(path, key: key, value))
    case .used(let use, let app): begin(use, by: app, for: nil)
    case .listed(let app): list(for: app)
    case .elsewhere(let change): hear(change)
    case .driveSwitched(let isOn):
      guard (documents.lacksDrive == true) == isOn else { return ignore(.alreadySo) }
      documents.lacksDrive = isOn ? nil : true
      catchUp()
    case .uploaded(let id, let revision): sent(id, revision)
    }
  }

  mutating func sent(_ id: DocumentID, _ revision: Int) {
    guard let document = documents.documents[id] else { return ignore(.unknownDocument) }
    if document.revision == revision { documents.documents[id]?.isUnsent = false }
    documents.documents[id]?.remoteRevision = max(document.remoteRevision, revision)
    documents.documents[id]?.hasNewPlace = nil
  }

  private mutating func list(for app: AppID) {
    if let obstacle = obstacle(to: app) { return ignore(obstacle) }
    for document in documents.listing(for: app) {
      let folder = documents.folder(of: document.id, for: app)
      emit(.document(document.id, .listed(by: app, document, folder: folder)))
    }
  }

  /// Lets an app use a document. For a provider's document only the bookmark remembers that; for
  /// others the app's list keeps a reference.
  mutating func refer(_ app: AppID, to id: DocumentID) {
    guard let container = documents.documents[id]?.container else { return }
    apps[app.number].process.references.insert(id)
    if !isProvider(container), container != app, documents.folder(of: id, for: app) == nil {
      documents.file(id, for: app, in: "")
    }
    emit(.document(id, .referenced(by: app, documents.grant(id, to: app))))
  }

  /// Why an app cannot act on documents; nil for a running one.
  func obstacle(to app: AppID) -> IgnoreReason? {
    guard apps.indices.contains(app.number) else { return .unknownApp }
    return isRunning(app.number) ? nil : .notRunning
  }

  /// Allows the app's own documents and those it has a reference to.
  func obstacle(to app: AppID, using id: DocumentID) -> IgnoreReason? {
    if let obstacle = obstacle(to: app) { return obstacle }
    guard let document = documents.documents[id] else { return .unknownDocument }
    let isAllowed =
      document.container == app || apps[app.number].process.references.contains(id)
      || documents.folder(of: id, for: app) != nil
    return isAllowed ? nil : .notAllowed
  }

  /// Allows documents of containers that opted in, and of a type the app asks for.
  func obstacle(to app: AppID, picking id: DocumentID) -> IgnoreReason? {
    if let obstacle = obstacle(to: app) { return obstacle }
    guard let document = documents.documents[id] else { return .unknownDocument }
    if documents.lacksDrive == true { return .notMigrated }
    guard document.container == app || apps[document.container.number].isOffered == true else {
      return .notOffered
    }
    let types = apps[app.number].definition.documentTypes
    return types?.contains(document.type ?? "") ?? true ? nil : .wrongType
  }

  // MARK: Coming and going

  /// Returns nil if there are too many documents.
  @discardableResult
  mutating func add(
    _ name: String, _ body: DocumentBody, to app: AppID, isTemporary: Bool = false
  ) -> DocumentID? {
    guard documents.documents.count < limits.documents else {
      ignore(.limitReached)
      return nil
    }
    let id = documents.nextID()
    documents.documents[id] = Document(
      id: id, container: app, name: name, bytes: body.bytes, modifiedAt: now, content: .local,
      revision: 1, remoteRevision: 0, isUnsent: !isTemporary,
      isTemporary: isTemporary ? true : nil, isCorrupt: body.isCorrupt, text: body.text)
    emit(.document(id, .appeared(.local)))
    if !isTemporary { needUpload(id) }
    return id
  }

  /// Requests an upload, from the container's provider if it has one.
  mutating func needUpload(_ id: DocumentID) {
    guard let document = documents.documents[id] else { return }
    emit(.document(id, .uploadNeeded(revision: document.revision)))
    callProvider(id)
  }

  mutating func remove(_ id: DocumentID) {
    documents.documents[id] = nil
    documents.forget { $1 == id }
    for index in apps.indices { apps[index].process.references.remove(id) }
    emit(.document(id, .deleted))
    cancelTransfers { $0.isForDocumentOnly && $0.request.document == id }
    giveUpWaiting(for: id)
    endAccesses() { $0.party == .syncService && $0.isWriting(id) }
  }

  /// Imported copies are removed with the process.
  mutating func removeTemporary(of app: AppID) {
    let copies = documents.documents.values.filter {
      $0.container == app && $0.isTemporary == true
    }
    for id in copies.map(\.id).sorted(by: { $0.number < $1.number }) { remove(id) }
  }

  // MARK: Coordination

  mutating func request(_ access: Coordination.Access) {
    if coordination.request(access) {
      granted(access)
    } else {
      for want in access.wants {
        emit(.document(want.document, .waits(access.party, isWriting: want.isWriting)))
      }
    }
  }

  private mutating func granted(_ access: Coordination.Access) {
    for want in access.wants {
      emit(.document(want.document, .granted(access.party, isWriting: want.isWriting)))
    }
    switch access.party {
    case .app: workOn(access)
    case .syncService:
      timers.set(.documentWritten(access.wants[0].document), at: now + limits.documentWriteTime)
    }
  }

  /// In a conflict the later version wins; the other is kept.
  mutating func write(_ id: DocumentID, _ body: DocumentBody) {
    guard let document = documents.documents[id] else { return }
    let revision = max(document.revision, document.remoteRevision) + 1
    documents.documents[id]?.revision = revision
    documents.documents[id]?.body = body
    documents.documents[id]?.modifiedAt = now
    documents.documents[id]?.content = .local
    documents.documents[id]?.isUnsent = true
    emit(.document(id, .changed(revision: revision, bytes: body.bytes)))
    needUpload(id)
    guard document.isStale else { return }
    let other = DocumentVersion(
      revision: document.remoteRevision, body: document.remoteBody ?? document.body,
      modifiedAt: document.remoteModifiedAt ?? document.modifiedAt, isFromHere: false)
    conflict(id, keeping: other)
  }

  private mutating func conflict(_ id: DocumentID, keeping other: DocumentVersion) {
    documents.documents[id]?.keep(other, atMost: limits.documentVersions)
    emit(.document(id, .conflict(kept: other)))
  }

  mutating func endAccesses(where isOver: (Coordination.Access) -> Bool) {
    for access in coordination.end(where: isOver) { granted(access) }
  }

  /// When a process ends or is suspended. Unfinished writes are dropped.
  mutating func endAccesses(of index: Int) {
    dropUses(of: AppID(index))
    endAccesses() { $0.party == .app(AppID(index)) }
  }

  // MARK: The sync service

  /// Applies a remote change, or keeps it until there is a network and the user has moved to iCloud
  /// Drive.
  mutating func hear(_ change: CloudChange) {
    guard network.isConnected, wakefulness != .off, documents.lacksDrive != true else {
      guard documents.unheard?.count ?? 0 < limits.documents else { return ignore(.limitReached) }
      documents.unheard = (documents.unheard ?? []) + [change]
      return
    }
    switch change {
    case .announced(let app, let name, let body, let modifiedAt, let origin, let here):
      guard let known = here ?? documents.id(of: origin) else {
        return announce(app, name, body, modifiedAt, origin)
      }
      guard let document = documents.documents[known] else { return ignore(.unknownDocument) }
      place(document, in: app, name)
      // A rename is no new content.
      guard body != document.remoteBody ?? document.body else { return }
      changedElsewhere(known, body, modifiedAt)
    case .changed(let id, let body, let moment): changedElsewhere(id, body, moment ?? now)
    case .deleted(let id, let origin):
      guard let known = id ?? documents.id(of: origin), documents.documents[known] != nil else {
        return ignore(.unknownDocument)
      }
      remove(known)
    }
  }

  private mutating func place(_ document: Document, in app: AppID, _ name: String) {
    if document.name != name {
      documents.documents[document.id]?.name = name
      emit(.document(document.id, .renamed(name)))
    }
    guard document.container != app, apps.indices.contains(app.number) else { return }
    documents.documents[document.id]?.container = app
    documents.forgetReference(of: app, to: document.id)
    emit(.document(document.id, .moved(to: app)))
  }

  mutating func catchUp() {
    let changes = documents.unheard ?? []
    documents.unheard = nil
    for change in changes { hear(change) }
  }

  private mutating func announce(
    _ app: AppID, _ name: String, _ body: DocumentBody, _ modifiedAt: Instant,
    _ origin: DocumentOrigin?
  ) {
    guard apps.indices.contains(app.number), apps[app.number].state != .uninstalled else {
      return ignore(.unknownApp)
    }
    guard documents.documents.count < limits.documents else { return ignore(.limitReached) }
    let id = documents.nextID()
    documents.documents[id] = Document(
      id: id, origin: origin, container: app, name: name, bytes: body.bytes,
      modifiedAt: modifiedAt, content: .placeholder, revision: 0, remoteRevision: 1,
      remoteBody: body == DocumentBody(bytes: body.bytes) ? nil : body)
    emit(.document(id, .appeared(.placeholder)))
  }

  /// Updates a placeholder's metadata. Local content is updated by the service on its own; by a
  /// provider only while an app has the document open.
  private mutating func changedElsewhere(
    _ id: DocumentID, _ body: DocumentBody, _ modifiedAt: Instant
  ) {
    guard let document = documents.documents[id] else { return ignore(.unknownDocument) }
    documents.documents[id]?.remoteRevision = max(document.revision, document.remoteRevision) + 1
    documents.documents[id]?.remoteBody = body
    documents.documents[id]?.remoteModifiedAt = modifiedAt
    if document.content == .placeholder {
      documents.documents[id]?.bytes = body.bytes
      documents.documents[id]?.modifiedAt = modifiedAt
      return
    }
    switch containerKind(document.container) {
    case .own: break
    case .cloud, .shared: bringContent(id)
    case .provider:
      if apps.contains(where: { $0.process.references.contains(id) }) { bringContent(id) }
    }
  }

  /// Not discretionary: the user waits for it.
  mutating func download(_ document: Document, isForDocumentOnly: Bool) {
    guard document.isStale else { return }
    let request = TransferRequest(
      session: "documents", name: document.name,
      bytes: document.remoteBody?.bytes ?? document.bytes, document: document.id)
    let index = document.container.number
    guard let transfer = queue(request, of: index, fromForeground: true) else { return }
    if let place = service.index(of: transfer) {
      service.transfers[place].isForDocumentOnly = isForDocumentOnly
    }
    if document.content == .placeholder {
      documents.documents[document.id]?.content = .coming(transfer)
    }
    emit(.document(document.id, .contentComing(transfer)))
  }

  /// The service writes a finished download once it has access.
  mutating func contentArrived(for id: DocumentID, _ transfer: Transfer, _ result: TransferResult) {
    guard let document = documents.documents[id] else { return }
    guard result == .finished else {
      if document.content == .coming(transfer.id) {
        documents.documents[id]?.content = .placeholder
      }
      return contentSettled(id)
    }
    documents.documents[id]?.arrived = transfer.isPerformed ? transfer.done : transfer.request.bytes
    requestForService(id)
  }

  private mutating func requestForService(_ id: DocumentID) {
    let want = DocumentUse.Want(id, isWriting: true)
    let access = AccessID(number: useNumbering.next())
    request(.init(id: access, party: .syncService, wants: [want]))
  }

  /// After a start: the service requests access again for downloads not yet written.
  mutating func resumeCoordination() {
    coordination = Coordination()
    let arrived = documents.documents.values.filter { $0.arrived != nil }.map(\.id)
    for id in arrived.sorted(by: { $0.number < $1.number }) { requestForService(id) }
  }

  /// The remote version wins; unsent local content is kept beside it.
  private mutating func adopt(
    _ document: Document, _ revision: Int, _ body: DocumentBody, _ writtenAt: Instant
  ) {
    let id = document.id
    documents.documents[id]?.revision = revision
    documents.documents[id]?.content = .local
    documents.documents[id]?.body = body
    documents.documents[id]?.modifiedAt = writtenAt
    for index in apps.indices { apps[index].process.undo[id] = nil }
    if document.isUnsent {
      let own = DocumentVersion(
        revision: document.revision, body: document.body, modifiedAt: document.modifiedAt,
        isFromHere: true)
      conflict(id, keeping: own)
    }
    documents.documents[id]?.isUnsent = false
    emit(.document(id, .changed(revision: revision, bytes: body.bytes)))
  }

  mutating func syncServiceWrote(_ id: DocumentID) {
    guard let document = documents.documents[id], let bytes = document.arrived,
      let access = coordination.writer(of: id), access.party == .syncService
    else { return }
    let revision = max(document.remoteRevision, 1)
    let theirs = document.remoteBody ?? DocumentBody(bytes: bytes)
    let writtenAt = document.remoteModifiedAt ?? now
    documents.documents[id]?.remoteRevision = revision
    documents.documents[id]?.remoteBody = nil
    documents.documents[id]?.remoteModifiedAt = nil
    documents.documents[id]?.arrived = nil
    if document.isUnsent, document.content == .local, document.modifiedAt > writtenAt {
      // The local version wins and is uploaded.
      documents.documents[id]?.revision = revision + 1
      let other = DocumentVersion(
        revision: revision, body: theirs, modifiedAt: writtenAt, isFromHere: false)
      conflict(id, keeping: other)
      needUpload(id)
    } else {
      adopt(document, revision, theirs, writtenAt)
    }
    endAccesses() { $0.id == access.id }
    contentSettled(id)
  }
}
