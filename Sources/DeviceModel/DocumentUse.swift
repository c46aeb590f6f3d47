public import Primitives

/// What an app does with documents under coordination: it asks for all of them together, works on
/// them for a while when it has them, makes an edit in the end and lets go of them.
public struct DocumentUse: Hashable, Codable, Sendable {
  /// A document, to be read or to be written.
  public struct Want: Hashable, Codable, Sendable {
    public var document: DocumentID
    public var isWriting: Bool

    public init(_ document: DocumentID, isWriting: Bool) {
      self.document = document
      self.isWriting = isWriting
    }
  }

  public var wants: [Want]
  /// On all of them.
  public var time: Interval
  /// To each that it writes, or with each that it reads.
  public var edit: DocumentEdit
  /// The mistake: it asks nobody; nil for no.
  public var skipsCoordination: Bool?

  public init(wants: [Want], time: Interval = .zero, edit: DocumentEdit = .nothing) {
    self.wants = wants
    self.time = time
    self.edit = edit
  }
}

/// What comes of a use in the end.
public enum DocumentEdit: Hashable, Codable, Sendable {
  case nothing
  /// What is written has so many bytes then.
  case size(Int64)
  /// A line of the text, counted from 1; nil removes it, one behind the last adds to it.
  case line(Int, String?)
  /// The app takes back the last edit of its own.
  case undo
  case choose(VersionChoice)
  /// A copy that is the app's until its process ends; its user chooses what.
  case imported
  /// A copy in the container of the app with that name: another's to export, its own to keep.
  case copied(to: String)
  /// It lies in that app's container from now on; this one keeps a reference.
  case moved(to: String)
}

/// A use under way; it dies with its app's process.
struct RunningUse: Sendable {
  enum Phase: Hashable, Sendable {
    /// The content is on its way, or its provider is asked whether there is newer.
    case lacksContent(DocumentID)
    case waits
    case works
    /// Without coordination: since which revision, and whether somebody else wrote at the time.
    case scribbles(since: Int, isDisturbed: Bool)
  }

  let app: AppID
  let use: DocumentUse
  /// The call that ends after it.
  let callback: CallbackID?
  var phase = Phase.waits
  /// Whose content was asked for already.
  var asked: Set<DocumentID> = []
}

/// A document's entry in a list that an app shows.
package struct DocumentListing: Hashable, Sendable {
  package let name: String
  package let body: DocumentBody
  package let modifiedAt: Instant
  package let isLocal: Bool
  /// Bytes of a picture.
  package let thumbnail: [UInt8]
  package let type: String?
  /// Of a conflict, how many versions are kept beside it.
  package let otherVersions: Int
  package let place: Place

  /// Whether it lies in the container of the app that lists it.
  package enum Place: Hashable, Sendable {
    case own
    /// In that container, and the reference to it in this folder of the app's own.
    case external(container: String, folder: String)
  }
}

extension Document {
  /// What is listed of it, also where its content is not here.
  func listing(_ place: DocumentListing.Place) -> DocumentListing {
    DocumentListing(
      name: name, body: body, modifiedAt: modifiedAt, isLocal: content == .local,
      thumbnail: thumbnail, type: type, otherVersions: versions?.count ?? 0, place: place)
  }
}
