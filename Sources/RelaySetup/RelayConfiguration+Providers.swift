import RelayCore

extension RelayConfiguration {
  /// `HOST:PORT` for both services, `production=HOST:PORT`, `sandbox=HOST:PORT`, or several of
  /// them with commas between.
  mutating func readProviders(_ reader: SettingReader) throws(ReadingError) {
    var isFirst = true
    for entry in try reader.text("provider", provider.description).split(separator: ",") {
      let parts = entry.split(separator: "=", maxSplits: 1)
      let environment = parts.count == 2 ? ProviderEnvironment(rawValue: "\(parts[0])") : nil
      guard parts.count == 1 || environment != nil, let endpoint = Endpoint(String(parts.last!))
      else {
        throw ReadingError(
          key: "provider",
          description: "provider is HOST:PORT, for example \(provider), or with the service "
            + "before it, sandbox=HOST:PORT,production=HOST:PORT; not \(entry)")
      }
      if isFirst {
        (provider, providerEnvironment) = (endpoint, environment)
      } else if let environment, environmentProviders[environment] == nil,
        environment != providerEnvironment
      {
        environmentProviders[environment] = endpoint
      } else {
        throw ReadingError(
          key: "provider",
          description: "provider names each listener once, at most one without "
            + "a service, which comes first; \(entry) is one too many")
      }
      isFirst = false
    }
  }
}
