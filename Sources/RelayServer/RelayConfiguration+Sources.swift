import RelayCore

/// Where settings come from is checked before they are read: what nobody reads, because it is
/// misspelled or no JSON, would otherwise silently leave the default in force.
extension RelayConfiguration {
  /// How the names of settings in the environment begin.
  package static let variablePrefix = "PUSHRELAY_"

  /// The name of a setting in the environment: `keepAlive` is `PUSHRELAY_KEEP_ALIVE`.
  package static func variable(forKey key: String) -> String {
    var name = variablePrefix
    var wasLower = false
    for letter in key {
      if wasLower, letter.isUppercase { name += "_" }
      name += letter.uppercased()
      wasLower = letter.isLowercase
    }
    return name
  }

  /// Refuses a variable that begins as settings do and is none.
  ///
  /// - Parameter variables: the names of all variables in the environment.
  package static func check(variables: some Sequence<String>) throws(Problem) {
    let known = keys.map { variable(forKey: $0) }
    for name in variables.sorted() where name.hasPrefix(variablePrefix) {
      guard !known.contains(name), !isOfKubernetes(name) else { continue }
      throw Problem(
        key: name,
        description: "\(name) in the environment is no setting; there are "
          + known.joined(separator: ", "))
    }
  }

  /// Whether Kubernetes may have set it: pods are told of a service with the name `pushrelay` by
  /// `PUSHRELAY_SERVICE_HOST`, `PUSHRELAY_SERVICE_PORT…`, `PUSHRELAY_PORT` and
  /// `PUSHRELAY_PORT_2197_TCP…` (Kubernetes documentation, "Service", "Environment variables").
  private static func isOfKubernetes(_ name: String) -> Bool {
    let rest = name.dropFirst(variablePrefix.count)
    return rest == "PORT" || rest == "SERVICE_HOST" || rest == "SERVICE_PORT"
      || rest.hasPrefix("SERVICE_PORT_") || rest.hasPrefix("PORT_")
  }

  /// Refuses a file that is not one JSON object (RFC 8259) of known keys, each once, with plain
  /// values.
  ///
  /// - Parameter name: how the problem calls the file.
  package static func check(file bytes: [UInt8], name: String) throws(Problem) {
    let members: [ObjectCursor.Member]
    do {
      members = try self.members(of: bytes)
    } catch {
      var place = name
      if case .notJSON(let offset) = error { place += ":\(line(of: offset, in: bytes))" }
      throw Problem(
        key: "config",
        description: "\(place): this is not one JSON object such as {\"policy\": \"strict\"}")
    }
    var seen: Set<String> = []
    for member in members {
      let key = String(decoding: bytes[member.key], as: UTF8.self)
      let place = "\(name):\(line(of: member.key.lowerBound, in: bytes)): "
      guard keys.contains(key) else {
        throw Problem(
          key: key,
          description: "\(place)the key \(key) is none of " + keys.joined(separator: ", "))
      }
      guard seen.insert(key).inserted else {
        throw Problem(key: key, description: "\(place)the key \(key) stands there twice")
      }
      guard !member.isNull, !Array("{[".utf8).contains(bytes[member.value.lowerBound]) else {
        throw Problem(
          key: key, description: "\(place)\(key) must be a text, a number, true or false")
      }
    }
  }

  private static func members(of bytes: [UInt8]) throws(PayloadError) -> [ObjectCursor.Member] {
    // Strict to the last byte; the cursor alone skips over values.
    _ = try scanPayload(bytes.span)
    var members: [ObjectCursor.Member] = []
    var cursor = try ObjectCursor(bytes.span)
    while let member = try cursor.next(bytes.span) { members.append(member) }
    return members
  }

  private static func line(of offset: Int, in bytes: [UInt8]) -> Int {
    1 + bytes.prefix(offset).count { $0 == UInt8(ascii: "\n") }
  }
}
