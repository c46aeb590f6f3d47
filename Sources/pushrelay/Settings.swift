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
    do throws(ReadingError) {
      try Self.check(variables: ProcessInfo.processInfo.environment.keys)
      if let config, let file {
        let values = try Self.values(file: file, name: config)
        providers.append(InMemoryProvider(name: config, values: values))
      }
      try self.init(
        reading: ConfigReader(providers: providers),
        cores: ProcessInfo.processInfo.activeProcessorCount)
    } catch {
      throw CommandError(error.description)
    }
  }
}
