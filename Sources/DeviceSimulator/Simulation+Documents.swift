public import DeviceModel
import Primitives

/// Documents, and the sync service for those without a provider.
extension Simulation {
  /// By a running app. Synced as soon as there is a network.
  public mutating func createDocument(_ name: String, bytes: Int64, by app: AppHandle) {
    tell(app) { .document(.created(by: $0, name: name, bytes: bytes)) }
  }

  /// Created on another device: the app gets a placeholder.
  public mutating func announceDocument(_ name: String, bytes: Int64, to app: AppHandle) {
    let now = instant
    tell(app) {
      .document(
        .elsewhere(.announced(in: $0, name: name, DocumentBody(bytes: bytes), modifiedAt: now)))
    }
  }

  /// By a running app, under coordination.
  public mutating func use(_ use: DocumentUse, by app: AppHandle) {
    tell(app) { .document(.used(use, by: $0)) }
  }

  public mutating func changeDocumentElsewhere(
    _ id: DocumentID, bytes: Int64, on phone: PhoneHandle
  ) {
    changeDocumentElsewhere(id, DocumentBody(bytes: bytes), on: phone)
  }

  mutating func changeDocumentElsewhere(
    _ id: DocumentID, _ body: DocumentBody, on phone: PhoneHandle
  ) {
    tell(phone.number, .document(.elsewhere(.changed(id, body, modifiedAt: instant))))
  }

  /// The app's documents and those it has a reference to, by name.
  public func documents(of app: AppHandle) -> [DocumentState] {
    guard let model = model(of: app) else { return [] }
    let store = phones[Int(apps[Int(app.number)].phone)].model.documents
    return store.listing(for: model.id).map { document in
      DocumentState(
        id: document.id, name: document.name, bytes: document.body.bytes, text: document.text,
        isLocal: document.content == .local, thumbnail: document.thumbnail,
        revision: document.revision, otherRevisions: (document.versions ?? []).map(\.revision))
    }
  }

  /// The app's database, oldest first.
  public func items(of app: AppHandle) -> [String] { model(of: app)?.content.items ?? [] }

  /// Uploads what was written here, except for providers, and not before newer remote versions.
  mutating func sendDocuments(of phone: Int32) {
    let model = phones[Int(phone)].model
    guard model.network.isConnected, model.wakefulness != .off, model.documents.lacksDrive != true
    else { return }
    let unsent = model.documents.documents.values.filter {
      ($0.isUnsent || $0.hasNewPlace == true) && !$0.isStale && !model.isProvider($0.container)
    }
    for document in unsent.sorted(by: { $0.id.number < $1.id.number }) {
      tell(phone, .document(.uploaded(document.id, revision: document.revision)))
      spread(document, from: phone)
    }
    guard let deleted = model.documents.deleted else { return }
    tell(phone, .document(.deletionsSent))
    for document in deleted { spread(document, from: phone, isDeleted: true) }
  }

  /// Sends a change to the account's other phones, unless the app syncs its documents by itself.
  private mutating func spread(_ document: Document, from phone: Int32, isDeleted: Bool = false) {
    let sender = phones[Int(phone)]
    guard let app = sender.model[document.container]?.definition,
      [.cloud, .shared].contains(sender.model.containerKind(document.container))
    else { return }
    let origin = document.origin ?? DocumentOrigin(phone: sender.name, document: document.id)
    for other in phones.indices where other != Int(phone) && isShared(other, with: Int(phone)) {
      guard let there = phones[other].model.app(named: app.name) else { continue }
      let here = phones[other].name == origin.phone ? origin.document : nil
      let change: CloudChange =
        isDeleted
        ? .deleted(here, origin: origin)
        : .announced(
          in: there.id, name: document.name, document.body, modifiedAt: document.modifiedAt,
          origin: origin, here: here)
      tell(Int32(other), .document(.elsewhere(change)))
    }
  }

  private func isShared(_ one: Int, with other: Int) -> Bool {
    one == other || phones[one].account != nil && phones[one].account == phones[other].account
  }

  /// Moves all phones of the account to iCloud Drive.
  mutating func migrate(_ phone: PhoneHandle) {
    for other in phones.indices where isShared(other, with: Int(phone.number)) {
      tell(Int32(other), .document(.driveSwitched(isOn: true)))
      sendDocuments(of: Int32(other))
    }
  }
}

/// A document as listed by an app.
public struct DocumentState: Hashable, Sendable {
  public let id: DocumentID
  public let name: String
  public let bytes: Int64
  /// Nil where only the size is known.
  public let text: DocumentText?
  public let isLocal: Bool
  /// Stands for a small picture: eight bytes that change with the content.
  public let thumbnail: [UInt8]
  public let revision: Int
  /// Kept from a conflict, oldest first.
  public let otherRevisions: [Int]
}
