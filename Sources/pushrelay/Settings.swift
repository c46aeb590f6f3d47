import ArgumentParser
import Configuration
import FoundationEssentials
import RelayServer
import RelaySetup

extension RelayConfiguration {
  /// Flags, then environment, then file.
  init(flags: [String: ConfigContent], file config: String?) async throws {
    let values = flags.map { (AbsoluteConfigKey([$0]), ConfigValue($1, isSecret: false)) }
    var providers: [any ConfigProvider] = [
      InMemoryProvider(name: "flags", values: Dictionary(uniqueKeysWithValues: values)),
      EnvironmentVariablesProvider().prefixKeys(with: "pushrelay"),
    ]
    let file = try config.map { try PrivateFile.read($0, else: "--config names a JSON file") }
    let variables = ProcessInfo.processInfo.environment
    // Until then an error says itself where it is.
    var keysOfFile: [String]?
    do throws(ReadingError) {
      try Self.check(variables: variables.keys)
      var values: [AbsoluteConfigKey: ConfigValue] = [:]
      if let config, let file {
        values = try Self.values(file: file, name: config)
        providers.append(InMemoryProvider(name: config, values: values))
      }
      keysOfFile = values.keys.map(\.description)
      try self.init(
        reading: ConfigReader(providers: providers),
        cores: ProcessInfo.processInfo.activeProcessorCount)
    } catch {
      let (key, variable) = (error.key, Self.variable(forKey: error.key))
      guard let keysOfFile, flags[key] == nil else { throw CommandError(error.description) }
      var origin = keysOfFile.contains(key) ? " (in \(config ?? ""))" : ""
      if variables[variable] != nil { origin = " (\(variable) in the environment)" }
      throw CommandError(error.description + origin)
    }
  }
}
