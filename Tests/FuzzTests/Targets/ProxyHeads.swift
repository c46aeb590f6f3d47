@testable import RelayCore

/// What a client of the proxy sends before its connection is led on: refused within the limit, or a
/// target that is read from its own text again.
enum ProxyHeads {
  static func run(_ input: UnsafeRawBufferPointer) throws(Finding) {
    var head = ConnectHead()
    for (place, byte) in input.enumerated() {
      let target: ConnectTarget?
      do throws(ProxyRefusal) {
        target = try head.receive(byte)
      } catch {
        return
      }
      guard place < Limits.proxyHeadBytes else { throw Finding("\(place) bytes and no refusal") }
      guard let target else { continue }
      guard ConnectTarget(target.description) == target, target.port > 0 else {
        throw Finding("read again \(target) is another")
      }
      guard byte == UInt8(ascii: "\n"), !target.host.utf8.contains(where: { $0 <= 0x20 }) else {
        throw Finding("\(target) in the middle of a line")
      }
      return
    }
  }
}
