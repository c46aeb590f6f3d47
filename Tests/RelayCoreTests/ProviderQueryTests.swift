import Testing

@testable import RelayCore

@Suite struct ProviderQueryTests {
  private static let id = "123e4567-e89b-12d3-a456-426614174000"

  private func head(_ method: String, _ path: String) -> ProviderRequestHead {
    var head = ProviderRequestHead()
    var topic: Topic?
    head.take(.method, Array(method.utf8).span, recentTopic: &topic)
    head.take(.path, Array(path.utf8).span, recentTopic: &topic)
    return head
  }

  private func rejection(_ head: ProviderRequestHead) -> Rejection? {
    var head = head
    do throws(Rejection) {
      try head.checkRequestLine()
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: [
    ("/v1/notifications/\(id)", ProviderQuery.notification(UniqueID(id)!)),
    ("/v1/notifications/\(id.uppercased())", .notification(UniqueID(id)!)),
    ("/v1/feedback", .feedback(since: 0)), ("/v1/feedback?since=0", .feedback(since: 0)),
    ("/v1/feedback?since=9007199254740993", .feedback(since: 9_007_199_254_740_993)),
  ])
  func isAQuestion(_ path: String, _ query: ProviderQuery) {
    var head = head("GET", path)
    #expect(head.query == query)
    #expect(rejection(head) == nil)
    for method in ["POST", "PUT", "DELETE", "get", ""] {
      #expect(rejection(self.head(method, path)) == .methodNotAllowed)
    }
  }

  @Test(arguments: [
    "/v1/notifications/", "/v1/notifications", "/v1/notifications/x", "/v1/feedback/",
    "/v1/feedback?", "/v1/feedback?since=", "/v1/feedback?since=-1", "/v1/feedback?since=1x",
    "/v1/feedback?since=1234567890123456789", "/v1/feedback?until=1", "/v1", "/", "",
    "/v2/feedback",
    "/v1/notifications/\(id)/", "/v1/notifications/\(id)?x",
  ])
  func isNone(_ path: String) {
    var head = head("GET", path)
    #expect(head.query == nil)
    #expect(rejection(head) == .badPath, "as for any other path")
    #expect(rejection(self.head("POST", path)) == .badPath)
  }
}
