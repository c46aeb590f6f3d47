import Primitives
import Testing

@testable import RelayCore

@Suite struct ChannelTests {
  @Test func anIDIsTheBase64OfItsBytes() throws {
    // RFC 4648 section 4, by hand: 16 bytes of 0, of FF, and 00 01 … 0F.
    let samples: [(ChannelID, String)] = [
      (ChannelID(high: 0, low: 0), "AAAAAAAAAAAAAAAAAAAAAA=="),
      (ChannelID(high: .max, low: .max), "/////////////////////w=="),
      (
        ChannelID(high: 0x0001_0203_0405_0607, low: 0x0809_0A0B_0C0D_0E0F),
        "AAECAwQFBgcICQoLDA0ODw=="
      ),
    ]
    for (id, text) in samples {
      #expect(id.description == text)
      #expect(ChannelID(text) == id)
      #expect(ChannelID(id.pathText) == id)
      #expect(!id.pathText.contains { "+/=".contains($0) })
    }
  }

  @Test func everyIDIsReadAsItWasWritten() {
    var generator = SeededRandom(seed: 32)
    for _ in 0..<1000 {
      let id = ChannelID(high: generator.next(), low: generator.next())
      #expect(ChannelID(id.description) == id)
      #expect(ChannelID(id.pathText) == id)
      #expect(id.token.bytes.count == 16)
    }
  }

  @Test(arguments: [
    "", "AAAA", "AAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAA===", "AAAAAAAAAAAAAAAAAAAAA!==",
    "AAAAAAAAAAAAAAAAAAAAAB==", "AAAAAAAAAAAAAAAAAAAAAAA=", "A AAAAAAAAAAAAAAAAAAAA==",
  ])
  func anythingElseIsNone(_ text: String) {
    #expect(ChannelID(text) == nil)
  }

  @Test func aLiveActivitysTopicHasTheChannelsOfItsBundle() throws {
    let bundle = try #require(Topic("com.example.app"))
    let activity = try #require(Topic("com.example.app.push-type.liveactivity"))
    #expect(bundle.bundle == bundle)
    #expect(activity.bundle == bundle)
  }
}
