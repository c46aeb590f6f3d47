import HTTP2
import RelayCore
import Transport

/// A request's head: fields, then the checks on them.
extension ProviderConnection {
  mutating func takeHead(
    _ stream: StreamID, _ fields: ArraySlice<HeaderField>, _ arena: [UInt8], at now: Instant,
    on handler: ConnectionHandler
  ) {
    lastHead.take(fields, arena)
    let outcome: Result<Topic, Rejection>
    do throws(Rejection) {
      outcome = .success(
        try lastHead.check(
          by: &credentials, certificateProblem: certificateProblem,
          verifier: &handler.runner.verifier, at: now))
    } catch {
      outcome = .failure(error)
    }
    raiseStreamsIfAuthorized(handler)
    open.insert(stream, with: &lastHead) { request, last in
      last.begin(&request, outcome, at: now)
    }
  }
}
