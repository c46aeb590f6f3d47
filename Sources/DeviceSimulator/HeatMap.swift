import DeviceModel

/// When an app was used, fetched and pushed to, half hour by half hour, day by day: one sees the
/// phone learn when its user looks.
public struct HeatMap: Hashable, Sendable {
  /// What is counted.
  public enum Layer: String, CaseIterable, Hashable, Sendable {
    case uses
    case fetches
    case pushes

    fileprivate var colour: String {
      switch self {
      case .uses: "#1f6feb"
      case .fetches: "#2da44e"
      case .pushes: "#d97706"
      }
    }

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

  /// How often in a half hour of the day, over those days.
  func counts(_ layer: Layer, days: Range<Int>) -> [Int] {
    (cells[layer] ?? []).enumerated().filter { days.contains($0.offset) }.map(\.element)
      .reduce(into: Array(repeating: 0, count: Self.binCount)) { sum, day in
        for bin in day.indices { sum[bin] += day[bin] }
      }
  }

  private var dayCount: Int { cells[.uses]?.count ?? 0 }

  /// A row a week and layer; the fuller the mark, the more often on a day.
  public var text: String {
    let hours = (0..<8).map { padded("\($0 * 3)", 6) }.joined()
    var text = padded(name, 18) + hours + "\n"
    var first = 0
    while first < dayCount {
      let days = first..<min(first + 7, dayCount)
      for (place, layer) in Layer.allCases.enumerated() {
        let week = place == 0 ? "  week \(first / 7 + 1)" : ""
        let marks = counts(layer, days: days).map { Self.mark($0, of: days.count) }.joined()
        text += padded(week, 10) + padded(layer.rawValue, 8) + marks + "\n"
      }
      first += 7
    }
    return text
  }

  private static let marks = Array("·▁▂▃▄▅▆▇█").map(String.init)

  private static func mark(_ count: Int, of most: Int) -> String {
    count == 0 ? marks[0] : marks[min(marks.count - 1, 1 + (count - 1) * 7 / max(1, most - 1))]
  }

  private func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  // MARK: SVG

  private static let cell = 8
  private static let margin = 60

  /// Panels beside each other, a row a day.
  fileprivate func svg(top: Int) -> String {
    var text = #"<text x="4" y="\#(top + 12)" font-weight="bold">\#(escaped(name))</text>"# + "\n"
    for (place, layer) in Layer.allCases.enumerated() {
      let left = Self.margin + place * (Self.binCount * Self.cell + 20)
      text += #"<text x="\#(left)" y="\#(top + 24)">\#(layer.rawValue)</text>"# + "\n"
      for (day, bins) in (cells[layer] ?? []).enumerated() {
        let y = top + 30 + day * Self.cell
        if place == 0, day % 7 == 0 {
          text += #"<text x="4" y="\#(y + 8)">week \#(day / 7 + 1)</text>"# + "\n"
        }
        for (bin, count) in bins.enumerated() where count > 0 {
          text += #"<rect x="\#(left + bin * Self.cell)" y="\#(y)" width="7" height="7" "#
          text += #"fill="\#(layer.colour)" fill-opacity="\#(count == 1 ? "0.6" : "1")"/>"# + "\n"
        }
      }
      for hour in stride(from: 0, to: 24, by: 6) {
        let y = top + 42 + dayCount * Self.cell
        text += #"<text x="\#(left + hour * 2 * Self.cell)" y="\#(y)">\#(hour):00</text>"# + "\n"
      }
    }
    return text
  }

  fileprivate var svgHeight: Int { dayCount * Self.cell + 60 }

  fileprivate static var svgWidth: Int {
    margin + Layer.allCases.count * (binCount * cell + 20)
  }

  private func escaped(_ text: String) -> String {
    text.map { ["&": "&amp;", "<": "&lt;", ">": "&gt;"][$0] ?? String($0) }.joined()
  }
}

extension Simulation {
  /// A map of each app, in the order of installation.
  public var heatMaps: [HeatMap] {
    let dayCount = Int((time - origin + TimeText.day - 1) / TimeText.day)
    var maps = apps.map { app in
      HeatMap(name: "\(phones[Int(app.phone)].name)/\(app.name)", dayCount: dayCount)
    }
    for entry in entries where entry.app >= 0 { maps[Int(entry.app)].add(entry, since: origin) }
    return maps
  }

  /// The maps as one picture (W3C, "Scalable Vector Graphics").
  public var heatMapSVG: String {
    var (top, body) = (0, "")
    for map in heatMaps {
      body += map.svg(top: top)
      top += map.svgHeight
    }
    return #"<svg xmlns="http://www.w3.org/2000/svg" width="\#(HeatMap.svgWidth)" "#
      + #"height="\#(top)" font-family="sans-serif" font-size="10">"# + "\n"
      + #"<rect width="100%" height="100%" fill="white"/>"# + "\n" + body + "</svg>\n"
  }
}
