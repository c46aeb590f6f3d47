import Primitives

/// What apps do with documents, one after the other and under coordination; and providers, which
/// are apps that bring and take the content of the documents in their containers.
extension Phone {
  // MARK: A use

  /// Begins one. False if it is over already, as nothing came of it.
  @discardableResult
  mutating func begin(
    _ use: DocumentUse, by app: AppID, for callback: CallbackID?, _ effects: inout [PhoneEffect]
  ) -> Bool {
    guard isAppRunning(app, &effects) else { return false }
    guard !use.wants.isEmpty, uses.count < limits.documentUses else {
      ignore(.limitReached, &effects)
      return false
    }
    let number = useNumbering.next()
    uses[number] = RunningUse(app: app, use: use, callback: callback)
    goOn(number, &effects)
    return uses[number] != nil
  }

  /// Asks for the next document, or ends a use that has had them all.
  private mutating func goOn(_ number: UInt64, _ effects: inout [PhoneEffect]) {
    guard let running = uses[number] else { return }
    guard running.step < running.use.wants.count else { return complete(number, &effects) }
    let want = running.use.wants[running.step]
    let id = want.document
    // What is imported was chosen by its user just now.
    let isImport = running.use.edit == .copied(to: apps[running.app.number].definition.name)
    guard isImport && documents.documents[id] != nil || mayUse(id, running.app, &effects),
      let document = documents.documents[id]
    else { return giveUp(number, &effects) }
    guard document.content == .local else {
      uses[number]?.phase = .lacksContent(id)
      demandContent(id, &effects)
      if !isOnItsWay(id) { giveUp(number, &effects) }
      return
    }
    guard document.coordination.waiting.count < limits.waitingAccesses else {
      ignore(.limitReached, &effects)
      return giveUp(number, &effects)
    }
    let access = Coordination.Access(
      id: documents.nextAccess(), party: .app(running.app), kind: want.isWriting ? .write : .read)
    var coordination = document.coordination
    if !coordination.request(access), let circle = deadlock(of: number, at: id) {
      emit(.document(id, .deadlock(circle)), &effects)
      return giveUp(number, &effects)
    }
    uses[number]?.phase = .waits(id, access.id)
    usesOfAccesses[access.id] = number
    request(id, access, &effects)
  }

  /// Access was granted.
  mutating func workOn(_ access: AccessID, _ number: UInt64) {
    guard let running = uses[number] else { return }
    uses[number]?.phase = .works(access)
    timers.set(.documentUse(number), at: now + max(running.use.time, .zero))
  }

  /// Whether an app is at a document, or soon will be: that has an end, so the phone stays awake.
  var isUsingDocuments: Bool {
    uses.values.contains { use in
      switch use.phase {
      case .waits, .works: true
      case .lacksContent: false
      }
    }
  }

  /// The work on one of the documents is done.
  mutating func documentWorked(_ number: UInt64, _ effects: inout [PhoneEffect]) {
    guard case .works? = uses[number]?.phase else { return }
    uses[number]?.step += 1
    goOn(number, &effects)
  }

  private mutating func complete(_ number: UInt64, _ effects: inout [PhoneEffect]) {
    guard let running = uses[number] else { return }
    for want in running.use.wants where want.isWriting {
      make(running.use.edit, in: want.document, by: running.app, &effects)
    }
    for want in running.use.wants where !want.isWriting {
      if case .copied(let name) = running.use.edit {
        copy(want.document, to: name, &effects)
      }
    }
    letGo(number, &effects)
    useEnded(running.callback, isGivenUp: false, &effects)
  }

  private mutating func giveUp(_ number: UInt64, _ effects: inout [PhoneEffect]) {
    guard let running = uses[number] else { return }
    emit(.document(running.wanted, .givenUp(by: running.app)), &effects)
    letGo(number, &effects)
    useEnded(running.callback, isGivenUp: true, &effects)
  }

  private mutating func letGo(_ number: UInt64, _ effects: inout [PhoneEffect]) {
    let wants = uses.removeValue(forKey: number)?.use.wants ?? []
    let accesses = forgetAccesses(of: number)
    for want in wants { end(want.document, &effects) { accesses.contains($0.id) } }
  }

  private mutating func forgetAccesses(of number: UInt64) -> Set<AccessID> {
    let accesses = usesOfAccesses.filter { $0.value == number }.keys
    for access in accesses { usesOfAccesses[access] = nil }
    return Set(accesses)
  }

  /// Whoever would wait for itself, over others that wait: who for what, around to the first; nil
  /// if to wait has an end.
  private func deadlock(of number: UInt64, at id: DocumentID) -> [DocumentWait]? {
    var seen: Set<UInt64> = []
    func search(_ use: UInt64, _ id: DocumentID, before access: AccessID?) -> [DocumentWait]? {
      guard let app = uses[use]?.app else { return nil }
      let ahead = documents.documents[id]?.coordination.accesses.prefix { $0.id != access } ?? []
      for other in ahead.compactMap({ usesOfAccesses[$0.id] }) {
        if other == number { return [DocumentWait(app: app, document: id)] }
        guard seen.insert(other).inserted, case .waits(let next, let place)? = uses[other]?.phase,
          let rest = search(other, next, before: place)
        else { continue }
        return [DocumentWait(app: app, document: id)] + rest
      }
      return nil
    }
    return search(number, id, before: nil)
  }

  // MARK: Edits

  private mutating func make(
    _ edit: DocumentEdit, in id: DocumentID, by app: AppID, _ effects: inout [PhoneEffect]
  ) {
    guard let document = documents.documents[id] else { return }
    switch edit {
    case .nothing, .copied: break
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

  /// An edit, which can be taken back for as long as its app runs.
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

  /// The app with that name, if it is there.
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

  private mutating func move(
    _ document: Document, to name: String, from app: AppID, _ effects: inout [PhoneEffect]
  ) {
    guard let target = container(name, &effects) else { return }
    guard target != document.container else { return ignore(.alreadySo, &effects) }
    let bookmark = documents.grant(document.id, to: app)
    apps[app.number].process.references.insert(document.id)
    documents.documents[document.id]?.container = target
    documents.documents[document.id]?.isUnsent = true
    emit(.document(document.id, .moved(to: target)), &effects)
    emit(.document(document.id, .referenced(by: app, bookmark)), &effects)
    needUpload(document.id, &effects)
  }

  // MARK: Content and providers

  /// Whether an app brings and takes the content of the documents in its container.
  package func isProvider(_ app: AppID) -> Bool {
    self[app]?.definition.script.onDocument != nil
  }

  /// Has the content brought: by the provider of its container, which is called for that, or by the
  /// system.
  mutating func demandContent(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    guard let document = documents.documents[id], isProvider(document.container) else {
      return fetchContent(id, &effects)
    }
    guard document.isStale else { return ignore(.alreadySo, &effects) }
    callProvider(id, &effects)
  }

  /// Calls the provider for a document, unless it is at it already.
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

  /// A provider does what it was called for: sends what was written here, or brings what is not
  /// here. Its user waits for the one, and not for the other.
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
    } else if document.isStale {
      let request = TransferRequest(
        session: "documents", name: document.name,
        bytes: document.remoteBody?.bytes ?? document.bytes, document: id)
      guard
        let transfer = queue(
          request, of: document.container.number, &effects, fromForeground: true)
      else { return }
      if document.content == .placeholder { documents.documents[id]?.content = .coming(transfer) }
      emit(.document(id, .contentComing(transfer)), &effects)
    }
  }

  /// Whether the content of a placeholder is being brought.
  private func isOnItsWay(_ id: DocumentID) -> Bool {
    if case .coming? = documents.documents[id]?.content { return true }
    return callbacks.contains { $0.kind == .document(id) }
  }

  /// A provider's call has ended, however. Where it has not set a download going, nobody is to wait
  /// for one.
  mutating func providerCallEnded(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    if documents.documents[id]?.content == .placeholder { contentFailed(id, &effects) }
  }

  /// A provider's upload has ended.
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

  /// The content of a document is here: whoever waits for it goes on.
  mutating func contentCame(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    for number in lacking(id) { goOn(number, &effects) }
  }

  /// It does not come.
  mutating func contentFailed(_ id: DocumentID, _ effects: inout [PhoneEffect]) {
    for number in lacking(id) { giveUp(number, &effects) }
  }

  private func lacking(_ id: DocumentID) -> [UInt64] {
    uses.filter { $0.value.phase == .lacksContent(id) }.keys.sorted()
  }

  /// The document is gone.
  mutating func giveUpWaiting(for id: DocumentID, _ effects: inout [PhoneEffect]) {
    contentFailed(id, &effects)
    for number in uses.keys.sorted() {
      if case .waits(id, _)? = uses[number]?.phase { giveUp(number, &effects) }
    }
  }

  /// A process is suspended or ends, and its uses with it.
  mutating func dropUses(of app: AppID, _ effects: inout [PhoneEffect]) {
    for number in uses.keys.sorted() {
      guard let use = uses[number], use.app == app else { continue }
      uses[number] = nil
      _ = forgetAccesses(of: number)
      emit(.document(use.wanted, .givenUp(by: app)), &effects)
    }
  }
}
