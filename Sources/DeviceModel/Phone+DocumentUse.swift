import Primitives

/// How apps use documents; and providers, which are apps that transfer the content of the documents
/// in their containers.
extension Phone {
  // MARK: A use

  /// Returns false if the use has already ended in failure.
  @discardableResult
  mutating func begin(
    _ use: DocumentUse, by app: AppID, for callback: CallbackID?, _ effects: inout [PhoneEffect]
  ) -> Bool {
    let isTooMuch = use.wants.isEmpty || uses.count >= limits.documentUses
    if let obstacle = obstacle(to: app) ?? (isTooMuch ? .limitReached : nil) {
      ignore(obstacle, &effects)
      return false
    }
    let id = AccessID(number: useNumbering.next())
    uses[id] = RunningUse(app: app, use: use, callback: callback)
    goOn(id, &effects)
    return uses[id] != nil
  }

  /// Fetches missing content one document at a time, then requests access to all.
  private mutating func goOn(_ id: AccessID, _ effects: inout [PhoneEffect]) {
    guard let running = uses[id] else { return }
    for want in running.use.wants {
      let obstacle =
        running.use.edit == .imported
        ? obstacle(to: running.app, picking: want.document)
        : obstacle(to: running.app, using: want.document)
      if let obstacle { ignore(obstacle, &effects) }
      guard obstacle == nil, let document = documents.documents[want.document] else {
        return giveUp(id, &effects)
      }
      guard lacksContent(document, want, running) else { continue }
      guard uses[id]?.asked.insert(document.id).inserted == true else {
        return giveUp(id, &effects)
      }
      uses[id]?.phase = .lacksContent(document.id)
      bringContent(document.id, &effects)
      // Do not wait for content that does not come.
      if !isOnItsWay(document.id) { goOn(id, &effects) }
      return
    }
    guard running.use.skipsCoordination != true else { return scribble(id, &effects) }
    uses[id]?.phase = .waits
    request(
      Coordination.Access(id: id, party: .app(running.app), wants: running.use.wants), &effects)
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

  private mutating func scribble(_ id: AccessID, _ effects: inout [PhoneEffect]) {
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

  mutating func documentWorked(_ id: AccessID, _ effects: inout [PhoneEffect]) {
    guard let running = uses[id] else { return }
    switch running.phase {
    case .lacksContent, .waits: return
    case .works: break
    case .scribbles(let revision, let isDisturbed):
      let wanted = running.use.wants[0].document
      let isWhole = documents.documents[wanted]?.revision == revision
      if isDisturbed || !isWhole || coordination.writer(of: wanted) != nil {
        corrupt(wanted, running, &effects)
        return end(id, isGivenUp: false, &effects)
      }
    }
    for want in running.use.wants {
      if want.isWriting { make(running.use.edit, in: want.document, by: running.app, &effects) }
      switch running.use.edit {
      case .copied(let name) where !want.isWriting: copy(want.document, to: name, &effects)
      case .imported: importCopy(want.document, by: running.app, &effects)
      case .copied, .nothing, .size, .line, .undo, .choose, .moved: break
      }
    }
    end(id, isGivenUp: false, &effects)
  }

  /// Syncs to other devices as a new version.
  private mutating func corrupt(
    _ id: DocumentID, _ running: RunningUse, _ effects: inout [PhoneEffect]
  ) {
    guard let document = documents.documents[id] else { return }
    emit(.document(id, .corrupted(by: running.app)), &effects)
    write(id, DocumentBody(bytes: document.bytes, isCorrupt: true), &effects)
  }

  private mutating func giveUp(_ id: AccessID, _ effects: inout [PhoneEffect]) {
    guard let running = uses[id] else { return }
    emit(.document(running.use.wants[0].document, .givenUp(by: running.app)), &effects)
    end(id, isGivenUp: true, &effects)
  }

  private mutating func end(
    _ id: AccessID, isGivenUp: Bool, _ effects: inout [PhoneEffect]
  ) {
    guard let callback = uses.removeValue(forKey: id)?.callback else {
      return endAccesses(&effects) { $0.id == id }
    }
    endAccesses(&effects) { $0.id == id }
    useEnded(callback, isGivenUp: isGivenUp, &effects)
  }

  // MARK: Edits

  private mutating func make(
    _ edit: DocumentEdit, in id: DocumentID, by app: AppID, _ effects: inout [PhoneEffect]
  ) {
    guard let document = documents.documents[id] else { return }
    switch edit {
    case .nothing, .copied, .imported: break
    case .size(let bytes): rewrite(id, DocumentBody(bytes: bytes), by: app, &effects)
    case .line(let number, let words):
      var text = document.text ?? DocumentText()
      guard text.set(line: number, to: words) else { return ignore(.unknownLine, &effects) }
      rewrite(id, DocumentBody(text: text), by: app, &effects)
    case .undo:
      guard let last = apps[app.number].process.undo[id]?.popLast() else {
        return ignore(.nothingToUndo, &effects)
      }
      tellEdit(id, last, by: app, &effects)
      write(id, last, &effects)
    case .choose(let choice): choose(choice, of: document, &effects)
    case .moved(let name): move(document, to: name, from: app, &effects)
    }
  }

  /// Can be undone until the app's process ends.
  private mutating func rewrite(
    _ id: DocumentID, _ body: DocumentBody, by app: AppID, _ effects: inout [PhoneEffect]
  ) {
    guard let before = documents.documents[id]?.body else { return }
    let kept = apps[app.number].process.undo[id] ?? []
    apps[app.number].process.undo[id] = (kept + [before]).suffix(limits.undoneEdits)
    tellEdit(id, body, by: app, &effects)
    write(id, body, &effects)
  }

  private func tellEdit(
    _ id: DocumentID, _ body: DocumentBody, by app: AppID, _ effects: inout [PhoneEffect]
  ) {
    guard let text = body.text else { return }
    let difference = text.difference(from: documents.documents[id]?.text ?? DocumentText())
    emit(.document(id, .edited(by: app, difference)), &effects)
  }

  private mutating func choose(
    _ choice: VersionChoice, of document: Document, _ effects: inout [PhoneEffect]
  ) {
    let others = document.versions ?? []
    switch choice {
    case .revision(let revision):
      let chosen = others.last { $0.revision == revision }
      guard !others.isEmpty, chosen != nil || revision == document.revision else {
        return ignore(.unknownVersion, &effects)
      }
      documents.documents[document.id]?.versions = nil
      emit(.document(document.id, .chosen(choice)), &effects)
      if let chosen { write(document.id, chosen.body, &effects) }
    case .all:
      guard !others.isEmpty else { return ignore(.unknownVersion, &effects) }
      documents.documents[document.id]?.versions = nil
      emit(.document(document.id, .chosen(choice)), &effects)
      for other in others {
        let name = "\(document.name) (revision \(other.revision))"
        add(name, other.body, to: document.container, &effects)
      }
    }
  }

  // MARK: From container to container

  private func container(_ name: String, _ effects: inout [PhoneEffect]) -> AppID? {
    guard let app = app(named: name), app.state != .uninstalled else {
      ignore(.unknownApp, &effects)
      return nil
    }
    return app.id
  }

  private mutating func copy(
    _ id: DocumentID, to name: String, _ effects: inout [PhoneEffect]
  ) {
    guard let document = documents.documents[id], let app = container(name, &effects),
      let copy = add(document.name, document.body, to: app, &effects)
    else { return }
    emit(.document(id, .copied(to: copy, in: app)), &effects)
  }

  private mutating func importCopy(
    _ id: DocumentID, by app: AppID, _ effects: inout [PhoneEffect]
  ) {
    guard let document = documents.documents[id],
      let copy = add(document.name, document.body, to: app, isTemporary: true, &effects)
    else { return }
    emit(.document(id, .imported(as: copy, by: app)), &effects)
  }

  private mutating func move(
    _ document: Document, to name: String, from app: AppID, _ effects: inout [PhoneEffect]
  ) {
    guard let target = container(name, &effects) else { return }
    guard target != document.container else { return ignore(.alreadySo, &effects) }
    documents.documents[document.id]?.container = target
    documents.documents[document.id]?.isUnsent = true
    documents.forgetReference(of: target, to: document.id)
    emit(.document(document.id, .moved(to: target)), &effects)
    refer(app, to: document.id, &effects)
    needUpload(document.id, &effects)
  }

  // MARK: Content and providers

  /// Apps that transfer the content of the documents in their container themselves.
  package func isProvider(_ app: AppID) -> Bool { containerKind(app) == .provider }

  func containerKind(_ app: AppID) -> DocumentContainer {
    self[app]?.definition.container ?? .cloud
  }

  /// By the container's provider, or else by the system.
  mutating func bringContent(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    guard let document = documents.documents[id], !isOnItsWay(id) else { return }
    if isProvider(document.container) {
      callProvider(id, &effects)
    } else {
      download(document, isForDocumentOnly: true, &effects)
    }
  }

  /// Does nothing while the provider works on the document.
  mutating func callProvider(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    guard let app = documents.documents[id]?.container, isProvider(app) else { return }
    guard !callbacks.contains(where: { $0.kind == .document(id) && $0.phase == .working }) else {
      return
    }
    if let refusal = providerRefusal(app.number) {
      return emit(.app(app, .notRun(.document, refusal)), &effects)
    }
    startCallback(app.number, .document(id), &effects)
  }

  private func providerRefusal(_ index: Int) -> LaunchRefusal? {
    if apps[index].state == .uninstalled { return .notInstalled }
    if apps[index].state == .forceQuit { return .forceQuit }
    if lock == .beforeFirstUnlock { return .beforeFirstUnlock }
    return apps[index].callbackCount < limits.callbacksPerApp ? nil : .tooManyCallbacks
  }

  /// Uploads what was written here, or downloads what is missing. A user waits for downloads only.
  mutating func provide(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    guard let document = documents.documents[id] else { return }
    let isUnderWay = service.transfers.contains {
      $0.request.document == id && $0.app == document.container && !$0.phase.hasEnded
    }
    guard !isUnderWay else { return }
    if document.isUnsent, !document.isStale {
      let request = TransferRequest(
        session: "documents", name: document.name, direction: .upload,
        bytes: document.body.bytes, document: id)
      guard let transfer = queue(request, of: document.container.number, &effects) else { return }
      if let place = service.index(of: transfer) {
        service.transfers[place].revision = document.revision
      }
      emit(
        .document(id, .uploading(transfer, revision: document.revision)), &effects)
    } else {
      download(document, isForDocumentOnly: false, &effects)
    }
  }

  /// Content is being downloaded or written, or its provider was asked for it.
  func isOnItsWay(_ id: DocumentID) -> Bool {
    documents.documents[id]?.arrived != nil || callbacks.contains { $0.kind == .document(id) }
      || service.transfers.contains {
        $0.request.document == id && $0.request.direction == .download && !$0.phase.hasEnded
      }
  }

  mutating func documentSent(_ transfer: Transfer, _ effects: inout [PhoneEffect]) {
    guard let id = transfer.request.document, let revision = transfer.revision,
      let document = documents.documents[id],
      case .ended(.finished) = transfer.phase
    else { return }
    sent(id, revision, &effects)
    emit(.document(id, .uploaded(revision: revision)), &effects)
    // Written again meanwhile.
    if document.revision != revision { callProvider(id, &effects) }
  }

  /// The content has arrived or will not: waiting uses go on with what there is.
  mutating func contentSettled(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    for use in sortedUses where uses[use]?.phase == .lacksContent(id) { goOn(use, &effects) }
  }

  private var sortedUses: [AccessID] { uses.keys.sorted { $0.number < $1.number } }

  mutating func giveUpWaiting(for id: DocumentID, _ effects: inout [PhoneEffect]) {
    for use in sortedUses {
      guard let running = uses[use], running.use.wants.contains(where: { $0.document == id })
      else { continue }
      switch running.phase {
      case .lacksContent, .waits: giveUp(use, &effects)
      case .works, .scribbles: break
      }
    }
  }

  mutating func dropUses(of app: AppID, _ effects: inout [PhoneEffect]) {
    for id in sortedUses {
      guard let running = uses[id], running.app == app else { continue }
      uses[id] = nil
      emit(.document(running.use.wants[0].document, .givenUp(by: app)), &effects)
    }
  }
}
