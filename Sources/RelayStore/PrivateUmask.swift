import Synchronization

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

private let umaskLock = Mutex<Void>(())

/// Runs `body` with a file mode mask that keeps everybody but the owner out.
///
/// Foundation creates a file with the process's mask and sets the mode asked for only after it has
/// the final name; without this a private file could be opened by others in between. The mask
/// belongs to the whole process: a file that another thread makes at this moment comes out more
/// private than asked for, never less. The lock keeps two calls from restoring each other's mask.
package func withPrivateUmask<Result, Failure: Error>(
  _ body: () throws(Failure) -> Result
) throws(Failure) -> Result {
  try umaskLock.withLock { _ throws(Failure) in
    let previous = umask(0o077)
    defer { _ = umask(previous) }
    return try body()
  }
}
