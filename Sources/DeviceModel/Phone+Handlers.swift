import Primitives

/// Who takes a push that is not for the app itself: by push type, and Wallet (docs/PROTOCOL.md,
/// "Pushes for others than the app").
package enum PushHandler: String, CaseIterable, Hashable, Codable, Sendable {
  case widgets, complication, fileprovider, location, voip, pushtotalk, wallet

  package func words(_ subject: String?) -> String {
    switch self {
    case .widgets: "WidgetKit reloads the timelines of the app's widgets"
    case .complication: "the app brings its complication up to date"
    case .fileprovider: "the File Provider is asked for changes in \(subject ?? "")"
    case .location: "the location extension is asked where the phone is"
    case .voip: "the app reports a call"
    case .pushtotalk: subject.map { "\($0) speaks" } ?? "nobody speaks, the app leaves the channel"
    case .wallet: "Wallet asks the pass's web service what has changed"
    }
  }
}

extension Phone {
  /// Nil if the handler takes it now.
  func refusal(of push: RemotePush, _ handler: PushHandler) -> LaunchRefusal? {
    let owner = push.owner ?? push.app
    let refusal: LaunchRefusal? =
      switch handler {
      case .widgets: push.subject == nil ? .nothingChanged : nil
      case .fileprovider: push.subject == nil ? .nothingNamed : nil
      case .location:
        apps[push.app.number].definition.modes.contains(.location) ? nil : .locationModeMissing
      case .complication:
        launchRefusal(owner) ?? (owner == foreground ? nil : refreshRefusal(owner.number))
      case .voip, .pushtotalk: launchRefusal(owner)
      case .wallet: nil
      }
    guard refusal == nil, let (limit, place) = limit(of: handler, push.app) else { return refusal }
    return limit.allows(handlerAllowances?[place] ?? .init(), at: now) ? nil : .pushBudget
  }

  /// Why an app cannot be run for what is its own, whatever modes it declares.
  func launchRefusal(_ app: AppID) -> LaunchRefusal? {
    guard let owner = self[app], owner.state != .uninstalled else { return .notInstalled }
    guard owner.state != .forceQuit else { return .forceQuit }
    return owner.callbackCount < limits.callbacksPerApp ? nil : .tooManyCallbacks
  }

  /// The same for transfers and documents, which wait for the first unlock.
  func runRefusal(_ app: AppID) -> LaunchRefusal? {
    launchRefusal(app) ?? (lock == .beforeFirstUnlock ? .beforeFirstUnlock : nil)
  }

  /// As a rate, with the place in `handlerAllowances`.
  private func limit(of handler: PushHandler, _ app: AppID) -> (RateLimit, Int)? {
    func daily(_ count: Int64) -> RateLimit { RateLimit(count, per: .days(1), burst: count) }
    return switch handler {
    case .widgets: (daily(limits.widgetPushes), app.number)
    case .complication: (daily(limits.complicationPushes), app.number)
    case .location: (daily(limits.locationPushes), -1)
    case .fileprovider, .voip, .pushtotalk, .wallet: nil
    }
  }

  mutating func handle(_ push: RemotePush, _ handler: PushHandler) {
    replaceHeld(by: push)
    emit(.app(push.app, .handled(push.id, handler, push.subject)))
    if let (limit, place) = limit(of: handler, push.app) {
      var used = handlerAllowances ?? [:]
      limit.consume(&used[place, default: .init()], at: now)
      handlerAllowances = used
    }
    switch handler {
    case .widgets: report(push.id, .shown)
    case .location, .fileprovider, .wallet: report(push.id, .newData)
    case .pushtotalk where push.subject == nil:
      report(push.id, .noData)
      // The token lives as long as the channel.
      uninstall(push.app.number)
    case .complication, .voip, .pushtotalk:
      let call = RemotePush(id: push.id, app: push.owner ?? push.app)
      if !startCallback(call.app.number, .push(call)) {
        report(push.id, .failed)
      }
    }
  }
}
