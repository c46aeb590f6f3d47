import HTTP2
import NIOCore

/// An event with its bytes, so that it can be compared after the session went on.
enum Seen: Equatable {
  case headers(StreamID, [String], end: Bool)
  case headersTooLarge(StreamID)
  case data(StreamID, [UInt8], end: Bool)
  case bodyTooLarge(StreamID, end: Bool)
  case drained(StreamID)
  case closed(StreamID, UInt32)
  case goAway(StreamID, UInt32, String)
  case ping
  case settings
}

/// One end of a `Pipe`: a session, what it has seen, and what it does about it.
final class End {
  let session: HTTP2Session
  var seen: [Seen] = []
  var failure: HTTP2Error?
  var react: ((HTTP2Session, Seen) throws -> Void)?
  /// How many fields were told as repeated.
  private(set) var repeatedCount = 0
  private var batch: [HTTP2Event] = []
  private var lastBlock: [String] = []

  init(_ role: HTTP2Role, _ configuration: HTTP2Configuration = HTTP2Configuration()) throws {
    session = try HTTP2Session(role: role, configuration: configuration)
  }

  func receive(_ bytes: ArraySlice<UInt8>) {
    var buffer = ByteBuffer(bytes: bytes)
    do throws(HTTP2Error) {
      try session.receive(&buffer)
    } catch {
      failure = error
    }
    collect()
  }

  /// Everything the session wants to send.
  func output(step: Int = 1 << 20) -> [UInt8] {
    var buffer = ByteBuffer()
    while session.send(into: &buffer, upTo: step) {}
    collect()
    return Array(buffer.readableBytesView)
  }

  func collect() {
    session.takeEvents(into: &batch)
    for event in batch {
      let seen = translate(event)
      // Pieces of one body are joined, so that fragmentation does not show.
      if case .data(let id, let bytes, let end) = seen,
        case .data(id, let before, end: false)? = self.seen.last
      {
        self.seen[self.seen.count - 1] = .data(id, before + bytes, end: end)
      } else {
        self.seen.append(seen)
      }
      do { try react?(session, seen) } catch { failure = failure ?? (error as? HTTP2Error) }
    }
  }

  private func text(_ range: Range<Int>) -> String {
    String(decoding: session.arena[range], as: UTF8.self)
  }

  private func translate(_ event: HTTP2Event) -> Seen {
    switch event {
    case .headers(let id, let fields, let end):
      let list = session.fields[fields].enumerated().map { place, field in
        guard field.isRepeated else { return "\(text(field.name)): \(text(field.value))" }
        repeatedCount += 1
        return lastBlock[place]
      }
      lastBlock = list
      return .headers(id, list, end: end)
    case .headersTooLarge(let id): return .headersTooLarge(id)
    case .data(let id, let bytes, let end): return .data(id, Array(session.arena[bytes]), end: end)
    case .bodyTooLarge(let id, let end): return .bodyTooLarge(id, end: end)
    case .drained(let id): return .drained(id)
    case .closed(let id, let code): return .closed(id, code)
    case .goAwayReceived(let last, let code, let debug): return .goAway(last, code, text(debug))
    case .pingReceived: return .ping
    case .settingsReceived: return .settings
    }
  }

  /// What concerns one stream, without `drained`.
  func seen(of id: StreamID) -> [Seen] {
    seen.filter { event in
      switch event {
      case .headers(id, _, _), .headersTooLarge(id), .data(id, _, _), .bodyTooLarge(id, _),
        .closed(id, _):
        true
      default: false
      }
    }
  }

  func closings() -> [StreamID: [UInt32]] {
    var result: [StreamID: [UInt32]] = [:]
    for case .closed(let id, let code) in seen { result[id, default: []].append(code) }
    return result
  }
}

/// A client and a server in one piece of memory: bytes go back and forth until both are quiet.
final class Pipe {
  let client: End
  let server: End

  init(
    client: HTTP2Configuration = HTTP2Configuration(),
    server: HTTP2Configuration = HTTP2Configuration()
  ) throws {
    self.client = try End(.client, client)
    self.server = try End(.server, server)
  }

  /// Moves bytes until nothing more comes; each transfer is cut at `cuts` of its bytes.
  func advance(pieces: (Int) -> [Int] = { [$0] }) {
    while true {
      let up = client.output()
      deliver(up, to: server, pieces)
      let down = server.output()
      deliver(down, to: client, pieces)
      if up.isEmpty && down.isEmpty { return }
    }
  }

  private func deliver(_ bytes: [UInt8], to end: End, _ pieces: (Int) -> [Int]) {
    guard !bytes.isEmpty else { return }
    var start = 0
    for count in pieces(bytes.count) where start < bytes.count {
      let stop = min(bytes.count, start + count)
      end.receive(bytes[start..<stop])
      start = stop
    }
    if start < bytes.count { end.receive(bytes[start...]) }
  }
}

/// The head of a push as a provider sends it.
func pushHead(_ number: Int = 1) -> HeaderBlock {
  var head = HeaderBlock()
  head.append(":method", "POST")
  head.append(":scheme", "https")
  head.append(":path", "/3/device/\(String(number, radix: 16))", indexing: .withoutIndexing)
  head.append("host", "api.push.apple.com")
  head.append("apns-topic", "com.example.app")
  head.append("apns-push-type", "background")
  head.append("apns-priority", 5)
  head.append("apns-expiration", "0")
  head.append("apns-id", "id-\(number)", indexing: .nameOnly)
  head.append("authorization", "bearer aaaa.bbbb.cccc", indexing: .withoutIndexing)
  return head
}

func head(_ status: String) -> HeaderBlock {
  var head = HeaderBlock()
  head.append(":status", status)
  return head
}

/// A GET of a path.
func getHead(_ path: String = "/") -> HeaderBlock {
  var head = HeaderBlock()
  head.append(":method", "GET")
  head.append(":scheme", "https")
  head.append(":authority", "relay")
  head.append(":path", path)
  return head
}
