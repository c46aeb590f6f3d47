import RelayCore

extension RelayConfiguration {
  mutating func readProviders(_ reader: SettingReader) throws(ReadingError) {
    let found = try Self.services("provider", provider.description, reader)
    if let first = found.first { (provider, providerEnvironment) = first }
    environmentProviders = found.others
    let management = try Self.services("channels", "", reader)
    if let first = management.first { (channels, channelsEnvironment) = first }
    environmentChannels = management.others
  }

  /// `HOST:PORT` for both services, `production=HOST:PORT`, `sandbox=HOST:PORT`, or several of
  /// them with commas between.
  private static func services(
    _ key: String, _ usual: String, _ reader: SettingReader
  ) throws(ReadingError) -> (
    first: (Endpoint, ProviderEnvironment?)?, others: [ProviderEnvironment: Endpoint]
  ) {
    var first: (endpoint: Endpoint, environment: ProviderEnvironment?)?
    var others: [ProviderEnvironment: Endpoint] = [:]
    for entry in try reader.text(key, usual).split(separator: ",") {
      let parts = entry.split(separator: "=", maxSplits: 1)
      let environment = parts.count == 2 ? ProviderEnvironment(rawValue: "\(parts[0])") : nil
      guard parts.count == 1 || environment != nil, let endpoint = Endpoint(String(parts.last!))
      else {
        throw ReadingError(
          key: key,
          description: "\(key) is HOST:PORT, for example 127.0.0.1:2197, or with the service "
            + "before it, sandbox=HOST:PORT,production=HOST:PORT; not \(entry)")
      }
      if first == nil {
        first = (endpoint, environment)
      } else if let environment, others[environment] == nil, environment != first?.environment {
        others[environment] = endpoint
      } else {
        throw ReadingError(
          key: key,
          description: "\(key) names each listener once, at most one without "
            + "a service, which comes first; \(entry) is one too many")
      }
    }
    return (first, others)
  }
}
