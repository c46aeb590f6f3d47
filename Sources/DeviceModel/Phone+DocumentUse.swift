import Primitives

/// How apps use documents; and providers, which are apps that transfer the content of the documents
/// in their containers.
extension Phone {
  // MARK: A use

  /// Returns false if the use has already ended in failure.
  @discardableResult
  mutating func begin(_ use: DocumentUse, by app: AppID, for callback: CallbackID?) -> Bool {
    let isTooMuch = use.wants.isEmpty || uses.count >= limits.documentUses
    if let obstacle = obstacle(to: app) ?? (isTooMuch ? .limitReached : nil) {
      ignore(obstacle)
      return false
    }
    let id = AccessID(number: useNumbering.next())
    uses[id] = RunningUse(app: app, use: use, callback: callback)
    goOn(id)
    return uses[id] != nil
  }

  /// Fetches missing content one document at a time, then requests access to all.
  private mutating func goOn(_ id: AccessID) {
    guard let running = uses[id] else { return }
    for want in running.use.wants {
      let obstacle =
        running.use.edit == .imported
        ? obstacle(to: running.app, picking: want.document)
        : obstacle(to: running.app, using: want.document)
      if let obstacle { ignore(obstacle) }
      guard obstacle == nil, let document = documents.documents[want.document] else {
        return giveUp(id)
      }
      guard lacksContent(document, want, running) else { continue }
      guard uses[id]?.asked.insert(document.id).inserted == true else { return giveUp(id) }
      uses[id]?.phase = .lacksContent(document.id)
      bringContent(document.id)
      // Do not wait for content that does not come.
      if !isOnItsWay(document.id) { goOn(id) }
      return
    }
    guard running.use.skipsCoordination != true else { return scribble(id) }
    uses[id]?.phase = .waits
    request(Coordination.Access(id: id, party: .app(running.app), wants: running.use.wants))
  }

  /// True also where newer content may exist: a reader gets the newest, so a provider is asked
  /// before every read, and the service finishes first.
  private func lacksContent(
    _ document: Document, _ want: DocumentUse.Want, _ running: RunningUse
  ) -> Bool {
    guard document.content == .local else { return true }
    guard !want.isWriting, !running.asked.contains(document.id) else { return false }
    switch containerKind(document.container) {
    case .provider: return document.container != running.app
    case .cloud, .shared: return document.isStale && network.isConnected
    case .own: return false
    }
  }

  private mutating func scribble(_ id: AccessID) {
    guard let running = uses[id], let wanted = documents.documents[running.use.wants[0].document]
    else { return }
    uses[id]?.phase = .scribbles(
      since: wanted.revision, isDisturbed: coordination.writer(of: wanted.id) != nil)
    timers.set(.documentUse(id), at: now + max(running.use.time, .zero))
  }

  mutating func workOn(_ access: Coordination.Access) {
    guard let running = uses[access.id] else { return }
    uses[access.id]?.phase = .works
    // They stay open until the process ends.
    for want in running.use.wants where running.use.edit != .imported {
      apps[running.app.number].process.references.insert(want.document)
    }
    timers.set(.documentUse(access.id), at: now + max(running.use.time, .zero))
  }

  /// Uses that will end by themselves, so the phone stays awake for them.
  var isUsingDocuments: Bool {
    uses.values.contains { use in
      switch use.phase {
      case .waits, .works, .scribbles: true
      case .lacksContent: false
      }
    }
  }

  mutating func documentWorked(_ id: AccessID) {
    guard let running = uses[id] else { return }
    switch running.phase {
    case .lacksContent, .waits: return
    case .works: break
    case .scribbles(let revision, let isDisturbed):
      let wanted = running.use.wants[0].document
      let isWhole = documents.documents[wanted]?.revision == revision
      if isDisturbed || !isWhole || coordination.writer(of: wanted) != nil {
        corrupt(wanted, running)
        return end(id, isGivenUp: false)
      }
    }
    for want in running.use.wants {
      if want.isWriting { make(running.use.edit, in: want.document, by: running.app) }
      switch running.use.edit {
      case .copied(let name) where !want.isWriting: copy(want.document, to: name)
      case .imported: importCopy(want.document, by: running.app)
      case .copied, .nothing, .size, .line, .undo, .choose, .moved: break
      }
    }
    end(id, isGivenUp: false)
  }

  /// Syncs to other devices as a new version.
  private mutating func corrupt(_ id: DocumentID, _ running: RunningUse) {
    guard let document = documents.documents[id] else { return }
    emit(.document(id, .corrupted(by: running.app)))
    write(id, DocumentBody(bytes: document.bytes, isCorrupt: true))
  }

  private mutating func giveUp(_ id: AccessID) {
    guard let running = uses[id] else { return }
    emit(.document(running.use.wants[0].document, .givenUp(by: running.app)))
    end(id, isGivenUp: true)
  }

  private mutating func end(_ id: AccessID, isGivenUp: Bool) {
    guard let callback = uses.removeValue(forKey: id)?.callback else {
      return endAccesses() { $0.id == id }
    }
    endAccesses() { $0.id == id }
    useEnded(callback, isGivenUp: isGivenUp)
  }

  // MARK: Edits

  private mutating func make(_ edit: DocumentEdit, in id: DocumentID, by app: AppID) {
    guard let document = documents.documents[id] else { return }
    switch edit {
    case .nothing, .copied, .imported: break
    case .size(let bytes): rewrite(id, DocumentBody(bytes: bytes), by: app)
    case .line(let number, let words):
      var text = document.text ?? DocumentText()
      guard text.set(line: number, to: words) else { return ignore(.unknownLine) }
      rewrite(id, DocumentBody(text: text), by: app)
    case .undo:
      guard let last = apps[app.number].process.undo[id]?.popLast() else {
        return ignore(.nothingToUndo)
      }
      tellEdit(id, last, by: app)
      write(id, last)
    case .choose(let choice): choose(choice, of: document)
    case .moved(let name): move(document, to: name, from: app)
    }
  }

  /// Can be undone until the app's process ends.
  private mutating func rewrite(_ id: DocumentID, _ body: DocumentBody, by app: AppID) {
    guard let before = documents.documents[id]?.body else { return }
    let kept = apps[app.number].process.undo[id] ?? []
    apps[app.number].process.undo[id] = (kept + [before]).suffix(limits.undoneEdits)
    tellEdit(id, body, by: app)
    write(id, body)
  }

  private mutating func tellEdit(_ id: DocumentID, _ body: DocumentBody, by app: AppID) {
    guard let text = body.text else { return }
    let difference = text.difference(from: documents.documents[id]?.text ?? DocumentText())
    emit(.document(id, .edited(by: app, difference)))
  }

  private mutating func choose(_ choice: VersionChoice, of document: Document) {
    let others = document.versions ?? []
    switch choice {
    case .revision(let revision):
      let chosen = others.last { $0.revision == revision }
      guard !others.isEmpty, chosen != nil || revision == document.revision else {
        return ignore(.unknownVersion)
      }
      documents.documents[document.id]?.versions = nil
      emit(.document(document.id, .chosen(choice)))
      if let chosen { write(document.id, chosen.body) }
    case .all:
      guard !others.isEmpty else { return ignore(.unknownVersion) }
      documents.documents[document.id]?.versions = nil
      emit(.document(document.id, .chosen(choice)))
      for other in others {
        let name = "\(document.name) (revision \(other.revision))"
        add(name, other.body, to: document.container)
      }
    }
  }

  // MARK: From container to container

  private mutating func container(_ name: String) -> AppID? {
    guard let app = app(named: name), app.state != .uninstalled else {
      ignore(.unknownApp)
      return nil
    }
    return app.id
  }

  private mutating func copy(_ id: DocumentID, to name: String) {
    guard let document = documents.documents[id], let app = container(name),
      let copy = add(document.name, document.body, to: app)
    else { return }
    emit(.document(id, .copied(to: copy, in: app)))
  }

  private mutating func importCopy(_ id: DocumentID, by app: AppID) {
    guard let document = documents.documents[id],
      let copy = add(document.name, document.body, to: app, isTemporary: true)
    else { return }
    emit(.document(id, .imported(as: copy, by: app)))
  }

  private mutating func move(_ document: Document, to name: String, from app: AppID) {
    guard let target = container(name) else { return }
    guard target != document.container else { return ignore(.alreadySo) }
    documents.documents[document.id]?.container = target
    documents.documents[document.id]?.isUnsent = true
    documents.forgetReference(of: target, to: document.id)
    emit(.document(document.id, .moved(to: target)))
    refer(app, to: document.id)
    needUpload(document.id)
  }

  // MARK: Content and providers

  /// Apps that transfer the content of the documents in their container themselves.
  package func isProvider(_ app: AppID) -> Bool { containerKind(app) == .provider }

  package func containerKind(_ app: AppID) -> DocumentContainer {
    self[app]?.definition.container ?? .cloud
  }

  /// By the container's provider, or else by the system.
  mutating func bringContent(_ id: DocumentID) {
    guard let document = documents.documents[id], !isOnItsWay(id) else { return }
    if isProvider(document.container) {
      callProvider(id)
    } else {
      download(document, isForDocumentOnly: true)
    }
  }

  /// Does nothing while the provider works on the document.
  mutating func callProvider(_ id: DocumentID) {
    guard let app = documents.documents[id]?.container, isProvider(app) else { return }
    guard !callbacks.contains(where: { $0.kind == .document(id) && $0.phase == .working }) else {
      return
    }
    if let refusal = runRefusal(app) {
      return emit(.app(app, .notRun(.document, refusal)))
    }
    startCallback(app.number, .document(id))
  }

  /// Uploads what was written here, or downloads what is missing. A user waits for downloads only.
  mutating func provide(_ id: DocumentID) {
    guard let document = documents.documents[id] else { return }
    let isUnderWay = service.transfers.contains {
      $0.request.document == id && $0.app == document.container && !$0.phase.hasEnded
    }
    guard !isUnderWay else { return }
    if document.isUnsent, !document.isStale {
      let request = TransferRequest(
        session: "documents", name: document.name, direction: .upload,
        bytes: document.body.bytes, document: id)
      guard let transfer = queue(request, of: document.container.number) else { return }
      if let place = service.index(of: transfer) {
        service.transfers[place].revision = document.revision
      }
      emit(.document(id, .uploading(transfer, revision: document.revision)))
    } else {
      download(document, isForDocumentOnly: false)
    }
  }

  /// A provider that the user opens uploads what it could not before.
  mutating func uploadUnsent(_ index: Int) {
    guard isProvider(AppID(index)) else { return }
    let unsent = documents.documents.values.filter {
      $0.container.number == index && $0.isUnsent && !$0.isStale
    }
    for id in unsent.map(\.id).sorted(by: { $0.number < $1.number }) { provide(id) }
  }

  /// Content is being downloaded or written, or its provider was asked for it.
  func isOnItsWay(_ id: DocumentID) -> Bool {
    documents.documents[id]?.arrived != nil || callbacks.contains { $0.kind == .document(id) }
      || service.transfers.contains {
        $0.request.document == id && $0.request.direction == .download && !$0.phase.hasEnded
      }
  }

  mutating func documentSent(_ transfer: Transfer) {
    guard let id = transfer.request.document, let revision = transfer.revision,
      let document = documents.documents[id],
      case .ended(.finished) = transfer.phase
    else { return }
    sent(id, revision)
    emit(.document(id, .uploaded(revision: revision)))
    // Written again meanwhile.
    if document.revision != revision { callProvider(id) }
  }

  /// The content has arrived or will not: waiting uses go on with what there is.
  mutating func contentSettled(_ id: DocumentID) {
    for use in sortedUses where uses[use]?.phase == .lacksContent(id) { goOn(use) }
  }

  private var sortedUses: [AccessID] { uses.keys.sorted { $0.number < $1.number } }

  mutating func giveUpWaiting(for id: DocumentID) {
    for use in sortedUses {
      guard let running = uses[use], running.use.wants.contains(where: { $0.document == id })
      else { continue }
      switch running.phase {
      case .lacksContent, .waits: giveUp(use)
      case .works, .scribbles: break
      }
    }
  }

  mutating func dropUses(of app: AppID) {
    for id in sortedUses {
      guard let running = uses[id], running.app == app else { continue }
      uses[id] = nil
      emit(.document(running.use.wants[0].document, .givenUp(by: app)))
    }
  }
}
