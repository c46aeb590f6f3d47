import Primitives
package import RelayCore

/// `GET /v1/channels`: broadcast channels, with what Apple's console shows of them.
package struct ChannelList: Codable, Sendable {
  package struct Channel: Codable, Equatable, Sendable {
    /// In base64, as in `apns-channel-id`.
    package var channel: String
    /// The bundle id.
    package var app: String
    /// Missing for one of both services.
    package var environment: ProviderEnvironment?
    package var storagePolicy: Int
    /// UNIX milliseconds.
    package var createdAt: Int64
    /// Accepted broadcasts, and how often they were handed to a connected phone, in this run.
    package var published: Int
    package var delivered: Int
    package var subscribers: Int

    package init(
      _ channel: ChannelRegistry.Channel, published: Int, delivered: Int, subscribers: Int
    ) {
      self.channel = channel.id.description
      app = channel.bundle.description
      environment = channel.id.environment
      storagePolicy = Int(channel.policy.rawValue)
      createdAt = channel.createdAt.milliseconds
      self.published = published
      self.delivered = delivered
      self.subscribers = subscribers
    }
  }

  /// The oldest first.
  package var channels: [Channel]
  /// Of all that match.
  package var count: Int

  package init(channels: [Channel], count: Int) {
    (self.channels, self.count) = (channels, count)
  }
}
