import DeviceModel
import Primitives
import RelayCore

/// An app's uses, fetches and pushes per half hour and day: it shows how the phone learns when the
/// user looks.
public struct HeatMap: Hashable, Sendable {
  public enum Layer: String, CaseIterable, Hashable, Sendable {
    case uses
    case fetches
    case pushes
  }

  /// As in the timeline: `anna/news`.
  public let name: String
  fileprivate let dayCount: Int
  /// In milliseconds since the scenario began.
  fileprivate var times: [Layer: [Int64]] = [:]

  static let binCount = 48
  private static let bin = TimeText.day / Int64(binCount)

  /// Sums per half hour over those days.
  func counts(_ layer: Layer, days: Range<Int>) -> [Int] {
    var counts = Array(repeating: 0, count: Self.binCount)
    for time in times[layer] ?? [] where days.contains(Int(time / TimeText.day)) {
      counts[Int(time % TimeText.day / Self.bin)] += 1
    }
    return counts
  }

  /// One row per week and layer; a fuller mark means more often.
  public var text: String {
    let hours = (0..<8).map { "\($0 * 3)".padded(to: 6) }.joined()
    var text = name.padded(to: 18) + hours + "\n"
    for first in stride(from: 0, to: dayCount, by: 7) {
      let days = first..<min(first + 7, dayCount)
      for (place, layer) in Layer.allCases.enumerated() {
        let week = place == 0 ? "  week \(first / 7 + 1)" : ""
        let marks = counts(layer, days: days).map { Self.mark($0, of: days.count) }.joined()
        text += week.padded(to: 10) + layer.rawValue.padded(to: 8) + marks + "\n"
      }
    }
    return text
  }

  private static let marks = Array("·▁▂▃▄▅▆▇█").map(String.init)

  private static func mark(_ count: Int, of most: Int) -> String {
    count == 0 ? marks[0] : marks[min(marks.count - 1, 1 + (count - 1) * 7 / max(1, most - 1))]
  }
}

extension Simulation {
  /// One map per app, in order of installation.
  public var heatMaps: [HeatMap] {
    let dayCount = Int((time - origin + TimeText.day - 1) / TimeText.day)
    var maps = apps.map { app in
      HeatMap(name: "\(phones[Int(app.phone)].name)/\(app.name)", dayCount: dayCount)
    }
    for entry in entries where entry.app >= 0 {
      var layer: HeatMap.Layer?
      if case .phone(.app(_, .opened)) = entry.fact { layer = .uses }
      if case .fetchBegan = entry.fact { layer = .fetches }
      if case .life(.received) = entry.fact { layer = .pushes }
      if case .life(.restored) = entry.fact { layer = .pushes }
      if let layer { maps[Int(entry.app)].times[layer, default: []].append(entry.at - origin) }
    }
    return maps
  }
}
