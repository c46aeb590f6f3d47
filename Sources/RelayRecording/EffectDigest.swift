import Primitives
package import RelayCore

/// A 64-bit digest of a batch's effects, for comparison in a replay.
///
/// Frequent effects are mixed field by field, two words a step, the others as encoded. A
/// notification counts by its unique id; the rest of it never changes.
package struct EffectDigest: Sendable {
  package private(set) var value = Self.empty
  /// For rare effects.
  private var writer: ByteWriter

  private static let empty: UInt64 = 0x9E37_79B9_7F4A_7C15

  /// The kind of effect, with small details beside it.
  private enum Tag: UInt64 {
    case log = 1
    case persist, respond, forget, send, other

    func with(_ detail: UInt8, _ more: UInt8 = 0) -> UInt64 {
      rawValue << 56 | UInt64(detail) << 48 | UInt64(more) << 40
    }
  }

  /// `redactor` is the recording's; nil if the events are redacted already.
  package init(redactor: Redactor? = nil) {
    writer = ByteWriter(redactor: redactor, isDigesting: true)
  }

  /// Stored after each event: enough to tell where a batch begins to differ.
  package var check: UInt8 { UInt8(truncatingIfNeeded: value >> 56) }

  package mutating func reset() { value = Self.empty }

  /// Adds the effects of one event.
  package mutating func add(_ effects: Span<Effect>) {
    for index in effects.indices { add(effects[index]) }
    // So that it matters which event an effect belongs to.
    mix(UInt64(effects.count), 0)
  }

  @inline(__always)
  private mutating func add(_ effect: borrowing Effect) {
    switch effect {
    case .log(let event): add(event, of: effect)
    case .persist(let record): add(record, of: effect)
    case .respond(let request, let answer):
      // Not one pattern: a failed match would have copied the value.
      switch answer {
      case .accepted(let id):
        mix(Tag.respond.with(0), request)
        mix(id)
      case .rejected, .gone: addOther(effect)
      }
    case .forget(let sequence): mix(Tag.forget.with(0), sequence)
    case .send(let connection, let delivery):
      mix(Tag.send.with(delivery.via.rawValue), connection)
      mix(delivery.notification.uniqueID)
      mix(delivery.acceptedAt.word, delivery.sentAt.word)
    case .answer, .hello, .sendBroadcast, .sendEmpty, .sendKeepAlive, .checkQueue, .close, .tell:
      addOther(effect)
    }
  }

  @inline(__always)
  private mutating func add(_ record: borrowing JournalRecord, of effect: borrowing Effect) {
    switch record.content {
    case .accepted(let notification, let moment):
      mix(Tag.persist.with(record.mayLinger ? 1 : 0) ^ moment.word, record.sequence)
      mix(notification.uniqueID)
    case .forwarded(let notification, let device, let moment):
      mix(Tag.persist.with(record.mayLinger ? 3 : 2) ^ moment.word, record.sequence)
      mix(notification.uniqueID)
      mix(device.value)
    case .enrolled, .registered, .unregistered, .granted, .released, .forgotten, .subscribed,
      .unsubscribed, .spent:
      addOther(effect)
    }
  }

  @inline(__always)
  private mutating func add(_ event: borrowing DeliveryEvent, of effect: borrowing Effect) {
    // Cases without references first: a switch that matches them copies and destroys everything.
    if case .storedOffline = event.step { return mix(Tag.log.with(3), event) }
    if case .delivered = event.step { return mix(Tag.log.with(4), event) }
    if case .discarded(.replaced(let id)) = event.step {
      mix(Tag.log.with(5), event.at.word)
      mix(id)
      return mix(event.uniqueID)
    }
    switch event.step {
    case .received(let notificationClass, _, let device, _):
      mix(Tag.log.with(1, notificationClass.rawValue), event.at.word)
      mix(device.value)
      mix(event.uniqueID)
    case .sent(let via, nil): mix(Tag.log.with(2, via.rawValue), event)
    case .sent, .storedOffline, .delivered, .discarded, .restored, .storedPower, .outcome, .decided,
      .faulted:
      addOther(effect)
    }
  }

  @inline(never)
  private mutating func addOther(_ effect: borrowing Effect) {
    writer.removeAll()
    effect.write(to: &writer)
    mix(Tag.other.with(0), writer.digest)
  }

  @inline(__always)
  private mutating func mix(_ tag: UInt64, _ event: borrowing DeliveryEvent) {
    mix(tag, event.at.word)
    mix(event.uniqueID)
  }

  @inline(__always)
  private mutating func mix(_ tag: UInt64, _ address: StreamAddress) {
    mix(
      tag | UInt64(address.place),
      UInt64(address.connection.value) << 32 | UInt64(UInt32(bitPattern: address.stream)))
  }

  @inline(__always)
  private mutating func mix(_ id: UniqueID) { mix(id.high, id.low) }

  /// As `ByteWriter.mix`, for two words.
  @inline(__always)
  private mutating func mix(_ first: UInt64, _ second: UInt64) {
    let product = (value ^ first ^ 0xA076_1D64_78BD_642F)
      .multipliedFullWidth(by: second ^ 0xE703_7ED1_A0B4_28DB)
    // Both words count even if a factor is zero.
    value = product.high ^ product.low ^ first ^ (second << 32 | second >> 32)
  }
}

extension Instant {
  fileprivate var word: UInt64 { UInt64(bitPattern: milliseconds) }
}
