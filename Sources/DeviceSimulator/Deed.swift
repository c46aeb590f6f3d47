import DeviceModel
import Primitives

/// What is done to an app.
enum AppDeed: Hashable, Sendable {
  case open
  case openBanner
  case swipeAway
  case use(Int64)
  case refresh(Bool)
  case crash
  case uninstall
  case installAgain
  case enterRegion
  case fetch
  case play(Bool)
  case ask
  case setFetch(FetchInterval)
  case queue(TransferRequest)
  case createDocument(String, bytes: Int64)
  case announceDocument(String, bytes: Int64)
  case document(DocumentID, DocumentDeed)
  case listDocuments
  case coordinate(DocumentUse)
  case importDocument(DocumentID)
  case switchProvider(Bool)
  case keepBookmark(DocumentID, at: StatePath, key: String)
  case update(String)
  case change(StateChange)
  case ignoreSnapshot
}

/// What an app does with a document, or its user for it.
enum DocumentDeed: Hashable, Sendable {
  case rename(String)
  case delete
  case want
  case pick
  /// Where its reference lies.
  case file(String)
}

/// What is done to a phone, or happens to it.
enum PhoneDeed: Hashable, Sendable {
  case unlock
  case lock
  case leave
  case reboot
  case power(Bool)
  case exhaustMemory
  case travel
  case network(Network)
  case charger(Bool)
  case lowPower(Bool)
  case developerMode(Bool)
  case refresh(Bool)
  case changeDocument(DocumentID, DocumentBody)
  case loseDocument(DocumentID)
  case migrate
  case link(LinkChange)
  case connectAgain
}

/// What changes about a phone's link.
struct LinkChange: Hashable, Sendable {
  let lossPercent: Int
  let latency: Duration?
  let jitter: Duration?

  func applied(to link: LinkModel) -> LinkModel {
    LinkModel(
      latency: latency ?? link.latency, jitter: jitter ?? link.jitter, reconnect: link.reconnect,
      lossPercent: lossPercent)
  }
}

/// What is done to the relay, or happens to it.
enum RelayDeed: Hashable, Sendable {
  case policy(RelayPolicy)
  case journalTakes(Int64)
  case journalFails(Bool)
  case crash(Int64)
}
