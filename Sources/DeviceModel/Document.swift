package import Primitives

/// One unit to its user, kept the same on several devices (Apple, "File System Programming Guide").
package struct Document: Hashable, Codable, Sendable {
  /// What of it is on this phone.
  package enum Content: Hashable, Codable, Sendable {
    /// Metadata only.
    case placeholder
    /// On its way; the placeholder is all there is until then.
    case coming(TransferID)
    case local
  }

  package let id: DocumentID
  /// The app in whose container it lies.
  package internal(set) var container: AppID
  package internal(set) var name: String
  /// Its size, here or, for a placeholder, elsewhere.
  package internal(set) var bytes: Int64
  package internal(set) var modifiedAt: Instant
  package internal(set) var hasThumbnail: Bool
  /// What of it is here.
  package internal(set) var content: Content
  /// Which version is here, and which the other devices have.
  package internal(set) var revision: Int
  package internal(set) var remoteRevision: Int
  /// Changed here, and the service has not heard so.
  package internal(set) var isUnsent = false
  /// How large the download is that waits to be written.
  var arrivedBytes: Int64 = 0
  /// The size of the newest version elsewhere, which a download of a difference does not tell.
  var remoteBytes: Int64?
  /// Who uses it and who waits.
  package internal(set) var coordination = Coordination()
  /// What is in it, and in the newest version elsewhere; nil where only the size is known.
  package internal(set) var text: DocumentText?
  var remoteText: DocumentText?
  /// Changed in two places: the versions that do not stand, oldest first; nil for none.
  package internal(set) var versions: [DocumentVersion]?

  /// A newer version exists elsewhere.
  package var isStale: Bool { revision < remoteRevision }

  /// All of it, as far as it is known here.
  package internal(set) var body: DocumentBody {
    get { text.map { DocumentBody(text: $0) } ?? DocumentBody(bytes: bytes) }
    set { (bytes, text) = (newValue.bytes, newValue.text) }
  }

  /// The newest version elsewhere, as far as it is known.
  var remoteBody: DocumentBody? {
    remoteText.map { DocumentBody(text: $0) } ?? remoteBytes.map { DocumentBody(bytes: $0) }
  }

  /// A small picture, which comes with the metadata.
  package var thumbnail: [UInt8]? {
    guard hasThumbnail else { return nil }
    return content == .local ? body.thumbnail : (remoteBody ?? body).thumbnail
  }

  /// Keeps what does not stand, and no more than so many of it.
  mutating func keep(_ version: DocumentVersion, atMost most: Int) {
    versions = ((versions ?? []) + [version]).suffix(most)
  }
}

/// Who may use a document now: one writer alone, or any number of readers; the others wait in the
/// order in which they asked, so that nobody waits forever.
package struct Coordination: Hashable, Codable, Sendable {
  package enum Kind: Hashable, Codable, Sendable {
    case read
    case write
  }

  /// An app, or the service that syncs.
  package enum Party: Hashable, Codable, Sendable {
    case app(AppID)
    case syncService
  }

  package struct Access: Hashable, Codable, Sendable {
    package let id: AccessID
    package let party: Party
    package let kind: Kind
  }

  package enum Holders: Hashable, Codable, Sendable {
    case nobody
    case readers([Access])
    case writer(Access)
  }

  package private(set) var holders = Holders.nobody
  /// In the order in which they asked.
  package private(set) var waiting: [Access] = []

  /// Asks; true if access is granted at once, else it waits.
  mutating func request(_ access: Access) -> Bool {
    switch (holders, access.kind) {
    case (.nobody, .read) where waiting.isEmpty:
      holders = .readers([access])
      return true
    case (.nobody, .write) where waiting.isEmpty:
      holders = .writer(access)
      return true
    // Behind a writer that waits, readers wait too.
    case (.readers(let readers), .read) where waiting.isEmpty:
      holders = .readers(readers + [access])
      return true
    case (.nobody, _), (.readers, _), (.writer, _):
      waiting.append(access)
      return false
    }
  }

  /// Whether the service that syncs is at it.
  var isSyncServiceWriting: Bool {
    if case .writer(let access) = holders { access.party == .syncService } else { false }
  }

  /// Everybody who uses it or waits for it.
  var accesses: [Access] {
    switch holders {
    case .nobody: waiting
    case .readers(let readers): readers + waiting
    case .writer(let writer): [writer] + waiting
    }
  }

  /// Whether it is in a state that it comes to by itself: what was decoded may be anything.
  var isSound: Bool {
    switch holders {
    case .nobody: waiting.isEmpty
    case .readers(let readers): !readers.isEmpty && readers.allSatisfy { $0.kind == .read }
    case .writer(let writer): writer.kind == .write
    }
  }

  /// The access under way with this id.
  func held(_ id: AccessID) -> Access? {
    switch holders {
    case .nobody: nil
    case .readers(let readers): readers.first { $0.id == id }
    case .writer(let writer): writer.id == id ? writer : nil
    }
  }

  /// Ends every access of that sort, granted or waiting, and answers whose turn it is now.
  mutating func end(where isOver: (Access) -> Bool) -> [Access] {
    waiting.removeAll(where: isOver)
    switch holders {
    case .readers(let readers):
      let left = readers.filter { !isOver($0) }
      holders = left.isEmpty ? .nobody : .readers(left)
    case .writer(let writer) where isOver(writer):
      holders = .nobody
    case .writer, .nobody:
      break
    }
    return grantNext()
  }

  private mutating func grantNext() -> [Access] {
    switch (holders, waiting.first?.kind) {
    case (.nobody, .write?):
      let writer = waiting.removeFirst()
      holders = .writer(writer)
      return [writer]
    case (.nobody, .read?), (.readers, .read?):
      let count = waiting.firstIndex { $0.kind == .write } ?? waiting.count
      let granted = Array(waiting.prefix(count))
      waiting.removeFirst(count)
      if case .readers(let readers) = holders {
        holders = .readers(readers + granted)
      } else {
        holders = .readers(granted)
      }
      return granted
    case (.writer, _), (_, nil), (.readers, .write?):
      return []
    }
  }
}

/// Lasting access to a document outside of an app's own container: the user granted it once, and it
/// holds over restarts. What an app stores in its state is this, not a path.
package struct Bookmark: Hashable, Sendable {
  /// Eight bytes, to be kept as `StateValue.data`.
  package let data: [UInt8]

  package init(data: [UInt8]) { self.data = data }

  init(grant: UInt64) {
    data = (0..<8).map { UInt8(truncatingIfNeeded: grant >> (8 * UInt64($0))) }
  }

  /// The grant it stands for, if it has the right form.
  var grant: UInt64? {
    guard data.count == 8 else { return nil }
    return data.enumerated().reduce(0) { $0 | UInt64($1.element) << (8 * UInt64($1.offset)) }
  }
}

/// What happens to documents.
package enum DocumentEvent: Hashable, Sendable {
  // An app, while it runs.
  case created(by: AppID, name: String, bytes: Int64)
  case renamed(DocumentID, by: AppID, to: String)
  case deleted(DocumentID, by: AppID)
  case accessRequested(DocumentID, by: AppID, Coordination.Kind)
  /// The end of a read, or of a write that left so many bytes.
  case accessEnded(DocumentID, AccessID, bytes: Int64)
  /// What is only a placeholder is wanted whole.
  case contentRequested(DocumentID, by: AppID)
  case bookmarkResolved(by: AppID, Bookmark)
  /// It keeps one in its own state, for a document that it may use.
  case bookmarkKept(DocumentID, by: AppID, at: StatePath, key: String)
  case used(DocumentUse, by: AppID)
  case listed(by: AppID)
  /// The user chose it for an app that does not contain it.
  case picked(DocumentID, by: AppID)

  // The service.
  case announced(in: AppID, name: String, bytes: Int64, modifiedAt: Instant, hasThumbnail: Bool)
  case changedElsewhere(DocumentID, bytes: Int64)
  case rewrittenElsewhere(DocumentID, DocumentText)
  case deletedElsewhere(DocumentID)
  case uploaded(DocumentID, revision: Int)
}

/// Steps of a document.
package enum DocumentStep: Hashable, Sendable {
  case appeared(Document.Content)
  case renamed(String)
  case deleted
  case granted(Coordination.Access)
  case waits(Coordination.Access)
  /// A new version is here, whole.
  case changed(revision: Int, bytes: Int64)
  /// A request to the service.
  case uploadNeeded(revision: Int)
  case contentComing(TransferID)
  /// It was changed here and elsewhere; the later write stands, the other is kept.
  case conflict(kept: DocumentVersion)
  case referenced(by: AppID, Bookmark)
  /// What an app's edit has changed.
  case edited(by: AppID, CollectionDifference<String>)
  case chosen(VersionChoice)
  case copied(to: DocumentID, in: AppID)
  case moved(to: AppID)
  /// Its provider sends what was written here; and has sent it.
  case uploading(TransferID, revision: Int)
  case uploaded(revision: Int)
  case listed(by: AppID, DocumentListing)
  /// To wait would be to wait forever: who waits for what, around to the first.
  case deadlock([DocumentWait])
  /// An app lets go without having had all that it wanted.
  case givenUp(by: AppID)
}

/// The documents of a phone.
package struct DocumentStore: Codable, Equatable, Sendable {
  package internal(set) var documents: [DocumentID: Document] = [:]
  /// What users granted, by number.
  var grants: [UInt64: Grant] = [:]
  private var numbering = Numbering()
  private var accesses = Numbering()
  private var grantNumbering = Numbering()

  struct Grant: Hashable, Codable, Sendable {
    let app: AppID
    let document: DocumentID
  }

  /// Documents that somebody uses, in the order of their numbers.
  var busy: [DocumentID] {
    documents.values.filter { $0.coordination.holders != .nobody }.map(\.id)
      .sorted { $0.number < $1.number }
  }

  /// Whether its numbers are such as it gives itself: what was decoded may be anything.
  var isSound: Bool {
    let held = documents.values.flatMap { $0.coordination.accesses }.map(\.id.number)
    return numbering.isSound(after: documents.keys.lazy.map(\.number))
      && grantNumbering.isSound(after: grants.keys) && accesses.isSound(after: held)
      && Set(held).count == held.count
  }

  mutating func nextID() -> DocumentID { DocumentID(numbering.next()) }
  mutating func nextAccess() -> AccessID { AccessID(number: accesses.next()) }

  /// The bookmark of an app for a document; one per pair.
  mutating func grant(_ document: DocumentID, to app: AppID) -> Bookmark {
    let wanted = Grant(app: app, document: document)
    if let known = grants.first(where: { $0.value == wanted }) {
      return Bookmark(grant: known.key)
    }
    let number = grantNumbering.next()
    grants[number] = wanted
    return Bookmark(grant: number)
  }

  /// The document a bookmark leads an app to, if it was granted and is still there.
  package func resolve(_ bookmark: Bookmark, by app: AppID) -> DocumentID? {
    guard let grant = bookmark.grant.flatMap({ grants[$0] }), grant.app == app,
      documents[grant.document] != nil
    else { return nil }
    return grant.document
  }

  /// The metadata of an app's own documents and of those it may refer to, by name: also of those
  /// whose content is not here.
  package func listing(for app: AppID, references: Set<DocumentID>) -> [Document] {
    documents.values.filter { $0.container == app || references.contains($0.id) }
      .sorted { ($0.name, $0.id.number) < ($1.name, $1.id.number) }
  }
}
