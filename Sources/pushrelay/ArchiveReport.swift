import DeviceModel
import FoundationEssentials
import Primitives

/// A state archive as JSON: what `StateArchive.description` says, for programs.
struct ArchiveReport: Encodable {
  /// Nil for a plain archive, which does not say it.
  var app: String?
  var appVersion: String
  var systemVersion: String
  /// RFC 3339.
  var savedAt: String
  /// The path of what was on top.
  var top: String?
  /// Parents before children.
  var objects: [Object]

  struct Object: Encodable {
    var path: String
    var className: String
    var restorationClass: String?
    var isRegistered: Bool
    var parent: String?
    var state: [String: Value]
  }

  /// Numbers, texts, flags and lists are themselves; a reference is `{"reference": PATH}`, data
  /// `{"data": BASE64}`.
  enum Value: Encodable {
    case number(Int64)
    case text(String)
    case flag(Bool)
    case data(Data)
    case reference(String)
    case list([Value])

    func encode(to encoder: any Encoder) throws {
      var single = encoder.singleValueContainer()
      switch self {
      case .number(let number): try single.encode(number)
      case .text(let text): try single.encode(text)
      case .flag(let flag): try single.encode(flag)
      case .data(let data): try single.encode(["data": data.base64EncodedString()])
      case .reference(let path): try single.encode(["reference": path])
      case .list(let values): try single.encode(values)
      }
    }
  }

  init(app: String?, _ archive: StateArchive) {
    self.app = app
    appVersion = archive.appVersion
    systemVersion = archive.systemVersion
    savedAt = archive.savedAt.iso8601
    let paths = archive.objects.map(\.path.description)
    top = archive.top.map { paths[Int($0.number)] }
    objects = archive.objects.map { object in
      Object(
        path: object.path.description, className: object.className,
        restorationClass: object.restorationClass, isRegistered: object.isRegistered,
        parent: object.parent.map { paths[Int($0.number)] },
        state: Dictionary(
          object.entries.map { ($0.key, Self.value($0.value, paths)) },
          uniquingKeysWith: { first, _ in first }))
    }
  }

  private static func value(_ value: StateValue, _ paths: [String]) -> Value {
    switch value {
    case .number(let number): .number(number)
    case .text(let text): .text(text)
    case .flag(let flag): .flag(flag)
    case .data(let bytes), .bookmark(let bytes): .data(Data(bytes))
    case .reference(let place): .reference(paths[Int(place.number)])
    case .list(let values): .list(values.map { Self.value($0, paths) })
    }
  }
}
