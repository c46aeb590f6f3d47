import Primitives

/// An archive as text, for `pushrelay archive print` (WWDC 2013 session 222).
extension StateArchive: CustomStringConvertible {
  package var description: String {
    var lines = ["restoration classes:"]
    var seen: Set<String> = []
    let objects = Array(zip(graph.objects, paths))
    for case let name? in graph.objects.map(\.restorationClass)
    where name != StateObject.storyboard && seen.insert(name).inserted {
      let made = objects.filter { $0.0.restorationClass == name }.map(\.1.description)
      lines.append("  \(name): \(made.joined(separator: ", "))")
    }
    lines.append("app version: \(appVersion)")
    lines.append("system version: \(systemVersion)")
    lines.append("timestamp: \(savedAt.iso8601)")
    for (object, path) in objects {
      let marks = [
        object.isRegistered ? "registered" : nil,
        graph.top == object.id ? "on top" : nil,
      ].compactMap { $0 }
      let suffix = marks.isEmpty ? "" : " (\(marks.joined(separator: ", ")))"
      lines.append("\(path): \(object.className)\(suffix)")
      for entry in object.entries { lines.append("  \(entry.key) = \(text(entry.value))") }
    }
    return lines.joined(separator: "\n")
  }

  private func text(_ value: StateValue) -> String {
    switch value {
    case .number(let number): "\(number)"
    case .text(let text): "\"\(text)\""
    case .flag(let flag): flag ? "yes" : "no"
    case .data(let data): "\(data.count) bytes"
    case .bookmark: "a bookmark"
    case .reference(let id): "-> \(graph.path(of: id)?.description ?? "nothing")"
    case .list(let values): "[\(values.map(text).joined(separator: ", "))]"
    }
  }
}

extension RestorationStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .found(let path): "\(path): found"
    case .recreated(let path, let name): "\(path): recreated by \(name)"
    case .skipped(let path, .answeredNothing(let name)): "\(path): skipped, \(name) has it no more"
    case .skipped(let path, .noRestorationClass): "\(path): skipped, nobody can make it"
    case .skipped(let path, .parentSkipped): "\(path): skipped with its parent"
    case .wired(let path, let key): "\(path): \(key) refers again"
    case .unwired(let path, let key): "\(path): \(key) refers to nothing now"
    case .decoded(let path): "\(path): decoded"
    case .finished(let path): "\(path): finished"
    case .applied(let path, let key): "\(path): \(key) applied, of what another decoded"
    }
  }
}
