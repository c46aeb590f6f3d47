import HTTP2
import Primitives
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
      outcome = .success(try checkHead(at: now, on: handler))
    } catch {
      outcome = .failure(error)
    }
    raiseStreamsIfAuthorized(handler)
    if case .failure = outcome, !credentials.isAuthorized,
      open.count + waiting.count >= Limits.refusedRequests
    {
      // Nothing of it was looked at but the head: it may be sent again, to whom it helps.
      handler.transport.http2.reset(stream, errorCode: HTTP2ErrorCode.refusedStream)
      return
    }
    open.insert(stream, with: &lastHead) { request, last in
      last.begin(&request, outcome, at: now)
    }
  }

  /// All checks on the head. A key that is not known may be one that was made a moment ago.
  private mutating func checkHead(
    at now: Instant, on handler: ConnectionHandler
  ) throws(Rejection) -> Topic {
    let runner = handler.runner
    do throws(LastHead.Refusal) {
      return try lastHead.check(
        by: &credentials, certificateProblem: certificateProblem, verifier: &runner.verifier,
        at: now)
    } catch {
      guard case .credentials(.unknownKey) = error, runner.readKeysAgain() else {
        throw error.rejection
      }
    }
    do throws(LastHead.Refusal) {
      return try lastHead.check(
        by: &credentials, certificateProblem: certificateProblem, verifier: &runner.verifier,
        at: now)
    } catch {
      throw error.rejection
    }
  }
}
