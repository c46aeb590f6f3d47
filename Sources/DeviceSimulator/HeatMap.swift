import DeviceModel

/// An app's uses, fetches and pushes per half hour and day: it shows how the phone learns when the
/// user looks.
public struct HeatMap: Hashable, Sendable {
  public enum Layer: String, CaseIterable, Hashable, Sendable {
    case uses
    case fetches
    case pushes

    fileprivate func counts(_ entry: TraceEntry) -> Bool {
      switch self {
      case .uses: entry.kind == .opened
      case .fetches: if case .fetchBegan = entry.fact { true } else { false }
      case .pushes: entry.kind == .received
      }
    }
  }

  /// As in the timeline: `anna/news`.
  public let name: String
  /// By layer, day and half hour.
  private var cells: [Layer: [[Int]]] = [:]

  static let binCount = 48
  private static let bin = TimeText.day / Int64(binCount)

  init(name: String, dayCount: Int) {
    self.name = name
    let days = Array(repeating: Array(repeating: 0, count: Self.binCount), count: dayCount)
    for layer in Layer.allCases { cells[layer] = days }
  }

  fileprivate mutating func add(_ entry: TraceEntry, since origin: Int64) {
    let time = entry.at - origin
    let (day, bin) = (Int(time / TimeText.day), Int(time % TimeText.day / Self.bin))
    for layer in Layer.allCases where layer.counts(entry) {
      guard let days = cells[layer], days.indices.contains(day) else { continue }
      cells[layer]?[day][bin] += 1
    }
  }

  /// Sums per half hour over those days.
  func counts(_ layer: Layer, days: Range<Int>) -> [Int] {
    (cells[layer] ?? []).enumerated().filter { days.contains($0.offset) }.map(\.element)
      .reduce(into: Array(repeating: 0, count: Self.binCount)) { sum, day in
        for bin in day.indices { sum[bin] += day[bin] }
      }
  }

  private var dayCount: Int { cells[.uses]?.count ?? 0 }

  /// One row per week and layer; a fuller mark means more often.
  public var text: String {
    let hours = (0..<8).map { "\($0 * 3)".padded(to: 6) }.joined()
    var text = name.padded(to: 18) + hours + "\n"
    var first = 0
    while first < dayCount {
      let days = first..<min(first + 7, dayCount)
      for (place, layer) in Layer.allCases.enumerated() {
        let week = place == 0 ? "  week \(first / 7 + 1)" : ""
        let marks = counts(layer, days: days).map { Self.mark($0, of: days.count) }.joined()
        text += week.padded(to: 10) + layer.rawValue.padded(to: 8) + marks + "\n"
      }
      first += 7
    }
    return text
  }

  private static let marks = Array("·▁▂▃▄▅▆▇█").map(String.init)

  private static func mark(_ count: Int, of most: Int) -> String {
    count == 0 ? marks[0] : marks[min(marks.count - 1, 1 + (count - 1) * 7 / max(1, most - 1))]
  }
}

extension String {
  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}

extension Simulation {
  /// One map per app, in order of installation.
  public var heatMaps: [HeatMap] {
    let dayCount = Int((time - origin + TimeText.day - 1) / TimeText.day)
    var maps = apps.map { app in
      HeatMap(name: "\(phones[Int(app.phone)].name)/\(app.name)", dayCount: dayCount)
    }
    for entry in entries where entry.app >= 0 { maps[Int(entry.app)].add(entry, since: origin) }
    return maps
  }
}
