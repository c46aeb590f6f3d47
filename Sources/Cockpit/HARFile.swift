import Primitives
import RelayCore
import RelayRequests

/// Requests in the form that browsers and proxies write (HTTP Archive 1.2,
/// http://www.softwareishard.com/blog/har-12-spec/).
struct HARFile: Encodable {
  struct Log: Encodable {
    var version = "1.2"
    var creator: Creator
    var entries: [Entry]
    var comment: String
  }

  struct Creator: Encodable {
    var name = "push-relay"
    var version: String
  }

  struct Pair: Encodable {
    var name: String
    var value: String
  }

  struct Body: Encodable {
    var mimeType: String
    var text: String
    var size: Int?
  }

  struct Asked: Encodable {
    var method: String
    var url: String
    var httpVersion = "HTTP/2"
    var cookies: [Pair] = []
    var headers: [Pair]
    var queryString: [Pair] = []
    var postData: Body
    var headersSize = -1
    var bodySize: Int
  }

  struct Answered: Encodable {
    /// 0 when there was no answer.
    var status: Int
    var statusText = ""
    var httpVersion = "HTTP/2"
    var cookies: [Pair] = []
    var headers: [Pair]
    var content: Body
    var redirectURL = ""
    var headersSize = -1
    var bodySize: Int
  }

  struct Timings: Encodable {
    var send = 0
    var wait: Int64
    var receive = 0
  }

  struct Entry: Encodable {
    var startedDateTime: String
    var time: Int64
    var request: Asked
    var response: Answered
    var cache: [String: String] = [:]
    var timings: Timings
  }

  var log: Log

  init(
    _ requests: [(request: SentRequest, url: String)], version: String, redacted: [String],
    hasMore: Bool
  ) {
    let left = redacted.isEmpty ? "" : "; redacted: \(redacted.joined(separator: ", "))"
    log = Log(
      creator: Creator(version: version), entries: requests.map { Entry($0.request, $0.url) },
      comment:
        "Requests as they were sent, with payloads and device tokens, without provider tokens"
        + left + (hasMore ? "; there are older ones" : ""))
  }
}

extension HARFile.Entry {
  fileprivate init(_ sent: SentRequest, _ url: String) {
    startedDateTime = sent.at.iso8601
    time = sent.answer?.after.milliseconds ?? 0
    timings = HARFile.Timings(wait: time)
    request = HARFile.Asked(
      method: sent.header(":method") ?? "POST", url: url,
      headers: sent.headers.map { HARFile.Pair(name: $0.name, value: $0.value) },
      postData: HARFile.Body(
        mimeType: "application/json", text: String(decoding: sent.body, as: UTF8.self)),
      bodySize: sent.bodyBytes ?? -1)
    let reason = sent.answer?.refusal?.reason
    let text = reason.map { #"{"reason":"\#($0)"}"# } ?? ""
    response = HARFile.Answered(
      status: sent.answer?.status ?? 0,
      headers: [HARFile.Pair(name: "apns-unique-id", value: sent.uniqueID.description)],
      content: HARFile.Body(mimeType: "application/json", text: text, size: text.utf8.count),
      bodySize: text.utf8.count)
  }
}
