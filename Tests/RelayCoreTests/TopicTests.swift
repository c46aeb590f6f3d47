import Testing

@testable import RelayCore

@Suite struct TopicTests {
  private func isEqual(_ topic: Topic, _ text: String) -> Bool {
    let bytes = Array(text.utf8)
    return topic.equals(bytes.span)
  }

  @Test func everyByteIsAllowedOrNot() {
    let allowed = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_".utf8)
    for byte in UInt8.min...UInt8.max {
      for bytes in [[byte], [0x61, byte], [byte, 0x61]] {
        let topic = Topic(bytes.span)
        #expect((topic != nil) == allowed.contains(byte), "\(byte)")
        #expect(topic == nil || topic?.bytes == bytes)
      }
    }
  }

  @Test func lengthsAreLimited() {
    for count in [0, 1, 254, 255, 256, 1000] {
      let topic = Topic(String(repeating: "a", count: count))
      #expect((topic != nil) == Limits.topicBytes.contains(count), "\(count)")
    }
  }

  @Test func comparisonWithoutBuildingOne() throws {
    let topic = try #require(Topic("com.example.app"))
    #expect(topic.description == "com.example.app")
    for text in ["", "com.example.ap", "com.example.app.", "com.example.apq", "Com.example.app"] {
      #expect(!isEqual(topic, text), "\(text)")
    }
    #expect(isEqual(topic, "com.example.app"))
  }

  @Test func partsOfAnActivityTopic() throws {
    let topic = try #require(Topic("com.example.app.push-type.liveactivity"))
    let part = try #require(Topic("com.example.app.push-type.liveactivity.activity.1"))
    #expect(part.isPart(of: topic) && part.whole == topic && topic.whole == topic)
    for other in [
      "com.example.app.push-type.liveactivity.", "com.example.app.push-type.liveactivity",
      "com.example.app.push-type.liveactivityx1", "com.example.apq.push-type.liveactivity.a",
      "com.example.app.voip.a", "com.example.app",
    ] { #expect(Topic(other)?.isPart(of: topic) == false, "\(other)") }
    let voip = try #require(Topic("com.example.app.voip"))
    #expect(Topic("com.example.app.voip.a")?.isPart(of: voip) == false, "of activities only")
    #expect(Topic("com.example.app.voip.a")?.whole.description == "com.example.app.voip.a")
  }
}

@Suite("TopicCache") struct TopicCacheTests {
  @Test func findsTheRightTopicWhateverCollides() {
    var cache = TopicCache()
    for round in 0..<2 {
      for number in 0..<1000 {
        let text = Array("com.example.\(number)".utf8)
        let topic = cache.topic(text.span)
        #expect(topic?.bytes == text, "round \(round)")
      }
    }
  }

  @Test func whatIsNoTopicIsRefused() {
    var cache = TopicCache()
    let wrong = [[], [0]] + [256, 1000].map { [UInt8](repeating: 97, count: $0) }
    for bytes in wrong {
      let topic = cache.topic(bytes.span)
      #expect(topic == nil, "\(bytes.count) bytes")
    }
  }
}
