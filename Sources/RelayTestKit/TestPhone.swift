import DeviceLink
import Primitives
import RelayCore
import RelayServer
import Synchronization

/// A phone that listens and acknowledges at once.
public struct TestPhone: Sendable {
  /// Its id in the device API and the admin API.
  public let id: String
  /// The token for your provider.
  public let deviceToken: String
  public let topic: String
  public let pushes: AsyncStream<ReceivedPush>
}

/// A push as it arrives on a phone.
public struct ReceivedPush: Equatable, Sendable {
  /// `apns-id`.
  public let id: String
  public let topic: String
  /// `visible` or `silent`.
  public let kind: String
  /// The trigger: `direct`, `piggyback`, `connect`, `refill`, `hold` or `resend`.
  public let via: String
  /// The payload's JSON text.
  public let payload: String
}

extension TestRelay {
  /// Makes a phone with an app. It listens until the relay ends.
  public func phone(topic: String) async throws -> TestPhone {
    guard let name = Topic(topic) else {
      throw TestRelayError(reason: "BadTopic", message: "\(topic) is not the topic of an app")
    }
    guard let enrolled = await relay.enrol(), case .enrolled(let device) = enrolled.answer,
      case .registered(let token) = try await relay.register(
        name, on: device, token: .new(for: nil)),
      let stream = try await relay.listen(as: device)
    else { throw TestRelayError(reason: "NotRunning", message: "the relay takes no phone") }
    let (pushes, pushed) = AsyncStream.makeStream(of: ReceivedPush.self)
    phones.add(
      Task { [relay] in
        for await line in stream.lines {
          let text = Array(line.bytes.dropLast())
          if case .notification(let delivery) = DownLine(text.span) {
            let push = delivery.notification
            pushed.yield(
              ReceivedPush(
                id: push.apnsID.description, topic: push.topic.description,
                kind: push.notificationClass.name, via: delivery.via.name,
                payload: String(decoding: push.payload, as: UTF8.self)))
          }
          await relay.wrote(line, of: stream)
        }
        pushed.finish()
        await relay.hangUp(stream)
      })
    return TestPhone(
      id: device.description, deviceToken: token.hexadecimal, topic: topic, pushes: pushes)
  }
}

final class TestPhones: Sendable {
  private let tasks = Mutex<[Task<Void, Never>]>([])

  func add(_ task: Task<Void, Never>) { tasks.withLock { $0.append(task) } }

  func end() { tasks.withLock { tasks in tasks.forEach { $0.cancel() } } }
}
