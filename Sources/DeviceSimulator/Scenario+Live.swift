import DeviceModel

/// Scenarios that are made on the spot, for phones whose story nobody has written down.
extension Scenario {
  /// A phone as somebody at a command line describes it.
  package struct PlainPhone: Sendable {
    package var name: String
    /// The bundle identifiers of its apps.
    package var apps: [String]
    package var isOnCellular = false
    package var isCharging = false
    package var isLowPower = false

    package init(name: String, apps: [String]) {
      self.name = name
      self.apps = apps
    }
  }

  /// Phones with apps that may be woken by pushes, to which nothing happens by itself. Their names
  /// must differ.
  package init(plainPhones phones: [PlainPhone]) {
    self.init(
      file: "", title: "phones", about: "", seed: 1, length: TimeText.longest - TimeText.day,
      policy: .documented, keepAlive: 0, link: LinkModel(),
      phones: phones.map { phone in
        PhonePlan(
          name: phone.name, network: phone.isOnCellular ? .cellular : .wifi,
          isCharging: phone.isCharging, isLowPower: phone.isLowPower,
          apps: phone.apps.map { name in
            var app = AppDefinition(name: name, modes: .remoteNotification)
            app.script.interface.add(["window", "list"])
            return app
          }, usage: [], habits: nil)
      },
      events: [], expectations: [])
  }

  /// The phones by name, each with the names of its apps.
  package var livePhones: [(name: String, apps: [String])] {
    phones.map { ($0.name, $0.apps.map(\.name)) }
  }
}

extension TraceLine {
  /// The line of a run in real time: the time of day, who, what. Nil for details, unless they are
  /// wanted.
  package func liveText(isVerbose: Bool) -> String? {
    switch kind {
    case .arrived, .reported, .restored, .startedFresh: break
    default: guard isVerbose || !kind.isDetail else { return nil }
    }
    let clock = TimeText.text(time: milliseconds).suffix(12)
    return "\(clock) \(who)  \(what)"
  }
}
