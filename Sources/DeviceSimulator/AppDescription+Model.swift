import DeviceModel

/// From the words of a test to those of the model.
extension AppDescription {
  var definition: AppDefinition {
    var script = AppScript()
    script.onPush = onPush.script
    script.onFetch = onFetch.script
    script.onTransfers = onTransfers.script
    script.onLeave.transfers = transfersOnLeave.map(\.request)
    script.onLeave.task = taskOnLeave?.script
    script.contentTime = contentTime.lapse
    script.hidesContent = hidesContent
    script.interface = StateGraph(state)
    script.handlers = keepsOneHandler ? .oneProperty : .eachItsOwn
    var modes: BackgroundModes = []
    if self.modes.contains(.fetch) { modes.insert(.fetch) }
    if self.modes.contains(.remoteNotification) { modes.insert(.remoteNotification) }
    return AppDefinition(
      name: name, modes: modes, fetchInterval: fetch.interval, script: script)
  }
}

extension FetchWish {
  var interval: FetchInterval {
    switch self {
    case .never: .never
    case .minimum: .minimum
    case .notWithin(let time): .seconds(time.simulatedMilliseconds / 1000)
    }
  }
}

extension Work {
  var script: CallbackScript {
    var script = CallbackScript()
    script.work = takes.lapse
    script.workJitter = jitter.lapse
    script.bytes = Int64(bytes)
    script.energy = Int64(energy)
    switch outcome {
    case .newData: script.outcome = .always(.newData)
    case .noData: script.outcome = .always(.noData)
    case .failed: script.outcome = .always(.failed)
    case .newDataPercent(let percent): script.outcome = .newDataPercent(Int64(percent))
    }
    switch handler {
    case .called: script.handler = .afterWork
    case .calledLate(let time): script.handler = .late(time.lapse)
    case .neverCalled: script.handler = .never
    }
    script.transfers = transfers.map(\.request)
    script.notification = notification.map {
      LocalNotification(text: $0.text, badge: $0.badge, hasSound: $0.hasSound)
    }
    script.task = task?.script
    script.setsFetchInterval = fetch?.interval
    script.changes = remembers.flatMap(\.changes)
    return script
  }
}

extension TaskDescription {
  var script: TaskScript { TaskScript(work: takes.lapse, endsInTime: endsInTime) }
}

extension TransferDescription {
  var request: TransferRequest {
    TransferRequest(
      session: session, name: name, direction: isUpload ? .upload : .download,
      bytes: Int64(bytes), isDiscretionary: isDiscretionary,
      demandsCredentials: demandsCredentials, resumes: resumes,
      document: document.map { DocumentID(UInt64(max(0, $0))) }, url: url,
      authorization: authorization)
  }
}

extension NetworkKind {
  var network: Network {
    switch self {
    case .wifi: .wifi
    case .cellular: .cellular
    case .none: .none
    case .airplane: .airplane
    }
  }
}

extension Duration {
  var lapse: Lapse { .milliseconds(simulatedMilliseconds) }
}
