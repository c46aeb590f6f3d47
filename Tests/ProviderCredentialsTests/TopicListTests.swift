import ProviderCredentials
import RelayCore
import Testing

@Suite struct TopicListTests {
  @Test(arguments: [
    ("com.example.app", true, true), ("com.example.ap", false, false),
    ("com.example.apps", false, false), ("Com.example.app", false, false),
    ("", false, false), ("com.example.app.voip", false, true),
    ("com.example.app.push-type.liveactivity", false, true),
    ("com.example.app.location-query", false, true), ("com.example.app.other", false, false),
    ("com.example.other.voip", false, false), (".voip", false, false),
    ("org.example.b.voip", true, true), ("org.example.b", false, false),
    ("org.example.b.voip.voip", false, true), ("z", true, true),
  ])
  func contains(topic: String, exactly: Bool, withSuffixes: Bool) {
    let names = ["z", "com.example.app", "org.example.b.voip", "com.example.app"]
    #expect(TopicList(names, coversSuffixes: false).contains(topic) == exactly)
    #expect(TopicList(names, coversSuffixes: true).contains(topic) == withSuffixes)
  }

  @Test func everySuffixIsCovered() {
    let list = TopicList(["com.example.app"], coversSuffixes: true)
    for type in PushType.allCases {
      #expect(list.contains("com.example.app\(type.topicSuffix)"), "\(type)")
    }
  }

  /// The suffix alone is no app's.
  @Test(arguments: [
    ("com.example.app.location-query", true), ("a.location-query", true),
    (".location-query", false),
    ("location-query", false), ("com.example.app", false), ("", false),
  ])
  func locationTopicsAreThoseOfApps(topic: String, isOne: Bool) {
    let bytes = Array(topic.utf8)
    let found = TopicList.isLocationTopic(bytes.span)
    #expect(found == isOne)
  }

  @Test(arguments: [0, 1, 2, 3, 7, 400]) func findsEachOfMany(count: Int) {
    let names = (0..<count).map { "com.example.app\($0 * 2)" }
    let list = TopicList(names, coversSuffixes: false)
    #expect(list.names.count == count)
    for number in 0..<count * 2 {
      #expect(list.contains("com.example.app\(number)") == (number % 2 == 0))
    }
  }

  @Test func equalBytesAreEqualAtEveryLengthAndPosition() {
    for count in 0..<70 {
      let bytes = (0..<count).map { UInt8($0) }
      #expect(isEqual(bytes, bytes))
      #expect(!isEqual(bytes, bytes + [0]))
      for position in 0..<count {
        var other = bytes
        other[position] ^= 0x80
        #expect(!isEqual(bytes, other), "\(count) \(position)")
      }
    }
  }

  /// A span may not appear inside `#expect`.
  private func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.span.isEqual(to: right.span)
  }
}

extension TopicList {
  /// Whether `topic` is covered.
  func contains(_ topic: String) -> Bool {
    let bytes = Array(topic.utf8)
    return contains(bytes.span)
  }
}
