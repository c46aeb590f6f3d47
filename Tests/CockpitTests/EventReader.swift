import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// Reads what a route writes for as long as it is read.
final class EventReader: Sendable {
  /// A server-sent event, or a line of JSON with the same members.
  struct Frame: Equatable {
    var id = ""
    var event = ""
    var data = ""

    /// The part of its cursor that counts up.
    var position: UInt64 { UInt64(id.split(separator: "-").last ?? "") ?? 0 }

    var json: [String: Any] {
      (try? JSONSerialization.jsonObject(with: Data(data.utf8))) as? [String: Any] ?? [:]
    }

    /// A member that is a text.
    subscript(_ name: String) -> String? { json[name] as? String }
  }

  struct Gone: Error {}

  let headers: HTTPFields
  private let texts: AsyncStream<String>
  private let writing: Task<Void, Never>

  /// - Parameter accepts: false for what the reader does not get, as it has gone.
  init(_ response: Response, accepts: @escaping @Sendable (String) -> Bool = { _ in true }) {
    let (texts, written) = AsyncStream.makeStream(of: String.self)
    (headers, self.texts) = (response.headers, texts)
    let isLines = response.headers[.contentType] == "application/x-ndjson"
    let writer = Writer(end: isLines ? "\n" : "\n\n", written: written, accepts: accepts)
    writing = Task {
      try? await response.body.write(writer)
      written.finish()
    }
  }

  deinit { writing.cancel() }

  /// The next frames, up to the first that is wanted, or all until the end.
  func frames(upTo isLast: (Frame) -> Bool = { _ in false }) async -> [Frame] {
    var frames: [Frame] = []
    while let text = await text() {
      let frame = Self.frame(text)
      frames.append(frame)
      if isLast(frame) { break }
    }
    return frames
  }

  /// The next event or line as it was written; nil at the end.
  func text() async -> String? {
    for await text in texts { return text }
    return nil
  }

  /// As when the relay ends. What is being written still comes.
  func leave() { writing.cancel() }

  private static func frame(_ text: String) -> Frame {
    var frame = Frame()
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ": ", maxSplits: 1).map(String.init)
      switch (parts.first, parts.last) {
      case ("id", let value?): frame.id = value
      case ("event", let value?): frame.event = value
      case ("data", let value?): frame.data = value
      default: frame.event = "no frame: \(line)"
      }
    }
    return frame
  }

  private struct Writer: ResponseBodyWriter {
    /// Of an event or a line.
    let end: String
    let written: AsyncStream<String>.Continuation
    let accepts: @Sendable (String) -> Bool

    func write(_ buffer: ByteBuffer) throws {
      let piece = String(buffer: buffer)
      guard accepts(piece) else { throw Gone() }
      for text in piece.components(separatedBy: end).dropLast() { written.yield(text + end) }
    }

    func finish(_ trailingHeaders: HTTPFields?) {}
  }
}
