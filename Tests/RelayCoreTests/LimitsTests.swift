import Primitives
import Testing

@testable import RelayCore

@Suite struct LimitsTests {
  @Test func relationsHold() {
    #expect(Limits.payloadBytes <= Limits.voipPayloadBytes)
    // A line holds the largest payload and its envelope.
    #expect(Limits.lineBytes >= Limits.voipPayloadBytes * 2)
    // A whole window of lines fits what a connection may hold back.
    #expect(Limits.unsentBytes >= Limits.lineBytes)
    #expect(Limits.discardedBytes > Limits.voipPayloadBytes)
    #expect(Limits.simplePayloadBytes <= Limits.binaryPayloadBytes)
    #expect(Limits.binaryPayloadBytes <= Limits.payloadBytes)
    #expect(Limits.deviceTokenBytes.contains(Limits.binaryTokenBytes))
    // The longest item, the four others, and each item's head.
    let longestFrame = Int(UInt16.max) + Limits.binaryTokenBytes + 9 + 5 * 3
    #expect(Limits.binaryFrameBytes >= longestFrame)
    #expect(Limits.unauthenticatedStreams <= Limits.providerStreams)
    #expect(Limits.tokenChangesPerDevice <= Limits.tokenChangesPerShard)
    #expect(Limits.refusedRequests <= Int(Limits.providerStreams))
    #expect(Limits.unauthenticatedDeviceStreams <= Limits.deviceStreams)
    // A device's whole window of frames fits, and so does a page of feedback.
    #expect(Limits.deviceQueuedBytes >= Limits.inFlightPerDevice * Limits.lineBytes)
    #expect(Limits.providerQueuedBytes >= 1_048_576)
    // Any place has room in a head of the proxy's, with the fields that clients send.
    #expect(Limits.proxyHeadBytes >= 4096 && Limits.proxyStrangers < Limits.connectionsPerLoop)
    // An order fits a line, with what is around it.
    #expect(Limits.orderBytes <= Limits.lineBytes / 2)
    #expect(Limits.deviceTokenBytes.upperBound <= Int(UInt8.max))
    #expect(Limits.inFlightPerDevice >= 1)
  }

  @Test func theNumbersOfTheDesign() {
    #expect(Limits.payloadBytes == 4096)
    #expect(Limits.voipPayloadBytes == 5120)
    #expect(Limits.collapseIDBytes == 64)
    #expect(Limits.deviceTokenBytes == 2...100)
    #expect(Limits.storage == .days(30))
    for type in PushType.allCases {
      let limit = type == .voip ? Limits.voipPayloadBytes : Limits.payloadBytes
      #expect(type.payloadLimitBytes == limit)
    }
  }
}
