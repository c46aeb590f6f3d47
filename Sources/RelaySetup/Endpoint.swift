extension RelayConfiguration {
  /// Port 0 picks a free one.
  package struct Endpoint: Equatable, Sendable, CustomStringConvertible {
    package var host: String
    package var port: Int

    package init(host: String, port: Int) {
      self.host = host
      self.port = port
    }

    /// Reads `HOST:PORT`, `[IPV6]:PORT` or `:PORT`.
    package init?(_ text: String) {
      guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
        (0...65_535).contains(port)
      else { return nil }
      var host = text[..<colon]
      if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
      guard !host.contains("[") else { return nil }
      self.init(host: host.isEmpty ? "127.0.0.1" : String(host), port: port)
    }

    package var description: String {
      host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// True for all addresses of the machine, which nobody can connect to as such.
    package var isWildcard: Bool { host == "0.0.0.0" || host == "::" }

    /// True if only this machine can connect. `localhost` is the only name known to mean that.
    package var isLoopback: Bool {
      let bytes = host.split(separator: ".", omittingEmptySubsequences: false)
      let isIPv4 = bytes.count == 4 && bytes.allSatisfy { UInt8($0) != nil }
      return host == "localhost" || host == "::1" || isIPv4 && bytes[0] == "127"
    }
  }
}
