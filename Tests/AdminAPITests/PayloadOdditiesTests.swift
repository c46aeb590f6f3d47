import RelayCore
import Testing

@testable import AdminAPI

@Suite struct PayloadOdditiesTests {
  @Test(
    arguments: [
      (#"{"aps":{"alert":"Hello"}}"#, nil, ""), (#"{"aps":{"alert":{}}}"#, nil, ""),
      (#"{"aps":{"alert":{"title":"a","body":"b","launch-image":"c"}}}"#, nil, ""),
      (#"{"aps":{"alert":{"title":{"loc-key":"a"},"sound":"b"}}}"#, nil, ""),
      (#"{"aps":{"sound":{"critical":1,"name":"a","volume":0.5}}}"#, nil, ""),
      (#"{"aps":{"alert":{"title":null,"loc-args":["a","b"],"summary-arg-count":2}}}"#, nil, ""),
      (#"{"aps":{"badge":0,"relevance-score":1,"interruption-level":"active"}}"#, nil, ""),
      (#"{"aps":{"event":"update","relevance-score":75}}"#, nil, ""),
      (#"{"aps":[],"alert":{"x":1}}"#, nil, ""), (#"{"alert":{"x":1}}"#, nil, ""),
      (#"{"aps":{"badg":3,"alert":"a"}}"#, .unknownApsKey, "aps.badg"),
      (#"{"aps":{"alert":{"title":"a","bdy":"b"}}}"#, .unknownAlertKey, "aps.alert.bdy"),
      (#"{"aps":{"sound":{"critical":1,"nam":"a"}}}"#, .unknownAlertKey, "aps.sound.nam"),
      (
        #"{"aps":{"alert":{"Title":"a","text":"b"}}}"#, .unknownAlertKey,
        "aps.alert.Title aps.alert.text"
      ),
      (#"{"aps":{"badge":"3"}}"#, .unexpectedType, "aps.badge"),
      (#"{"aps":{"badge":"3","badge":3}}"#, nil, ""),
      (#"{"aps":{"alert":{"title":1}}}"#, .unexpectedType, "aps.alert.title"),
      (#"{"aps":{"alert":{"loc-key":{}}}}"#, .unexpectedType, "aps.alert.loc-key"),
      (#"{"aps":{"alert":{"loc-args":"a"}}}"#, .unexpectedType, "aps.alert.loc-args"),
      (
        #"{"aps":{"alert":{"title-loc-args":["a",1]}}}"#, .unexpectedType,
        "aps.alert.title-loc-args"
      ),
      (
        #"{"aps":{"alert":{"summary-arg-count":"2"}}}"#, .unexpectedType,
        "aps.alert.summary-arg-count"
      ),
      (#"{"aps":{"sound":{"volume":"1"}}}"#, .unexpectedType, "aps.sound.volume"),
      (#"{"aps":{"badge":-1}}"#, .unusualValue, "aps.badge"),
      (#"{"aps":{"badge":1.5}}"#, .unusualValue, "aps.badge"),
      (#"{"aps":{"relevance-score":1.1}}"#, .unusualValue, "aps.relevance-score"),
      (#"{"aps":{"interruption-level":"loud"}}"#, .unusualValue, "aps.interruption-level"),
      (#"{"aps":{"sound":{"critical":2}}}"#, .unusualValue, "aps.sound.critical"),
      (#"{"aps":{"sound":{"volume":1.5}}}"#, .unusualValue, "aps.sound.volume"),
    ] as [(String, PayloadWarning?, String)])
  func eachOddityHasItsPlace(payload: String, warning: PayloadWarning?, places: String) throws {
    let found = PayloadOddities(try JSONTree.read(Array(payload.utf8))).places
    #expect(found.mapValues { $0.joined(separator: " ") } == (warning.map { [$0: places] } ?? [:]))
  }
}
