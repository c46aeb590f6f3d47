import ArgumentParser
import Configuration
import FoundationEssentials
import RelayServer

extension RelayConfiguration {
  /// Flags, then environment, then file.
  init(flags: [AbsoluteConfigKey: ConfigValue], file config: String?) async throws {
    var providers: [any ConfigProvider] = [
      InMemoryProvider(name: "flags", values: flags),
      EnvironmentVariablesProvider().prefixKeys(with: "pushrelay"),
    ]
    var file: Data?
    if let config {
      file = FileManager.default.contents(atPath: config)
      guard file != nil else {
        throw CommandError("\(config) cannot be read: --config names a JSON file")
      }
    }
    do throws(ReadingError) {
      try Self.check(variables: ProcessInfo.processInfo.environment.keys)
      if let config, let file {
        let values = try Self.values(file: Array(file), name: config)
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
