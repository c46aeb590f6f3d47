public import Primitives

/// Coordinated use of documents by an app: it requests all of them together, works on them for a
/// while, makes one edit at the end and releases them.
public struct DocumentUse: Hashable, Codable, Sendable {
  public struct Want: Hashable, Codable, Sendable {
    public var document: DocumentID
    public var isWriting: Bool

    public init(_ document: DocumentID, isWriting: Bool) {
      self.document = document
      self.isWriting = isWriting
    }
  }

  public var wants: [Want]
  public var time: Interval
  /// Applied to each document it writes; copies and imports also to those it reads.
  public var edit: DocumentEdit
  /// A mistake: no coordination; nil means no.
  public var skipsCoordination: Bool?

  public init(wants: [Want], time: Interval = .zero, edit: DocumentEdit = .nothing) {
    self.wants = wants
    self.time = time
    self.edit = edit
  }
}

/// The result of a use.
public enum DocumentEdit: Hashable, Codable, Sendable {
  case nothing
  /// The new size in bytes.
  case size(Int64)
  /// A line of the text, counted from 1; nil removes it, one past the last appends.
  case line(Int, String?)
  case undo
  case choose(VersionChoice)
  /// A copy of a document the user picked; removed when the app's process ends.
  case imported
  case copied(to: String)
  /// Moves to that app's container; this app keeps a reference.
  case moved(to: String)
}

/// A use under way; it ends with its app's process.
struct RunningUse: Sendable {
  enum Phase: Hashable, Sendable {
    /// The content is being fetched, or its provider is asked for a newer version.
    case lacksContent(DocumentID)
    case waits
    case works
    /// Without coordination: the revision at the start, and whether there was another writer.
    case scribbles(since: Int, isDisturbed: Bool)
  }

  let app: AppID
  let use: DocumentUse
  /// The callback that ends after this use.
  let callback: CallbackID?
  var phase = Phase.waits
  /// Documents whose content was already requested.
  var asked: Set<DocumentID> = []
}
