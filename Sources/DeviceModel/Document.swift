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
  /// Where it came to be, if that was on another phone of the same account.
  package var origin: DocumentOrigin?
  /// The app in whose container it lies.
  package internal(set) var container: AppID
  package internal(set) var name: String
  /// Its size, here or, for a placeholder, elsewhere.
  package internal(set) var bytes: Int64
  package internal(set) var modifiedAt: Instant
  /// What of it is here.
  package internal(set) var content: Content
  /// Which version is here, and which the other devices have.
  package internal(set) var revision: Int
  package internal(set) var remoteRevision: Int
  /// Changed here, and the service has not heard so.
  package internal(set) var isUnsent = false
  /// How large the download is that waits to be written; nil for none.
  var arrived: Int64?
  /// The newest version elsewhere, as far as it is known: a download of a difference does not tell.
  var remoteBody: DocumentBody?
  /// When that was written; nil where it is not known.
  var remoteModifiedAt: Instant?
  /// Its name or container is another than the service knows; nil for no.
  package internal(set) var hasNewPlace: Bool?
  /// A copy that was imported, and goes away with its app's process.
  var isTemporary: Bool?
  /// Two have written at once. What was stored before there was such a thing is whole.
  var isCorrupt: Bool?
  /// What is in it; nil where only the size is known.
  package internal(set) var text: DocumentText?
  /// Changed in two places: the versions that do not stand, oldest first; nil for none.
  package internal(set) var versions: [DocumentVersion]?

  /// A newer version exists elsewhere.
  package var isStale: Bool { revision < remoteRevision }

  /// All of it, as far as it is known here.
  package internal(set) var body: DocumentBody {
    get { DocumentBody(bytes: bytes, text: text, isCorrupt: isCorrupt) }
    set { (bytes, text, isCorrupt) = (newValue.bytes, newValue.text, newValue.isCorrupt) }
  }

  /// A small picture, which comes with the metadata.
  package var thumbnail: [UInt8] { (content == .local ? body : remoteBody ?? body).thumbnail }

  /// By which the picker knows what an app can open: what is behind the last dot of its name.
  package var type: String? {
    name.lastIndex(of: ".").map { String(name[name.index(after: $0)...]) }
  }

  /// Keeps what does not stand, and no more than so many of it.
  mutating func keep(_ version: DocumentVersion, atMost most: Int) {
    versions = ((versions ?? []) + [version]).suffix(most)
  }
}

/// Who may use which documents: everybody, in the order in which they asked, in whose way nobody is
/// who asked before. One writer alone, or any number of readers. Whoever wants several documents
/// gets all of them together or waits: nobody holds one while waiting for another.
package struct Coordination: Hashable, Sendable {
  /// An app, or the service that syncs.
  package enum Party: Hashable, Sendable {
    case app(AppID)
    case syncService
  }

  package struct Access: Hashable, Sendable {
    package let id: AccessID
    package let party: Party
    package let wants: [DocumentUse.Want]

    fileprivate func isInTheWay(of other: Access) -> Bool {
      wants.contains { mine in
        other.wants.contains {
          $0.document == mine.document && ($0.isWriting || mine.isWriting)
        }
      }
    }

    func isWriting(_ document: DocumentID) -> Bool {
      wants.contains { $0.document == document && $0.isWriting }
    }
  }

  /// Granted or waiting, in the order in which they asked.
  package private(set) var accesses: [Access] = []

  package var granted: [Access] { accesses.indices.filter(isGranted).map { accesses[$0] } }

  private func isGranted(_ place: Int) -> Bool {
    !accesses[..<place].contains { $0.isInTheWay(of: accesses[place]) }
  }

  /// Who writes a document now.
  func writer(of document: DocumentID) -> Access? {
    accesses.first { $0.isWriting(document) }.flatMap { granted.contains($0) ? $0 : nil }
  }

  /// Asks; true if access is granted at once, else it waits.
  mutating func request(_ access: Access) -> Bool {
    accesses.append(access)
    return isGranted(accesses.count - 1)
  }

  /// Ends every access of that sort, granted or waiting, and answers whose turn it is now.
  mutating func end(where isOver: (Access) -> Bool) -> [Access] {
    let before = Set(granted.map(\.id))
    accesses.removeAll(where: isOver)
    return granted.filter { !before.contains($0.id) }
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
  /// What is only a placeholder is wanted whole.
  case contentRequested(DocumentID, by: AppID)
  case bookmarkResolved(by: AppID, Bookmark)
  /// It keeps one in its own state, for a document that it may use.
  case bookmarkKept(DocumentID, by: AppID, at: StatePath, key: String)
  case used(DocumentUse, by: AppID)
  case listed(by: AppID)
  /// The user chose it for an app that does not contain it.
  case picked(DocumentID, by: AppID)

  /// Where in the app's container the reference to it lies.
  case filed(DocumentID, by: AppID, folder: String)
  /// Its user switches a provider on in the picker, or off.
  case providerSwitched(AppID, isOn: Bool)

  // The service.
  case elsewhere(CloudChange)
  /// Its user has moved to iCloud Drive; or this phone never has.
  case driveSwitched(isOn: Bool)
  case uploaded(DocumentID, revision: Int)
  /// It has heard of all that were deleted here.
  case deletionsSent
}

/// What happened on other devices. Without a network nobody hears of it until there is one.
package enum CloudChange: Hashable, Codable, Sendable {
  /// A new one, or a new version, name or container of what has come from there before; `here` is
  /// what it is here, if it came from here.
  case announced(
    in: AppID, name: String, DocumentBody, modifiedAt: Instant, origin: DocumentOrigin? = nil,
    here: DocumentID? = nil)
  /// Written at that moment; nil for when it is heard.
  case changed(DocumentID, DocumentBody, modifiedAt: Instant? = nil)
  case deleted(DocumentID?, origin: DocumentOrigin? = nil)
}

/// What names a document on all phones of an account.
package struct DocumentOrigin: Hashable, Codable, Sendable {
  package let phone: String
  package let document: DocumentID

  package init(phone: String, document: DocumentID) {
    self.phone = phone
    self.document = document
  }
}

/// Steps of a document.
package enum DocumentStep: Hashable, Sendable {
  case appeared(Document.Content)
  case renamed(String)
  case deleted
  case granted(Coordination.Party, isWriting: Bool)
  case waits(Coordination.Party, isWriting: Bool)
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
  /// The copy is the app's until it ends.
  case imported(as: DocumentID, by: AppID)
  /// Written without coordination while somebody else wrote.
  case corrupted(by: AppID)
  case moved(to: AppID)
  /// Its provider sends what was written here; and has sent it.
  case uploading(TransferID, revision: Int)
  case uploaded(revision: Int)
  case listed(by: AppID, DocumentListing)
  /// An app lets go without having had what it wanted.
  case givenUp(by: AppID)
}

/// The documents of a phone.
package struct DocumentStore: Codable, Equatable, Sendable {
  package internal(set) var documents: [DocumentID: Document] = [:]
  /// What users granted, by number: bookmarks.
  var grants: [UInt64: Grant] = [:]
  /// What apps list that lies in other containers, and in which of their folders; nil for none.
  private var references: [Grant: String]?
  /// Its user has not moved to iCloud Drive; nil for who has.
  package var lacksDrive: Bool?
  /// What other devices did while there was no network; nil for nothing.
  var unheard: [CloudChange]?
  /// Deleted here, and the service has not heard so; nil for none.
  package var deleted: [Document]?
  private var numbering = Numbering()
  private var grantNumbering = Numbering()

  struct Grant: Hashable, Codable, Sendable {
    let app: AppID
    let document: DocumentID
  }

  /// Apps that may use something outside of their containers.
  var grantees: [AppID] { grants.values.map(\.app) + (references ?? [:]).keys.map(\.app) }

  /// Whether its numbers are such as it gives itself: what was decoded may be anything.
  var isSound: Bool {
    numbering.isSound(after: documents.keys.lazy.map(\.number))
      && grantNumbering.isSound(after: grants.keys)
  }

  mutating func nextID() -> DocumentID { DocumentID(numbering.next()) }

  /// What came from there before.
  func id(of origin: DocumentOrigin?) -> DocumentID? {
    origin.flatMap { origin in documents.values.first { $0.origin == origin }?.id }
  }

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

  /// The folder in an app's container in which its reference to a document lies; nil for none.
  package func folder(of document: DocumentID, for app: AppID) -> String? {
    references?[Grant(app: app, document: document)]
  }

  /// Files a reference, and makes it if there is none.
  mutating func file(_ document: DocumentID, for app: AppID, in folder: String) {
    references = references ?? [:]
    references?[Grant(app: app, document: document)] = folder
  }

  /// Whatever leads there leads nowhere from now on.
  mutating func forget(where isOver: (AppID, DocumentID) -> Bool) {
    grants = grants.filter { !isOver($0.value.app, $0.value.document) }
    references = references?.filter { !isOver($0.key.app, $0.key.document) }
  }

  mutating func forgetReference(of app: AppID, to document: DocumentID) {
    references?[Grant(app: app, document: document)] = nil
  }

  /// The metadata of an app's own documents and of those it refers to, by name: also of those whose
  /// content is not here.
  package func listing(for app: AppID) -> [Document] {
    documents.values.filter {
      $0.container == app && $0.isTemporary != true || folder(of: $0.id, for: app) != nil
    }
    .sorted { ($0.name, $0.id.number) < ($1.name, $1.id.number) }
  }
}
