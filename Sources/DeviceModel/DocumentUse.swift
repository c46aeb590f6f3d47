public import Primitives

/// What an app does with documents under coordination: it asks for them one after the other, works
/// on each for a while when it has it, makes an edit in the end and lets go of all of them.
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
  /// On each of them.
  public var time: Interval
  /// To each that it writes, or with each that it reads.
  public var edit: DocumentEdit

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
  /// A copy in the container of the app with that name: its own to import, another's to export.
  case copied(to: String)
  /// It lies in that app's container from now on; this one keeps a reference.
  case moved(to: String)
}

/// A use under way; it dies with its app's process.
struct RunningUse: Sendable {
  enum Phase: Hashable, Sendable {
    /// There is a placeholder, and the content is on its way.
    case lacksContent(DocumentID)
    case waits(DocumentID, AccessID)
    case works(AccessID)
  }

  let app: AppID
  let use: DocumentUse
  /// The call that ends after it.
  let callback: CallbackID?
  /// Which of the wanted documents it is about.
  var step = 0
  var phase = Phase.waits(DocumentID(0), AccessID(number: 0))

  /// The document that it is about.
  var wanted: DocumentID { use.wants[min(step, use.wants.count - 1)].document }
}

/// An app that waits for a document, as a deadlock names it.
package struct DocumentWait: Hashable, Sendable {
  package let app: AppID
  package let document: DocumentID
}

/// A document's entry in a list that an app shows.
package struct DocumentListing: Hashable, Sendable {
  package let name: String
  package let body: DocumentBody
  package let modifiedAt: Instant
  package let isLocal: Bool
  /// Bytes of a picture; nil for none.
  package let thumbnail: [UInt8]?
}

extension Document {
  /// What is listed of it, also where its content is not here.
  package var listing: DocumentListing {
    DocumentListing(
      name: name, body: body, modifiedAt: modifiedAt, isLocal: content == .local,
      thumbnail: thumbnail)
  }
}
