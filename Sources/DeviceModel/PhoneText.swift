extension PushOutcome: CustomStringConvertible {
  /// As in the notification's log.
  package var description: String {
    switch self {
    case .newData: "newData"
    case .noData: "noData"
    case .failed: "failed"
    case .notLaunched(let refusal): "not launched: \(refusal.rawValue)"
    case .replaced: "not launched: replaced by a newer one"
    }
  }
}

extension RunCause: CustomStringConvertible {
  public var description: String {
    switch self {
    case .user: "the user"
    case .push(let push): "push \(push.number)"
    case .fetch: "fetch"
    case .transfers: "transfers"
    case .authentication: "a server's question"
    case .region: "a place"
    case .document: "a document"
    }
  }
}

extension ScreenContent: CustomStringConvertible {
  package var description: String {
    switch self {
    case .content(let revision, let top):
      "revision \(revision)" + (top.map { ", \($0) on top" } ?? "")
    case .hidden: "hidden content"
    }
  }
}

extension ContentFile {
  package static func words(_ files: [ContentFile]) -> String {
    let items = files.flatMap(\.items)
    return items.isEmpty ? "\(files.count)" : "\(files.count): \(items.joined(separator: ", "))"
  }
}

extension ArchiveStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .saved(let archive): "saved, \(archive.graph.objects.count) objects"
    case .kept: "kept as it was"
    case .deleted: "deleted"
    case .transformed(let old, let new): "of version \(old), made one of \(new)"
    case .encoded(let path): "\(path): encoded"
    case .row(let path, let key, let place):
      "\(path): \(key) \(place.map { "is row \($0) now" } ?? "is gone")"
    case .step(let step): "\(step)"
    }
  }
}
