import Primitives
import RelayCore
import RelayRecording
import RelayStore
import Testing

@testable import RelayCluster

@Suite("ClusterChannels") struct ClusterChannelsTests {
  private let first = ChannelID(high: 1, low: 1)
  private let second = ChannelID(high: 2, low: 2)

  private func place(_ revision: UInt64, _ stored: StoredChannel?) -> ChannelPlace {
    ChannelPlace(number: 7, stored: stored).written(at: revision)
  }

  /// What is told and what a look finds are the same things, in any order.
  @Test func aPlaceIsAdoptedOnce() throws {
    var places = ChannelPlaces()
    let made = places.adopt(place(10, Make.stored(first)))
    #expect(made?.gone == nil && made?.found == Make.stored(first))
    #expect(places.number(of: first) == 7 && places.number(of: second) == nil)
    let again = places.adopt(place(10, Make.stored(first)))
    #expect(again == nil)
    let newest = places.adopt(place(12, Make.stored(first, newest: 1)))
    #expect(newest?.gone == nil && newest?.found?.newest?.number == 12)
    let late = places.adopt(place(11, nil))
    #expect(late == nil && places.number(of: first) == 7)
    // Deleted, and the place used again, of which this node has seen the end only.
    let next = places.adopt(place(20, Make.stored(second)))
    #expect(next?.gone == first && next?.found == Make.stored(second))
    #expect(places.number(of: first) == nil && places.number(of: second) == 7)
    let free = places.adopt(place(21, nil))
    #expect(free?.gone == second && free?.found == nil && places.number(of: second) == nil)
  }

  @Test func whatIsFreeIsFound() {
    var places = ChannelPlaces()
    let all = Set(0..<UInt16(Limits.channelsInCluster))
    for number in all where number != 3 {
      let stored = Make.stored(ChannelID(high: 9, low: UInt64(number)))
      _ = places.adopt(ChannelPlace(number: number, stored: stored).written(at: 1))
    }
    #expect(places.free == 3)
    _ = places.adopt(ChannelPlace(number: 3, stored: Make.stored(first)).written(at: 2))
    #expect(places.free == nil)
    _ = places.adopt(ChannelPlace(number: 5).written(at: 3))
    #expect(places.free == 5)
  }

  @Test func whatNodesTellEachOtherArrives() throws {
    for news in [
      .place(place(9, Make.stored(newest: 4))), .place(place(9, nil)),
      .broadcast(Make.broadcast(8)),
    ] as [ClusterQuestion] {
      var writer = ByteWriter()
      writer.put(news)
      var reader = ByteReader(writer.bytes)
      #expect(try reader.read(ClusterQuestion.self) == news)
      for end in 0..<writer.bytes.count {
        var cut = ByteReader(Array(writer.bytes[..<end]))
        #expect(throws: CodecError.self) { try cut.read(ClusterQuestion.self) }
      }
    }
  }
}
