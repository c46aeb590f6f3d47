package import Primitives

/// A document, synced between devices (Apple, "File System Programming Guide").
package struct Document: Hashable, Codable, Sendable {
  package enum Content: Hashable, Codable, Sendable {
    /// Metadata only.
    case placeholder
    /// A placeholder whose download is under way.
    case coming(TransferID)
    case local
  }

  package let id: DocumentID
  /// Set if it was created on another phone of the account.
  package var origin: DocumentOrigin?
  package internal(set) var container: AppID
  package internal(set) var name: String
  /// The remote size for a placeholder.
  package internal(set) var bytes: Int64
  package internal(set) var modifiedAt: Instant
  package internal(set) var content: Content
  package internal(set) var revision: Int
  package internal(set) var remoteRevision: Int
  /// Changed here and not yet sent to the service.
  package internal(set) var isUnsent = false
  /// Size of a download that waits to be written; nil for none.
  var arrived: Int64?
  /// The newest remote version as far as known: a download of a difference does not tell.
  var remoteBody: DocumentBody?
  var remoteModifiedAt: Instant?
  /// Renamed or moved, which the service does not know yet; nil means no.
  package internal(set) var hasNewPlace: Bool?
  /// An imported copy, removed with its app's process.
  var isTemporary: Bool?
  /// Two apps wrote at once. Older stored documents have none.
  var isCorrupt: Bool?
  /// Nil where only the size is known.
  package internal(set) var text: DocumentText?
  /// The losing versions of a conflict, oldest first; nil for none.
  package internal(set) var versions: [DocumentVersion]?

  package var isStale: Bool { revision < remoteRevision }

  /// The content as far as it is known here.
  package internal(set) var body: DocumentBody {
    get { DocumentBody(bytes: bytes, text: text, isCorrupt: isCorrupt) }
    set { (bytes, text, isCorrupt) = (newValue.bytes, newValue.text, newValue.isCorrupt) }
  }

  package var thumbnail: [UInt8] { (content == .local ? body : remoteBody ?? body).thumbnail }

  /// The file extension, by which the picker filters.
  package var type: String? {
    name.lastIndex(of: ".").map { String(name[name.index(after: $0)...]) }
  }

  mutating func keep(_ version: DocumentVersion, atMost most: Int) {
    versions = ((versions ?? []) + [version]).suffix(most)
  }
}

/// Coordinated access to documents, first come first served: one writer or any number of readers.
/// Several documents are granted together, so nobody holds one while waiting for another.
package struct Coordination: Hashable, Sendable {
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

  /// Granted or waiting, in order of request.
  package private(set) var accesses: [Access] = []

  package var granted: [Access] { accesses.indices.filter(isGranted).map { accesses[$0] } }

  private func isGranted(_ place: Int) -> Bool {
    !accesses[..<place].contains { $0.isInTheWay(of: accesses[place]) }
  }

  func writer(of document: DocumentID) -> Access? {
    accesses.first { $0.isWriting(document) }.flatMap { granted.contains($0) ? $0 : nil }
  }

  /// Returns true if access is granted at once; otherwise it waits.
  mutating func request(_ access: Access) -> Bool {
    accesses.append(access)
    return isGranted(accesses.count - 1)
  }

  /// Ends matching accesses, granted or waiting; returns those granted because of that.
  mutating func end(where isOver: (Access) -> Bool) -> [Access] {
    let before = Set(granted.map(\.id))
    accesses.removeAll(where: isOver)
    return granted.filter { !before.contains($0.id) }
  }
}

/// Lasting access to a document outside the app's container, granted by the user once and valid
/// across restarts. Apps store this in their state, not a path.
package struct Bookmark: Hashable, Sendable {
  /// Eight bytes, stored as `StateValue.data`.
  package let data: [UInt8]

  package init(data: [UInt8]) { self.data = data }

  init(grant: UInt64) {
    data = (0..<8).map { UInt8(truncatingIfNeeded: grant >> (8 * UInt64($0))) }
  }

  var grant: UInt64? {
    guard data.count == 8 else { return nil }
    return data.enumerated().reduce(0) { $0 | UInt64($1.element) << (8 * UInt64($1.offset)) }
  }
}

/// Everything that can happen to documents.
package enum DocumentEvent: Hashable, Sendable {
  // By a running app.
  case created(by: AppID, name: String, bytes: Int64)
  case renamed(DocumentID, by: AppID, to: String)
  case deleted(DocumentID, by: AppID)
  case contentRequested(DocumentID, by: AppID)
  case bookmarkResolved(by: AppID, Bookmark)
  /// The app stores a bookmark in its own state.
  case bookmarkKept(DocumentID, by: AppID, at: StatePath, key: String)
  case used(DocumentUse, by: AppID)
  case listed(by: AppID)
  /// The user picked it for an app that does not contain it.
  case picked(DocumentID, by: AppID)

  /// Moves the app's reference to a folder of its container.
  case filed(DocumentID, by: AppID, folder: String)
  /// The user switched a provider on or off in the picker.
  case providerSwitched(AppID, isOn: Bool)

  // By the service.
  case elsewhere(CloudChange)
  /// The user has moved to iCloud Drive, or this phone never has.
  case driveSwitched(isOn: Bool)
  case uploaded(DocumentID, revision: Int)
  /// The service knows of all deletions here.
  case deletionsSent
}

/// A change on other devices. Without a network it waits until there is one.
package enum CloudChange: Hashable, Codable, Sendable {
  /// A new document, or a new version, name or container of one announced before; `here` is its id
  /// on this phone if it was created here.
  case announced(
    in: AppID, name: String, DocumentBody, modifiedAt: Instant, origin: DocumentOrigin? = nil,
    here: DocumentID? = nil)
  /// Nil means the time it is heard.
  case changed(DocumentID, DocumentBody, modifiedAt: Instant? = nil)
  case deleted(DocumentID?, origin: DocumentOrigin? = nil)
}

/// Identifies a document on all phones of an account.
package struct DocumentOrigin: Hashable, Codable, Sendable {
  package let phone: String
  package let document: DocumentID

  package init(phone: String, document: DocumentID) {
    self.phone = phone
    self.document = document
  }
}

/// A step in the life of a document.
package enum DocumentStep: Hashable, Sendable {
  case appeared(Document.Content)
  case renamed(String)
  case deleted
  case granted(Coordination.Party, isWriting: Bool)
  case waits(Coordination.Party, isWriting: Bool)
  case changed(revision: Int, bytes: Int64)
  case uploadNeeded(revision: Int)
  case contentComing(TransferID)
  /// Changed here and elsewhere; the later write wins, the other is kept.
  case conflict(kept: DocumentVersion)
  case referenced(by: AppID, Bookmark)
  case edited(by: AppID, CollectionDifference<String>)
  case chosen(VersionChoice)
  case copied(to: DocumentID, in: AppID)
  case imported(as: DocumentID, by: AppID)
  /// Written without coordination while another writer was active.
  case corrupted(by: AppID)
  case moved(to: AppID)
  case uploading(TransferID, revision: Int)
  case uploaded(revision: Int)
  /// In another container, the app's reference is in `folder`; nil in its own. Indirect for size.
  indirect case listed(by: AppID, Document, folder: String?)
  /// An app stops without having got what it wanted.
  case givenUp(by: AppID)
}

/// The documents of a phone.
package struct DocumentStore: Codable, Equatable, Sendable {
  package internal(set) var documents: [DocumentID: Document] = [:]
  /// Bookmarks, by number.
  var grants: [UInt64: Grant] = [:]
  /// Folders of the references to documents in other containers; nil for none.
  private var references: [Grant: String]?
  /// The user has not moved to iCloud Drive; nil means they have.
  package var lacksDrive: Bool?
  /// Remote changes that came without a network; nil for none.
  var unheard: [CloudChange]?
  /// Deleted here and not yet known to the service; nil for none.
  package var deleted: [Document]?
  private var numbering = Numbering()
  private var grantNumbering = Numbering()

  struct Grant: Hashable, Codable, Sendable {
    let app: AppID
    let document: DocumentID
  }

  var grantees: [AppID] { grants.values.map(\.app) + (references ?? [:]).keys.map(\.app) }

  var isSound: Bool {
    numbering.isSound(after: documents.keys.lazy.map(\.number))
      && grantNumbering.isSound(after: grants.keys)
  }

  mutating func nextID() -> DocumentID { DocumentID(numbering.next()) }

  func id(of origin: DocumentOrigin?) -> DocumentID? {
    origin.flatMap { origin in documents.values.first { $0.origin == origin }?.id }
  }

  /// Returns the app's bookmark for a document; one per pair.
  mutating func grant(_ document: DocumentID, to app: AppID) -> Bookmark {
    let wanted = Grant(app: app, document: document)
    if let known = grants.first(where: { $0.value == wanted }) {
      return Bookmark(grant: known.key)
    }
    let number = grantNumbering.next()
    grants[number] = wanted
    return Bookmark(grant: number)
  }

  /// Nil if it was not granted to this app, or the document is gone.
  package func resolve(_ bookmark: Bookmark, by app: AppID) -> DocumentID? {
    guard let grant = bookmark.grant.flatMap({ grants[$0] }), grant.app == app,
      documents[grant.document] != nil
    else { return nil }
    return grant.document
  }

  /// The folder of the app's reference to a document; nil for none.
  package func folder(of document: DocumentID, for app: AppID) -> String? {
    references?[Grant(app: app, document: document)]
  }

  mutating func file(_ document: DocumentID, for app: AppID, in folder: String) {
    references = references ?? [:]
    references?[Grant(app: app, document: document)] = folder
  }

  mutating func forget(where isOver: (AppID, DocumentID) -> Bool) {
    grants = grants.filter { !isOver($0.value.app, $0.value.document) }
    references = references?.filter { !isOver($0.key.app, $0.key.document) }
  }

  mutating func forgetReference(of app: AppID, to document: DocumentID) {
    references?[Grant(app: app, document: document)] = nil
  }

  /// The app's own documents and those it refers to, by name, placeholders included.
  package func listing(for app: AppID) -> [Document] {
    documents.values.filter {
      $0.container == app && $0.isTemporary != true || folder(of: $0.id, for: app) != nil
    }
    .sorted { ($0.name, $0.id.number) < ($1.name, $1.id.number) }
  }
}
