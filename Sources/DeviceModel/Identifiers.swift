/// An app on one phone: its place in the order of installation.
package struct AppID: Hashable, Sendable {
  package let number: Int

  package init(_ number: Int) { self.number = number }
}

/// A push, as its sender numbers it; the driver maps it to the relay's id.
package struct PushID: Hashable, Sendable {
  package let number: UInt64

  package init(_ number: UInt64) { self.number = number }
}

/// One call of an app by the system, and so the completion handler that was handed over with it.
package struct CallbackID: Hashable, Sendable {
  package let number: UInt64
}

/// A banner in the list of notifications.
package struct BannerID: Hashable, Sendable {
  package let number: UInt64
}

/// A transfer that the system carries out.
package struct TransferID: Hashable, Sendable {
  package let number: UInt64
}

/// A document on one phone.
package struct DocumentID: Hashable, Sendable {
  package let number: UInt64

  package init(_ number: UInt64) { self.number = number }
}

/// One request to read or write a document under coordination.
package struct AccessID: Hashable, Sendable {
  package let number: UInt64
}

/// Hands out numbers, each once.
struct Numbering: Sendable {
  private var last: UInt64 = 0

  mutating func next() -> UInt64 {
    last += 1
    return last
  }
}
