import ArgumentParser
import Configuration
import FoundationEssentials
import RelayServer
import SystemPackage

extension RelayConfiguration {
  /// Flags, then environment, then file.
  init(flags: [AbsoluteConfigKey: ConfigValue], file config: String?) async throws {
    var file: [UInt8]?
    if let config {
      guard let data = FileManager.default.contents(atPath: config) else {
        throw CommandError("\(config) cannot be read: --config names a JSON file")
      }
      file = Array(data)
    }
    do throws(ReadingError) {
      try Self.check(variables: ProcessInfo.processInfo.environment.keys)
      if let config, let file { try Self.check(file: file, name: config) }
    } catch {
      throw CommandError(error.description)
    }
    var providers: [any ConfigProvider] = [
      InMemoryProvider(name: "flags", values: flags),
      EnvironmentVariablesProvider().prefixKeys(with: "pushrelay"),
    ]
    if let config {
      providers.append(try await FileProvider<JSONSnapshot>(filePath: FilePath(config)))
    }
    do throws(ReadingError) {
      try self.init(
        reading: ConfigReader(providers: providers),
        cores: ProcessInfo.processInfo.activeProcessorCount)
    } catch {
      throw CommandError(error.description)
    }
  }
}
